// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tests the promise of deterministic studies: on clusters of other sizes, with other delays, deaths and kills, the same
// study must admit the same sequence of suggestions, reports and decisions.

#include <cstdint>
#include <string>
#include <vector>

#include "ranktune/study/spec.hpp"

namespace ranktune::simulate {

struct DeterministicResult {
    std::string description;
    std::vector<std::string> problems; ///< empty: every run gave the same sequence
    std::uint64_t runs = 0;
    std::uint64_t lives = 0;
    std::uint64_t admitted = 0;     ///< reports in one run
    std::uint64_t held = 0;         ///< reports that had to wait for their turn, in all runs
    std::uint64_t attempts = 0;     ///< in all runs
    std::uint64_t ranks_lost = 0;   ///< in all runs
    std::uint64_t heads_killed = 0; ///< in all runs
    std::uint64_t unreadable = 0;   ///< checkpoints found damaged, in all runs
    std::uint64_t unreachable = 0;  ///< attempts whose checkpoint could not be read, in all runs
    std::uint64_t takeovers = 0;    ///< of another trial's state, in one run
    std::uint64_t digest = 0;       ///< of the sequence
};

/// A random study in deterministic mode.
[[nodiscard]] study::StudySpec draw_deterministic_spec(std::uint64_t seed);

/// The same with population-based training.
[[nodiscard]] study::StudySpec draw_deterministic_population(std::uint64_t seed);

/// Runs the study once undisturbed with ranks for all its slots, then `variants` times with other numbers of
/// ranks (the first time as few as one trial needs), random delays, deaths, kills of the head, unreadable checkpoints,
/// early stops and resumptions. Checks the rules of campaign.hpp and that the sequence is the same. A violation is
/// returned as a problem, not thrown.
[[nodiscard]] DeterministicResult run_deterministic_case(const study::StudySpec& spec, std::uint64_t seed,
                                                         std::uint32_t variants);

} // namespace ranktune::simulate
