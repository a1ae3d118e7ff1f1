// SPDX-License-Identifier: Apache-2.0
#include "searchers/auto.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "ranktune/base/error.hpp"
#include "ranktune/study/spec.hpp"
#include "searchers/coordinates/axes.hpp"

namespace ranktune::searchers {

study::SearcherInfo describe_auto();

namespace {

/// Measured on Ackley's function, and on Hartmann's of 6 of the parameters (docs/reference/benchmarks.md): to 60
/// parameters gp alone is ahead, at 200 now this and now that one, and a suggestion takes it 40 ms.
constexpr std::size_t gp_alone = 60;

/// Those of several values.
std::size_t active_in(const space::SearchSpace& space) {
    return static_cast<std::size_t>(
        std::ranges::count_if(axes_of(space), [](const Axis& axis) { return axis.values != 1; }));
}

/// AutoSearcher::gp_from_.
std::uint64_t results_before_gp(const space::SearchSpace& space) {
    const std::size_t active = active_in(space);
    return active > gp_alone ? active / 4 : 0;
}

} // namespace

Beginner beginner_on(const space::SearchSpace& space) {
    const bool conditional =
        std::ranges::any_of(space.parameters(), [](const auto& parameter) { return parameter.condition.has_value(); });
    const std::size_t active = active_in(space);
    std::size_t categories = 0;
    std::size_t short_lists = 0;
    for (const Axis& axis : axes_of(space)) {
        if (axis.values == 1) continue;
        if (axis.category) ++categories;
        if (axis.values != 0 && axis.values <= short_list) ++short_lists;
    }
    if (active == 0 || active > GpModel::most_parameters) return Beginner::tpe;
    const bool turns = conditional || 4 * categories > active || short_lists == active || active > gp_alone;
    return turns ? Beginner::turns : Beginner::gp;
}

AutoSearcher::AutoSearcher(const space::SearchSpace& space, std::uint64_t seed, std::uint64_t gp_trials,
                           std::size_t objectives)
    : tpe_(space, seed, TpeOptions{}, computed_),
      gp_from_(results_before_gp(space)),
      gp_trials_(gp_trials),
      beginner_(beginner_on(space)) {
    if (gp_trials_ > 0 && beginner_ != Beginner::tpe)
        gp_.emplace(space, seed, GpOptions{.objectives = objectives}, computed_);
    if (objectives > 1) front_.emplace(space, seed, Nsga2Searcher::Options{});
}

std::optional<space::Configuration> AutoSearcher::suggest(std::uint64_t index, const Observations& seen) const {
    if (is_over(seen)) return front_->suggest(of_front(index), seen);
    return gp_ ? gp_->suggest(index, seen) : tpe_.suggest(index, seen);
}

study::SuggestionBasis AutoSearcher::basis(std::uint64_t index, const Observations& seen) const {
    if (is_over(seen)) return front_->basis(of_front(index), seen);
    return gp_ ? gp_->basis(index, seen) : tpe_.basis(index, seen);
}

std::uint32_t AutoSearcher::prepares_ahead(std::uint32_t groups, const Observations& seen) const {
    if (is_over(seen)) return 0;
    return gp_ ? gp_->prepares_ahead(groups, seen) : tpe_.prepares_ahead(groups, seen);
}

Searcher::Preparation AutoSearcher::prepare(std::uint64_t ticket, Observations seen) const {
    const bool by_turn = beginner_ == Beginner::turns && (ticket % 2 == 0 || seen.points() < gp_from_);
    const bool by_gp = gp_ && (front_ || (seen.points() <= gp_trials_ && !by_turn));
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
        "`gp` for the first trials if the space has at most 200 parameters, in turns with `tpe` where parameters have "
        "conditions, many are lists without order, all have at most 16 values, or there are more than 60; then `tpe`. "
        "For several objectives `gp`, then `nsga2`.";
    info.options = {{.name = "gp_trials",
                     .kind = study::OptionInfo::Kind::integer,
                     .standard = 300,
                     .description = "After so many trials `tpe` suggests alone, or `nsga2` for several objectives.",
                     .low = 0.0,
                     .high = 1000.0}};
    info.uses_earlier_results = true;
    info.several_objectives = true;
    info.make = [](const study::StudySpec& spec) -> std::unique_ptr<Searcher> {
        const auto gp_trials = static_cast<std::uint64_t>(spec.searcher.options.at("gp_trials").as_int());
        return std::make_unique<AutoSearcher>(spec.space, spec.seed, gp_trials, 1 + spec.objective.others.size());
    };
    return info;
}

} // namespace ranktune::searchers
