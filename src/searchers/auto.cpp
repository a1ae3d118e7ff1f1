// SPDX-License-Identifier: Apache-2.0
#include "searchers/auto.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "ranktune/base/error.hpp"
#include "ranktune/study/spec.hpp"
#include "searchers/coordinates/axes.hpp"
#include "searchers/nsga2.hpp"

namespace ranktune::searchers {

study::SearcherInfo describe_auto();

namespace {

/// Results before there is a model.
std::size_t startup_of(const space::SearchSpace& space) { return std::max<std::size_t>(10, 2 * space.dimensions()); }

TpeOptions tpe_options_for(const space::SearchSpace& space) {
    TpeOptions options;
    options.n_startup_trials = static_cast<std::uint32_t>(startup_of(space));
    return options;
}

} // namespace

bool suits_gp(const space::SearchSpace& space) {
    constexpr std::size_t most = 20;
    const bool conditional =
        std::ranges::any_of(space.parameters(), [](const auto& parameter) { return parameter.condition.has_value(); });
    std::size_t active = 0;
    std::size_t categories = 0;
    for (const Axis& axis : axes_of(space)) {
        if (axis.values != 1) ++active;
        if (axis.category) ++categories;
    }
    return !conditional && active > 0 && active <= most && 4 * categories <= active;
}

AutoSearcher::AutoSearcher(const space::SearchSpace& space, std::uint64_t seed, std::uint64_t gp_trials)
    : tpe_(space, seed, tpe_options_for(space)), gp_trials_(gp_trials) {
    if (suits_gp(space)) gp_.emplace(space, seed, GpOptions{.startup = startup_of(space)});
}

Searcher::Preparation AutoSearcher::prepare(std::uint64_t ticket, Observations seen) const {
    const bool by_gp = gp_ && seen.points() <= gp_trials_;
    return by_gp ? gp_->prepare(ticket, std::move(seen)) : tpe_.prepare(ticket, std::move(seen));
}

void AutoSearcher::apply(const study::Record& record) {
    tpe_.apply(record);
    if (gp_) gp_->apply(record);
}

void AutoSearcher::snapshot(study::Encoder& out) const {
    out.u8(1);
    tpe_.snapshot(out);
    if (gp_) gp_->snapshot(out);
}

void AutoSearcher::restore(study::Decoder& in) {
    if (in.u8() != 1) throw base::FormatError("a snapshot of \"auto\" has an unknown version");
    tpe_.restore(in);
    if (gp_) gp_->restore(in);
}

study::SearcherInfo describe_auto() {
    study::SearcherInfo info;
    info.name = "auto";
    info.description =
        "`gp` for the first trials if the space suits it (at most 20 parameters, no conditions, few categories), "
        "otherwise and later `tpe`. For several objectives `nsga2`.";
    info.options = {{.name = "gp_trials",
                     .kind = study::OptionInfo::Kind::integer,
                     .standard = 300,
                     .description = "So many trials `gp` suggests before `tpe` takes over.",
                     .low = 0.0,
                     .high = 1000.0}};
    info.uses_earlier_results = true;
    info.several_objectives = true;
    info.make = [](const study::StudySpec& spec) -> std::unique_ptr<Searcher> {
        if (spec.objective.several())
            return std::make_unique<Nsga2Searcher>(spec.space, spec.seed, Nsga2Searcher::Options{});
        const auto gp_trials = static_cast<std::uint64_t>(spec.searcher.options.at("gp_trials").as_int());
        return std::make_unique<AutoSearcher>(spec.space, spec.seed, gp_trials);
    };
    return info;
}

} // namespace ranktune::searchers
