// SPDX-License-Identifier: Apache-2.0
#include "tuner/verdict.hpp"

#include <cmath>
#include <cstdint>

#include "ranktune/space/value.hpp"

namespace ranktune::tuner {
namespace {

double allowed(const State& state, const study::FailureSpec& limits) {
    return limits.tolerate * static_cast<double>(state.trials.size());
}

} // namespace

bool too_many_failed(const State& state, const study::FailureSpec& limits) {
    return static_cast<double>(state.in(study::TrialPhase::failed)) > allowed(state, limits);
}

std::string failures_sentence(const State& state, const study::FailureSpec& limits) {
    const std::size_t all = state.trials.size();
    return std::to_string(state.in(study::TrialPhase::failed)) + " of " + std::to_string(all) +
           (all == 1 ? " trial" : " trials") + " failed; failure.tolerate = " + space::float_text(limits.tolerate) +
           " allows " + std::to_string(static_cast<std::uint64_t>(std::floor(allowed(state, limits))));
}

std::string never_finite_sentence(const State& state, const study::StudySpec& spec) {
    const std::string reports =
        state.reports == 1 ? "the only report" : "all " + std::to_string(state.reports) + " reports";
    return spec.objective.metric + " was never finite: it was nan or infinite in " + reports +
           ", so no trial is better than another. Look at what a trial said; when training diverges, lower the range "
           "of the learning rate, and begin again with --fresh";
}

} // namespace ranktune::tuner
