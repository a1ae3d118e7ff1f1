// SPDX-License-Identifier: Apache-2.0
#pragma once
// A runner for the tests of trainables: one trial on ranks that are threads of the test, without MPI, files and study.
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

/// What was saved after an iteration. A sharded tensor may be there in several parts (MemoryState::whole joins them).
struct Checkpoint {
    base::Iteration iteration = 0;
    study::MemoryState state;
};

/// One trial, and what a study would tell it.
struct TrialOptions {
    space::Configuration configuration = {}; ///< hyper-parameters and options of [trainable]
    int ranks = 1;
    base::Iteration max_iterations = 10;  ///< TrialContext::max_iterations; the trial is stopped after so many
    base::Iteration pause_after = 0;      ///< the trial is paused after this iteration; 0: it is not
    base::Iteration checkpoint_every = 0; ///< it saves on the way, too, as soon as it can after so many; 0: it does not
    std::optional<Checkpoint> from = {};  ///< it goes on from there, on whatever number of ranks
    std::uint64_t seed = 1;
    std::uint32_t trial = 0;
    int cpus_per_rank = 1;
    std::vector<std::string> devices = {}; ///< of every rank
    /// Beyond it the trial is given up: its ranks wait for each other. (A rank that waits for nobody ends by itself or
    /// never.)
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
    /// What rank 0 never looked at of the configuration, if it began at the beginning.
    std::vector<std::string> unread;

    /// The metric in the last report. Throws base::UsageError when there is none, with the failure.
    [[nodiscard]] double last(std::string_view metric) const;
    /// The last one. Throws base::UsageError when there is none, with the failure.
    [[nodiscard]] const Checkpoint& checkpoint() const;
};

/// A class or a function that need not be registered.
template <std::derived_from<trainables::Trainable> T>
[[nodiscard]] trainables::Registration trainable(study::TrainableInfo info = {}) {
    return {std::move(info), [] { return std::make_unique<T>(); }, {}};
}
[[nodiscard]] inline trainables::Registration function(trainables::TrainFunction train,
                                                       study::TrainableInfo info = {}) {
    return {std::move(info), {}, std::move(train)};
}

/// Runs a trial to its end. What the trainable throws is in the result, as are mistakes of a collective kind: ranks
/// that do not call the same operations, or hold different parameters when they save. The configuration is not checked
/// against `trainable.info` (`ranktune validate` does that with a study file). Throws base::UsageError for options that
/// make no sense.
[[nodiscard]] TrialRun run_trial(const trainables::Registration& trainable, const TrialOptions& options = {});

/// What is different when the trial is paused after `iteration` and goes on from its checkpoint, instead of running
/// through; empty: nothing, bit for bit, in reports and in the last checkpoint. Metrics in `ignored` (times, say) may
/// differ. A trial that fails, and one that saves nothing, is told as a difference.
[[nodiscard]] std::string resume_difference(const trainables::Registration& trainable, const TrialOptions& options,
                                            base::Iteration iteration, const std::vector<std::string>& ignored = {});

} // namespace ranktune::testing
