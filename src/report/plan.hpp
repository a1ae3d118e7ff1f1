// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a study will do, before it starts: trials per rung, iterations, and whether any trial can reach the top.

#include <cstdint>

#include "ranktune/study/spec.hpp"

namespace ranktune::report {

struct Plan {
    /// Has words, rungs and iterations, whatever the scheduler says of itself. (ASHA's is an estimate: it decides as
    /// results arrive, and promotes more trials than the best share where better ones come later.)
    study::SchedulerPlan scheduler;
    std::uint64_t full = 0;                ///< num_trials * max_iterations
    std::uint64_t running_checkpoints = 0; ///< of each trial that runs, at any one time, at most
};

[[nodiscard]] Plan plan(const study::StudySpec& spec);
/// Configurations that the searcher has: the size of a grid; without end (2^64 - 1) otherwise.
[[nodiscard]] std::uint64_t grid_size(const study::StudySpec& spec);

} // namespace ranktune::report
