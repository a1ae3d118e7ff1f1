// SPDX-License-Identifier: Apache-2.0
#include "searchers/tpe.hpp"

#include <utility>

#include "ranktune/study/spec.hpp"

namespace ranktune::searchers {

TpeSearcher::TpeSearcher(const space::SearchSpace& space, std::uint64_t seed, const TpeOptions& options,
                         std::shared_ptr<ComputedTickets> computed)
    : PreparedSearcher(space, seed, std::make_shared<TpeModel>(space, seed, options), Startup(options.n_startup_trials),
                       std::move(computed)) {
    if (space.dimensions() <= models::Sobol::max_dimensions) sequence_.emplace(space.dimensions(), seed);
}

space::Configuration TpeSearcher::stopgap(std::uint64_t place) const {
    const auto number = static_cast<std::uint32_t>(place);
    return sequence_ ? space().spread(sequence_->point(number), place, seed())
                     : space().sample(seed(), base::TrialId{number});
}

namespace {

using OptionKind = study::OptionInfo::Kind;

std::vector<study::AlgorithmOption> tpe_options() {
    return {
        {.name = "n_startup_trials",
         .kind = OptionKind::integer,
         .standard = 10,
         .description = "Until so many results are there, suggestions are points of a scrambled Sobol sequence.",
         .low = 1.0,
         .high = 1e6,
         .foreign_names = {{"DeepHyper", "n_initial_points"}, {"hyperopt", "n_startup_jobs"}}},
        {.name = "n_ei_candidates",
         .kind = OptionKind::integer,
         .standard = 24,
         .description = "How many points are drawn for a suggestion, of which the best is taken.",
         .low = 1.0,
         .high = 1e4,
         .foreign_names = {{"hyperopt", "n_EI_candidates"}}},
        {.name = "gamma",
         .kind = OptionKind::number,
         .standard = 0.1,
         .description = "Share of the results that are good, at most 25. `constant_liar` divides it by sqrt(1 + (n - "
                        "1) / 5) while n trials train.",
         .low = 1e-3,
         .high = 1.0},
        {.name = "prior_weight",
         .kind = OptionKind::number,
         .standard = 1.0,
         .description = "Weight of the prior, a wide kernel over the whole space, beside the newest results, which "
                        "have weight 1.",
         .low = 0.0,
         .high = 1e3},
        {.name = "multivariate",
         .kind = OptionKind::boolean,
         .standard = true,
         .description = "Whether the densities are joint ones of all parameters, or independent ones of each."},
        {.name = "constant_liar",
         .kind = OptionKind::boolean,
         .standard = true,
         .description =
             "Whether trials without a result so far count as bad, so that suggestions keep away from them."},
        {.name = "branch_fraction",
         .kind = OptionKind::number,
         .standard = 0.5,
         .description = "Share of the suggestions that search one branch of a space with conditions, drawn at random, "
                        "with that branch's results alone.",
         .low = 0.0,
         .high = 1.0},
    };
}

std::unique_ptr<Searcher> make_tpe(const study::StudySpec& spec) {
    const space::Configuration& options = spec.searcher.options;
    const auto whole = [&](std::string_view name) { return static_cast<std::uint32_t>(options.at(name).as_int()); };
    return std::make_unique<TpeSearcher>(spec.space, spec.seed,
                                         TpeOptions{.n_startup_trials = whole("n_startup_trials"),
                                                    .n_ei_candidates = whole("n_ei_candidates"),
                                                    .gamma = options.at("gamma").as_double(),
                                                    .prior_weight = options.at("prior_weight").as_double(),
                                                    .multivariate = options.at("multivariate").as_bool(),
                                                    .constant_liar = options.at("constant_liar").as_bool(),
                                                    .branch_fraction = options.at("branch_fraction").as_double()});
}

} // namespace

study::SearcherInfo describe_tpe();
study::SearcherInfo describe_tpe() {
    study::SearcherInfo info;
    info.name = "tpe";
    info.description =
        "the tree-structured Parzen estimator: densities of good and bad configurations, for any space, "
        "with conditions too.";
    info.options = tpe_options();
    info.foreign_names = {"TPESampler", "hyperopt", "HyperOptSearch"};
    info.uses_earlier_results = true;
    info.make = make_tpe;
    return info;
}

} // namespace ranktune::searchers
