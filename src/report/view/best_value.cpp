// SPDX-License-Identifier: Apache-2.0
#include "report/view/best_value.hpp"

#include <cmath>

#include <fmt/format.h>

#include "report/screens/text.hpp"

namespace ranktune::report {
namespace {

tuner::Repetitions repetitions(const tuner::Tuner& tuner, study::TrialId trial) {
    return tuner::repetitions_of(trial, tuner.state().trials, tuner.spec());
}

} // namespace

double value_of_best(const tuner::Tuner& tuner) {
    const tuner::State& state = tuner.state();
    if (!state.best) return tuner::not_a_number;
    return tuner.spec().searcher.repeats > 1 ? repetitions(tuner, *state.best).mean : state.trial(*state.best).best;
}

std::string text_of_best(const tuner::Tuner& tuner) {
    const tuner::State& state = tuner.state();
    if (!state.best) return "-";
    if (tuner.spec().searcher.repeats == 1) return metric_text(state.trial(*state.best).best);
    return fmt::format("{} (mean of {})", text_of_mean(tuner, *state.best), repetitions(tuner, *state.best).counted());
}

std::string text_of_mean(const tuner::Tuner& tuner, study::TrialId trial) {
    if (tuner.spec().searcher.repeats == 1) return {};
    const tuner::Repetitions all = repetitions(tuner, trial);
    if (std::isnan(all.deviation)) return metric_text(all.mean);
    return metric_text(all.mean) + " +- " + metric_text(all.deviation);
}

} // namespace ranktune::report
