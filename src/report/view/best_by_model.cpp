// SPDX-License-Identifier: Apache-2.0
#include "report/view/best_by_model.hpp"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "ranktune/searchers/observations.hpp"
#include "report/screens/text.hpp"
#include "searchers/gp/gp_model.hpp"
#include "searchers/gp/gp_repeats.hpp"

namespace ranktune::report {

std::optional<BestByModel> best_by_model(const tuner::Tuner& tuner) {
    const tuner::State& state = tuner.state();
    const study::StudySpec& spec = tuner.spec();
    if (!state.best || spec.space.dimensions() > searchers::GpModel::most_parameters || spec.objective.several() ||
        spec.searcher.repeats > 1 || spec.scheduler.algorithm->explores)
        return {};
    const study::Iteration far_enough = state.trial(*state.best).best_iteration;
    searchers::Observations table(spec.space.dimensions());
    std::vector<study::TrialId> trials;
    for (std::uint32_t i = 0; i < state.trials.size(); ++i) {
        const tuner::Trial& trial = state.trials[i];
        if (!std::isfinite(trial.best) || trial.phase == study::TrialPhase::failed || trial.iteration < far_enough)
            continue;
        const study::TrialId id(i);
        table.asked(id, 0, spec.space, tuner::best_configuration(trial));
        table.reported(id, 1, study::score(trial.best, spec.objective.mode));
        table.over(id, 1, study::TrialPhase::finished);
        trials.push_back(id);
    }
    if (trials.size() < searchers::enough_for_noise) return {};
    searchers::GpModel model(spec.space, spec.seed, {.startup = searchers::enough_for_noise});
    const auto best = model.best(table);
    if (!best || !best->noisy) return {};
    const double mean = spec.objective.mode == study::Mode::max ? best->mean : -best->mean;
    return BestByModel{table[best->line].trial, mean, best->deviation, best->results};
}

std::string text_of(const std::optional<BestByModel>& best, const tuner::Tuner& tuner) {
    if (!best) return {};
    const bool same = best->trial == tuner.state().best;
    return fmt::format("#{}  {} {} +- {}, by a model of {} results, which are noisy{}", best->trial.value(),
                       tuner.spec().objective.metric, metric_text(best->mean), metric_text(best->deviation),
                       best->results,
                       same ? "" : fmt::format(": #{} may just have been lucky", tuner.state().best->value()));
}

} // namespace ranktune::report
