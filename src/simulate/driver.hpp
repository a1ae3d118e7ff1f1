// SPDX-License-Identifier: Apache-2.0
#pragma once
// The core under a virtual cluster, in virtual time. An event heap over Tuner::step: groups that train, report and
// save, without wires, processes and faults of machines. Answers arrive at once.

#include <cstdint>
#include <optional>

#include "ranktune/study/record.hpp"
#include "ranktune/study/spec.hpp"
#include "simulate/model.hpp"

namespace ranktune::simulate {

/// What is simulated.
struct Setup {
    study::StudySpec spec;
    Model model;
    std::uint32_t groups = 1; ///< ranks: `groups` times the largest number that a trial may ask for
};

/// Figures of a simulated study.
struct Figures {
    study::StudyOutcome outcome = study::StudyOutcome::ok;
    std::uint64_t ranks = 0;
    std::uint64_t reports = 0;
    std::uint64_t trials = 0;
    double seconds = 0.0;        ///< virtual time to the end of the study
    double training_s = 0.0;     ///< rank-seconds in iterations
    double core_hours = 0.0;     ///< of all ranks, to the end of the study
    double best = 0.0;           ///< metric of the best trial at its best iteration, without noise; NaN: no report
    double best_reachable = 0.0; ///< Curves::best_reachable, as a metric
    /// When the best trial first had, without noise, 0.99 of the best reachable quality; nullopt: never.
    std::optional<double> near_best_s;

    /// Share of the ranks' time that was training, 0 to 1.
    [[nodiscard]] double utilisation() const;
};

/// The text in the first record of a simulated study: what was simulated.
[[nodiscard]] std::string description(const Setup& setup);

/// Runs the study to its end. Deterministic: a function of `setup` alone. `sink`, if there is one, gets every record,
/// in batches. Throws base::UsageError as the constructor of Tuner, and what the sink throws.
[[nodiscard]] Figures simulate(const Setup& setup, const std::string& uuid, const std::string& version,
                               study::RecordSink* sink);

} // namespace ranktune::simulate
