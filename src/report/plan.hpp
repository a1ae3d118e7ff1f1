// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a study will do, before it starts: trials per rung, iterations, and whether any trial can reach the top.

#include <cstdint>
#include <string>
#include <vector>

#include "ranktune/study/spec.hpp"

namespace ranktune::report {

struct Plan {
    struct Rung {
        base::Iteration iteration = 0;
        std::uint64_t trials = 0; ///< expected to train up to here
    };
    std::vector<Rung> rungs;      ///< ascending; the last one is max_iterations
    std::uint64_t iterations = 0; ///< expected in all
    std::uint64_t full = 0;       ///< num_trials * max_iterations
    /// Checkpoints at any one time, at most: of each trial that runs, and of all that are paused.
    std::uint64_t running_checkpoints = 0;
    std::uint64_t paused_checkpoints = 0;
    /// Never more than `iterations`, but fewer where reports say so. Without it they are an estimate: ASHA decides as
    /// results arrive, and promotes more trials than the best share where better ones come later.
    bool at_most = false;
    std::string warning; ///< when no trial can reach the top rung; empty otherwise
};

[[nodiscard]] Plan plan(const study::StudySpec& spec);
/// Configurations that the searcher has: the size of a grid; without end (2^64 - 1) otherwise.
[[nodiscard]] std::uint64_t grid_size(const study::StudySpec& spec);
/// `60 trials` + scheduler in words: `60 trials · ASHA promote · rungs 1/3/9/27: about 60/20/6/2 trials`
[[nodiscard]] std::string scheduler_words(const study::StudySpec& spec);

} // namespace ranktune::report
