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

/// The model, and what is suggested while there is none.
class ModelOrSobol final : public SuggestingModel {
  public:
    ModelOrSobol(const space::SearchSpace& space, std::uint64_t seed, const GpOptions& options)
        : first_(dimensions_with_directions(space), seed), model_(space, seed, options), space_(space), seed_(seed) {}

    [[nodiscard]] Suggestion suggest(Turn turn, const Observations& seen,
                                     std::span<const space::Configuration> others) override {
        if (auto answer = model_.suggest(turn, seen, others)) return *std::move(answer);
        base::RngStream random(seed_, base::Purpose::suggest, static_cast<std::uint32_t>(turn.ticket), 2);
        auto point = space_.spread(first_.point(static_cast<std::uint32_t>(turn.place)), turn.place, other_seed(seed_));
        return {model_.tried().or_another(std::move(point), random, others), model_.why_none()};
    }

  private:
    models::Sobol first_;
    GpModel model_;
    space::SearchSpace space_;
    std::uint64_t seed_;
};

} // namespace

GpSearcher::GpSearcher(const space::SearchSpace& space, std::uint64_t seed, const GpOptions& options,
                       std::shared_ptr<ComputedTickets> computed)
    : PreparedSearcher(space, seed, std::make_shared<ModelOrSobol>(space, seed, options), Startup(options.startup),
                       std::move(computed)),
      stopgaps_(dimensions_with_directions(space), other_seed(seed)) {}

space::Configuration GpSearcher::stopgap(std::uint64_t place) const {
    return space().spread(stopgaps_.point(static_cast<std::uint32_t>(place)), place, seed());
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
