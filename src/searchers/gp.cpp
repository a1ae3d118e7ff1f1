// SPDX-License-Identifier: Apache-2.0
#include "searchers/gp.hpp"

#include <span>
#include <string>
#include <utility>
#include <vector>

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
    Shared(const space::SearchSpace& space, std::uint64_t study_seed, const GpOptions& options,
           std::shared_ptr<ComputedTickets> tickets)
        : first(dimensions_with_directions(space), study_seed),
          model(space, study_seed, options),
          own(space),
          seed(study_seed),
          computed(std::move(tickets)) {}

    Suggestion suggestion(std::uint64_t ticket, const Observations& seen,
                          const std::vector<SuggestedTickets::Open>& others) {
        const std::vector<space::Configuration> open = computed->of(others);
        auto answer = model.suggest(ticket, seen, open);
        if (!answer) answer = beginning(ticket, open);
        computed->keep(ticket, answer->configuration);
        return *std::move(answer);
    }
    /// While there is no model.
    Suggestion beginning(std::uint64_t ticket, std::span<const space::Configuration> open) const {
        base::RngStream random(seed, base::Purpose::suggest, static_cast<std::uint32_t>(ticket), 2);
        auto point = own.spread(first.point(static_cast<std::uint32_t>(ticket)), ticket, other_seed(seed));
        return {model.tried().or_another(std::move(point), random, open), model.why_none()};
    }

    models::Sobol first;
    GpModel model;
    space::SearchSpace own;
    std::uint64_t seed;
    std::shared_ptr<ComputedTickets> computed;
};

GpSearcher::GpSearcher(const space::SearchSpace& space, std::uint64_t seed, const GpOptions& options,
                       std::shared_ptr<ComputedTickets> computed)
    : space_(space),
      stopgaps_(dimensions_with_directions(space), other_seed(seed)),
      shared_(std::make_shared<Shared>(space, seed, options, std::move(computed))),
      tried_(space),
      seed_(seed),
      startup_(options.startup) {}

std::optional<space::Configuration> GpSearcher::suggest(std::uint64_t index, const Observations& seen) const {
    return stopgap(space_.spread(stopgaps_.point(static_cast<std::uint32_t>(index)), index, seed_), seed_, index, seen,
                   tried_, tickets_);
}

Searcher::Preparation GpSearcher::prepare(std::uint64_t ticket, Observations seen) const {
    return [shared = shared_, ticket, seen = std::move(seen), others = tickets_.others_of(ticket)] {
        return shared->suggestion(ticket, seen, others);
    };
}

void GpSearcher::apply(const study::Record& record) { tickets_.apply(record); }

void GpSearcher::snapshot(study::Encoder& out) const { tickets_.snapshot(out); }

void GpSearcher::restore(study::Decoder& in) { tickets_.restore(in, name()); }

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
        {.name = "all_iterations",
         .kind = Kind::boolean,
         .standard = false,
         .description = "Learn from results at all iterations at which trials stopped, as MOBSTER does; otherwise "
                        "at the largest with enough results."},
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
    const bool all_iterations = options.at("all_iterations").as_bool();
    return std::make_unique<GpSearcher>(spec.space, spec.seed,
                                        GpOptions{.startup = whole("startup"),
                                                  .max_results = whole("max_results"),
                                                  .max_iterations = all_iterations ? spec.max_iterations : 0,
                                                  .objectives = 1 + spec.objective.others.size()});
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
    info.several_objectives = true;
    info.make = make_gp;
    return info;
}

} // namespace ranktune::searchers
