// SPDX-License-Identifier: Apache-2.0
#pragma once
// Campaign: random studies on random clusters with random faults, each drawn from one seed, and the rules that hold for
// all of them.

#include <cstdint>
#include <string>
#include <vector>

#include "ranktune/study/spec.hpp"
#include "simulate/cluster/cluster.hpp"

namespace ranktune::simulate {

/// A study and its lives. A later life is used only if the study is not over; the last one has no deaths and no early
/// stop, so that every study must end in it.
struct Case {
    study::StudySpec spec;
    std::vector<ClusterOptions> lives;
    bool reopens = false;    ///< between two lives, some of the trials that have failed are tried again
    std::string description; ///< one line: scheduler, sizes, faults
};
[[nodiscard]] Case draw_case(std::uint64_t seed);

struct CaseResult {
    std::string description;
    std::vector<std::string> problems; ///< empty: all rules hold
    std::uint32_t lives = 0;
    std::uint64_t trials = 0;
    std::uint64_t records = 0;
    std::uint64_t steps = 0; ///< rounds of the simulated service loops
    std::uint64_t messages = 0;
    std::uint64_t attempts = 0;
    std::uint64_t ranks_lost = 0;
    std::uint64_t heads_killed = 0;
    std::uint64_t failed_trials = 0;
    double virtual_seconds = 0.0;
    study::StudyOutcome outcome = study::StudyOutcome::ok; ///< of the last life
    std::uint64_t digest = 0;                              ///< of the final state
};

/// Runs the case of `seed` and checks: every machine ends, within a limit of virtual time; the core's invariants hold
/// after every event; after every life the records, encoded, decoded and applied to a new core, give the same digest;
/// the last life ends the study with every trial in a final state and every kept checkpoint present; of a population,
/// the core says at every report and checkpoint what the weights have been through. A violation is
/// returned as a problem, not thrown.
[[nodiscard]] CaseResult run_case(std::uint64_t seed);

} // namespace ranktune::simulate
