// SPDX-License-Identifier: Apache-2.0
#pragma once
// The promise of deterministic studies, put to the test: the same study on clusters of different sizes, with other
// delays, deaths and kills, has to admit the same sequence of suggestions, reports and decisions.

#include <cstdint>
#include <string>
#include <vector>

#include "ranktune/study/spec.hpp"

namespace ranktune::sim {

struct DeterministicResult {
    std::string description;
    std::vector<std::string> problems; ///< empty: every run gave the same sequence
    std::uint64_t runs = 0;
    std::uint64_t lives = 0;
    std::uint64_t admitted = 0;     ///< reports, in one run
    std::uint64_t held = 0;         ///< reports that came before their turn, in all runs
    std::uint64_t attempts = 0;     ///< in all runs
    std::uint64_t ranks_lost = 0;   ///< in all runs
    std::uint64_t heads_killed = 0; ///< in all runs
    std::uint64_t unreadable = 0;   ///< checkpoints that were given up, in all runs
    std::uint64_t unreachable = 0;  ///< attempts that could not read theirs at the time, in all runs
    std::uint64_t digest = 0;       ///< of the sequence
};

/// A random study in deterministic mode.
[[nodiscard]] study::StudySpec draw_deterministic_spec(std::uint64_t seed);

/// Runs the study of `seed` once undisturbed with ranks for all its slots, then `variants` times with other numbers of
/// ranks (the first time as few as one trial needs), random delays, deaths, kills of the head, checkpoints that cannot
/// be read, early stops and resumptions. Checks everything that campaign.hpp checks, and that the sequence is the same.
/// Never throws for a violation: it becomes a problem.
[[nodiscard]] DeterministicResult run_deterministic_case(std::uint64_t seed, std::uint32_t variants);

} // namespace ranktune::sim
