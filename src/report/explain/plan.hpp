// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a study will do, before it starts: trials per rung, iterations, and whether any trial can reach the top.

#include <cstdint>

#include "ranktune/study/spec.hpp"

namespace ranktune::report {

struct Plan {
    /// Always has words, rungs and iterations, even if the scheduler gives none. For ASHA they are an estimate: ASHA
    /// decides as results arrive, and promotes more trials when better ones come later.
    study::SchedulerPlan scheduler;
    std::uint64_t full = 0;                ///< num_trials * max_iterations
    std::uint64_t running_checkpoints = 0; ///< most that each running trial has at one time
};

[[nodiscard]] Plan plan(const study::StudySpec& spec);
/// The same, with estimates that the scheduler has been tried for (schedulers::rehearse), on `groups` groups; 0: not
/// known. The last one is remembered, for views that are drawn again and again.
[[nodiscard]] Plan rehearsed_plan(const study::StudySpec& spec, std::uint32_t groups = 0);
/// Number of configurations that the searcher has: the size of the grid, or 2^64 - 1 for other searchers.
[[nodiscard]] std::uint64_t grid_size(const study::StudySpec& spec);

} // namespace ranktune::report
