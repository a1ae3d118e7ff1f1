// SPDX-License-Identifier: Apache-2.0
#pragma once
// The core under a virtual cluster, in virtual time. An event heap over Tuner::step: groups that train, report, save
// and fail, in one job or several, without wires and processes. The head answers one event after the other.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ranktune/study/record.hpp"
#include "ranktune/study/spec.hpp"
#include "simulate/curves.hpp"
#include "simulate/faults.hpp"
#include "simulate/model.hpp"
#include "simulate/recordings.hpp"

namespace ranktune::simulate {

/// What is simulated.
struct Setup {
    study::StudySpec spec;
    Model model;
    std::uint32_t groups = 1; ///< ranks: `groups` times the largest number that a trial may ask for
    FaultModel faults = {};
    std::shared_ptr<const Recordings> recordings = nullptr; ///< null: curves by power laws
    std::optional<study::WarmStarted> earlier = {};         ///< searcher.warm_start
};

/// How far measured curves had to be stretched.
struct Extrapolation {
    double beyond = 0.0; ///< share of the reports for which there are no data
    /// To the nearest measured configuration; nullopt: curves do not depend on configurations.
    std::optional<Distances> distances;
};

/// Figures of a simulated study.
struct Figures {
    study::StudyOutcome outcome = study::StudyOutcome::ok;
    std::uint64_t ranks = 0;
    std::uint64_t reports = 0;
    std::uint64_t trials = 0;
    double seconds = 0.0;        ///< virtual time to the end of the study, waits between jobs included
    double in_jobs_s = 0.0;      ///< the same without these waits
    double training_s = 0.0;     ///< rank-seconds in iterations
    double repeated_s = 0.0;     ///< rank-seconds of these that were lost and trained again
    double core_hours = 0.0;     ///< of all ranks, in all jobs
    double head_s = 0.0;         ///< that the head computed
    double best = 0.0;           ///< metric of the best trial at its best iteration, without noise; NaN: no report
    double best_reachable = 0.0; ///< Curves::best_reachable, as a metric
    /// When the best trial first was, without noise, within 1 % of the best reachable quality; nullopt: never.
    std::optional<double> near_best_s;
    std::uint32_t jobs = 0;
    std::uint64_t ranks_lost = 0;
    std::optional<Extrapolation> extrapolation; ///< of measured curves

    /// Share of the ranks' time in jobs that was training, 0 to 1.
    [[nodiscard]] double utilisation() const;
    /// Share of the training that was lost and done again.
    [[nodiscard]] double repeated() const { return training_s > 0.0 ? repeated_s / training_s : 0.0; }
};

/// Ranks of a group: of the largest trial; if some trials have GPUs and others none, of the largest of both.
[[nodiscard]] std::uint32_t ranks_of_group(const study::StudySpec& spec);

/// The text in the first record of a simulated study: what was simulated.
[[nodiscard]] std::string description(const Setup& setup);

/// Told now and then how many trials there are.
using Progressing = std::function<void(std::uint64_t trials)>;

/// Runs the study to its end. Deterministic: a function of `setup` alone. `sink`, if there is one, gets every record,
/// in batches. Throws base::UsageError as the constructor of Tuner and make_curves, when jobs are so short that the
/// study gets nowhere, and when it takes longer than three centuries; and what the sink throws.
[[nodiscard]] Figures simulate(const Setup& setup, const std::string& uuid, const std::string& version,
                               study::RecordSink* sink, const Progressing& progress = {});

} // namespace ranktune::simulate
