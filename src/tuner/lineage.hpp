// SPDX-License-Identifier: Apache-2.0
#pragma once
// The schedule that led to a trial's weights: whose they were, and with which hyper-parameters they were trained.

#include <vector>

#include "tuner/state.hpp"

namespace ranktune::tuner {

/// A piece of it: weights that a trial trained from one of its iterations to another.
struct Stretch {
    TrialId trial;
    Iteration from = 0; ///< of that trial, which had completed it
    Iteration to = 0;
    const space::Configuration* configuration = nullptr; ///< of the trial, during these; never null
    [[nodiscard]] Iteration length() const { return to - from; }
};

/// What the weights behind a trial's newest report had been through, the oldest first: one stretch, unless the trial
/// has taken over the state of others. Refers to `state`.
[[nodiscard]] std::vector<Stretch> lineage(const State& state, TrialId trial);
/// The same for its best report, which may rest on a takeover that was undone later.
[[nodiscard]] std::vector<Stretch> lineage_of_best(const State& state, TrialId trial);
/// The same for a checkpoint that it may go on from.
[[nodiscard]] std::vector<Stretch> lineage(const State& state, TrialId trial, const CheckpointRef& checkpoint);

} // namespace ranktune::tuner
