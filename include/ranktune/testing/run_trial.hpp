// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs one trial in a test of a trainable: its ranks are threads, without MPI, files and a study.
//
//     using namespace ranktune::testing;
//     const TrialOptions options{.configuration = ranktune::Configuration({{"lr", 0.5}}), .ranks = 2};
//     const TrialRun run = run_trial(trainable<CurveFit>(), options);
//     assert(run.failure.empty() && run.last("loss") < 0.1);
//     assert(resume_difference(trainable<CurveFit>(), options, 4).empty());   // bit for bit

#include <chrono>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ranktune/space/configuration.hpp"
#include "ranktune/study/state.hpp"
#include "ranktune/study/trainable_info.hpp"
#include "ranktune/trainables/trainable.hpp"

namespace ranktune::testing {

/// The state saved after an iteration. A sharded tensor may be in several parts (MemoryState::whole joins them).
struct Checkpoint {
    base::Iteration iteration = 0;
    study::MemoryState state;
};

/// One trial, and what a study would give it.
struct TrialOptions {
    space::Configuration configuration = {}; ///< hyper-parameters and options of [trainable]
    std::vector<study::DataFile> data = {};  ///< [data]
    int ranks = 1;
    base::Iteration max_iterations = 10;  ///< TrialContext::max_iterations; the trial is stopped then
    base::Iteration pause_after = 0;      ///< pauses the trial after this iteration; 0: no pause
    base::Iteration checkpoint_every = 0; ///< also saves as soon as possible after this many iterations; 0: no
    std::optional<Checkpoint> from = {};  ///< starts from this checkpoint, on any number of ranks
    std::uint64_t seed = 1;
    std::uint32_t trial = 0;
    int cpus_per_rank = 1;
    std::vector<std::string> devices = {}; ///< of every rank
    /// Then the trial is given up: its ranks wait for each other. (Code that never returns cannot be stopped.)
    std::chrono::milliseconds time_limit = std::chrono::minutes(1);
};

/// Rank 0's metrics after an iteration.
struct Report {
    base::Iteration iteration = 0;
    trainables::Metrics metrics;
    /// Throws base::UsageError naming the metrics that there are.
    [[nodiscard]] double at(std::string_view metric) const;
};

/// What a trial did.
struct TrialRun {
    enum class End : std::uint8_t { finished, stopped, paused, failed };
    End end = End::failed;               ///< finished: by itself
    std::string failure;                 ///< "rank 1: no data", of the lowest rank that says why; empty: none
    std::vector<Report> reports;         ///< one per iteration
    std::vector<Checkpoint> checkpoints; ///< in the order in which they were saved
    std::vector<std::string> log;        ///< TrialContext::log of all ranks
    /// Entries of the configuration that rank 0 never read, if the trial started from the beginning.
    std::vector<std::string> unread;

    /// The metric in the last report. Throws base::UsageError when there is none, with the failure.
    [[nodiscard]] double last(std::string_view metric) const;
    /// The last checkpoint. Throws base::UsageError when there is none, with the failure.
    [[nodiscard]] const Checkpoint& checkpoint() const;
};

/// A registration of a class or a function, for this call only.
template <std::derived_from<trainables::Trainable> T>
[[nodiscard]] trainables::Registration trainable(study::TrainableInfo info = {}) {
    return {std::move(info), [] { return std::make_unique<T>(); }, {}};
}
[[nodiscard]] inline trainables::Registration function(trainables::TrainFunction train,
                                                       study::TrainableInfo info = {}) {
    return {std::move(info), {}, std::move(train)};
}

/// Runs a trial to its end. The result contains exceptions of the trainable, and mistakes in collective use: ranks that
/// call different operations, or hold different parameters when they save. The configuration is not checked against
/// `trainable.info` (`ranktune validate` does that with a study file). Throws base::UsageError for options that make no
/// sense.
[[nodiscard]] TrialRun run_trial(const trainables::Registration& trainable, const TrialOptions& options = {});

/// The difference between a trial that is paused after `iteration` and resumed from its checkpoint, and one that runs
/// through; empty: reports and the last checkpoint agree bit for bit. Metrics in `ignored` (times, for example) may
/// differ. A trial that fails or saves nothing counts as a difference.
[[nodiscard]] std::string resume_difference(const trainables::Registration& trainable, const TrialOptions& options,
                                            base::Iteration iteration, const std::vector<std::string>& ignored = {});

} // namespace ranktune::testing
