// SPDX-License-Identifier: Apache-2.0
#include "searchers/gp.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "ranktune/base/error.hpp"
#include "ranktune/study/spec.hpp"

namespace ranktune::searchers {

study::SearcherInfo describe_gp();

namespace {

using Kind = study::OptionInfo::Kind;

std::size_t dimensions_with_directions(const space::SearchSpace& space) {
    if (space.dimensions() > models::Sobol::max_dimensions)
        throw base::UsageError("the gp searcher takes at most " + std::to_string(models::Sobol::max_dimensions) +
                               " parameters, the space has " + std::to_string(space.dimensions()) +
                               "; use the random searcher");
    return space.dimensions();
}

/// The seed of a sequence that has nothing in common with that of `seed`.
std::uint64_t other_seed(std::uint64_t seed) { return base::RngStream(seed, base::Purpose::suggest, 0, 1)(); }

} // namespace

struct GpSearcher::Shared {
    Shared(const space::SearchSpace& space, std::uint64_t seed, const GpOptions& options)
        : first(dimensions_with_directions(space), seed), model(space, seed, options), own(space) {}

    space::Configuration suggestion(std::uint64_t ticket, const Observations& seen, const std::vector<Open>& others) {
        std::vector<std::vector<double>> points;
        for (const Open& other : others) {
            if (other.configuration) {
                points.push_back(model.coordinates(*other.configuration));
            } else if (const auto made = computed.find(other.number); made != computed.end()) {
                points.push_back(made->second);
            }
        }
        const auto modelled = model.suggest(ticket, seen, points);
        const space::Configuration answer =
            modelled ? *modelled : own.decode(first.point(static_cast<std::uint32_t>(ticket)), ticket);
        computed[ticket] = model.coordinates(answer);
        while (computed.size() > 1024) computed.erase(computed.begin());
        return answer;
    }

    models::Sobol first; ///< while there is no model
    GpModel model;
    space::SearchSpace own;
    std::map<std::uint64_t, std::vector<double>> computed; ///< by the tickets of this process
};

GpSearcher::GpSearcher(const space::SearchSpace& space, std::uint64_t seed, const GpOptions& options)
    : space_(space),
      stopgaps_(dimensions_with_directions(space), other_seed(seed)),
      shared_(std::make_shared<Shared>(space, seed, options)) {}

std::optional<space::Configuration> GpSearcher::suggest(std::uint64_t index, const Observations&) const {
    return space_.decode(stopgaps_.point(static_cast<std::uint32_t>(index)), index);
}

Searcher::Preparation GpSearcher::prepare(std::uint64_t ticket, Observations seen) const {
    std::vector<Open> others;
    const auto opened = std::ranges::find(open_, ticket, &Open::number);
    if (opened != open_.end())
        for (const Open& each : open_)
            if (std::ranges::find(opened->others, each.number) != opened->others.end()) others.push_back(each);
    return [shared = shared_, ticket, seen = std::move(seen), others = std::move(others)] {
        return shared->suggestion(ticket, seen, others);
    };
}

void GpSearcher::apply(const study::Record& record) {
    if (const auto* opened = std::get_if<study::TicketOpened>(&record)) {
        Open open{opened->ticket, {}, {}, true};
        for (const Open& each : open_)
            if (each.waits) open.others.push_back(each.number);
        open_.push_back(std::move(open));
    } else if (const auto* prepared = std::get_if<study::TicketPrepared>(&record)) {
        const auto open = std::ranges::find(open_, prepared->ticket, &Open::number);
        if (open == open_.end()) return;
        open->configuration = prepared->configuration;
        open->waits = prepared->configuration.has_value();
        forget();
    } else if (const auto* created = std::get_if<study::TrialCreated>(&record)) {
        if (created->origin.kind != study::Origin::Kind::ticket) return;
        const auto open = std::ranges::find(open_, created->origin.index, &Open::number);
        if (open == open_.end()) return;
        open->waits = false;
        forget();
    }
}

/// Drops tickets that a trial has taken and that no other one has still to keep away from.
void GpSearcher::forget() {
    std::set<std::uint64_t> needed;
    for (const Open& each : open_) {
        if (!each.waits) continue;
        needed.insert(each.number);
        if (!each.configuration) needed.insert(each.others.begin(), each.others.end());
    }
    std::erase_if(open_, [&](const Open& each) { return !needed.contains(each.number); });
}

void GpSearcher::snapshot(study::Encoder& out) const {
    out.u8(1);
    out.varint(open_.size());
    for (const Open& each : open_) {
        out.varint(each.number);
        out.varint(each.others.size());
        for (const std::uint64_t other : each.others) out.varint(other);
        out.boolean(each.configuration.has_value());
        if (each.configuration) study::encode(*each.configuration, out);
        out.boolean(each.waits);
    }
}

void GpSearcher::restore(study::Decoder& in) {
    if (in.u8() != 1) throw base::FormatError("a snapshot of \"gp\" has an unknown version");
    open_.clear();
    for (std::size_t n = in.count(); n > 0; --n) {
        Open each;
        each.number = in.varint();
        for (std::size_t k = in.count(); k > 0; --k) each.others.push_back(in.varint());
        if (in.boolean()) each.configuration = study::decode_configuration(in);
        each.waits = in.boolean();
        open_.push_back(std::move(each));
    }
}

namespace {

std::vector<study::AlgorithmOption> gp_options() {
    return {
        {.name = "startup",
         .kind = Kind::integer,
         .standard = 10,
         .description = "So many finite results make a model; before, configurations are points of a Sobol sequence.",
         .low = 2.0,
         .high = 1000.0,
         .foreign_names = {{"Optuna", "n_startup_trials"}}},
        {.name = "max_results",
         .kind = Kind::integer,
         .standard = 500,
         .description = "The model holds at most so many results: the best and the newest.",
         .low = 20.0,
         .high = 2000.0},
    };
}

void check_gp(const study::AlgorithmCheck& check) {
    if (check.coordinates <= models::Sobol::max_dimensions) return;
    check.complain("type", "\"gp\" takes at most " + std::to_string(models::Sobol::max_dimensions) +
                               " parameters, the space has " + std::to_string(check.coordinates) + "; use \"random\"");
}

std::unique_ptr<Searcher> make_gp(const study::StudySpec& spec) {
    const space::Configuration& options = spec.searcher.options;
    const auto whole = [&](std::string_view name) { return static_cast<std::size_t>(options.at(name).as_int()); };
    return std::make_unique<GpSearcher>(spec.space, spec.seed,
                                        GpOptions{.startup = whole("startup"), .max_results = whole("max_results")});
}

} // namespace

study::SearcherInfo describe_gp() {
    study::SearcherInfo info;
    info.name = "gp";
    info.description =
        "Bayesian optimisation: the largest expected improvement under a Gaussian process; for trials that are "
        "expensive and few.";
    info.options = gp_options();
    info.foreign_names = {"bayesopt", "bayesian", "GPSampler", "skopt"};
    info.check = check_gp;
    info.uses_earlier_results = true;
    info.make = make_gp;
    return info;
}

} // namespace ranktune::searchers
