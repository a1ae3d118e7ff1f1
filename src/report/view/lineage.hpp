// SPDX-License-Identifier: Apache-2.0
#pragma once
// The schedule that led to a trial's weights: whose they were, and with which hyper-parameters they were trained.

#include <vector>

#include "tuner/state.hpp"

namespace ranktune::report {

/// A piece of it: weights that a trial trained from one of its iterations to another.
struct Stretch {
    study::TrialId trial;
    study::Iteration from = 0; ///< of that trial, which had completed it
    study::Iteration to = 0;
    const space::Configuration* configuration = nullptr; ///< of the trial, during these; never null
    [[nodiscard]] study::Iteration length() const { return to - from; }
};

/// What the weights have been through that the trial had after `iteration`, the oldest first. One stretch, unless the
/// trial has taken over the state of others. Refers to `state`.
[[nodiscard]] std::vector<Stretch> lineage(const tuner::State& state, study::TrialId trial, study::Iteration iteration);

} // namespace ranktune::report
