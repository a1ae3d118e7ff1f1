// SPDX-License-Identifier: Apache-2.0
#pragma once
// TrialLoop: one rank's part in one attempt, independent of what trains: talks to the head, measures training time,
// decides when to checkpoint, how to pause and how the attempt ends.

#include <chrono>
#include <exception>
#include <functional>
#include <optional>
#include <span>

#include "ranktune/study/spec.hpp"
#include "worker/bodies/trial_body.hpp"
#include "worker/checkpoints/checkpoint_schedule.hpp"
#include "worker/trial/attempt_port.hpp"
#include "worker/trial/own_end.hpp"
#include "worker/trial/runner.hpp"

namespace ranktune::worker {

/// Measures training time: runs while user code runs.
class Stopwatch {
  public:
    using Clock = std::chrono::steady_clock;
    explicit Stopwatch(double seconds) : seconds_(seconds) {}
    void start() { began_ = Clock::now(); }
    void stop() {
        if (began_) seconds_ += std::chrono::duration<double>(Clock::now() - *began_).count();
        began_.reset();
    }
    [[nodiscard]] double seconds() const { return seconds_; }

  private:
    double seconds_;
    std::optional<Clock::time_point> began_;
};

/// After every iteration the leader reports to the head and turns the verdict, and what the body can save, into one
/// word, which all ranks obey. Used by the trial thread only; references must outlive it.
class TrialLoop {
  public:
    /// ddp::Collective::fail of the trial's group: this rank leaves and the others are told.
    using Fail = std::function<void()>;

    TrialLoop(const study::StudySpec& spec, const Assignment& assignment, AttemptPort& port, Fail fail);
    TrialLoop(const TrialLoop&) = delete;
    TrialLoop& operator=(const TrialLoop&) = delete;

    /// Collective. Runs the body to the end of the attempt; run_attempt describes the outcomes. Call once.
    [[nodiscard]] RunnerEnded run(TrialBody& body);

    /// Iterations completed so far, earlier attempts included.
    [[nodiscard]] base::Iteration iteration() const { return point_.iteration; }
    /// For bodies, which write their own checkpoints.
    [[nodiscard]] CheckpointSchedule& checkpoints() { return checkpoints_; }

  private:
    [[nodiscard]] RunnerEnded train();
    [[nodiscard]] RunnerEnded failed_here(const std::exception_ptr& error);
    [[nodiscard]] study::Verb after(const trainables::Metrics& metrics);
    [[nodiscard]] Word word_after(const trainables::Metrics& metrics);
    [[nodiscard]] study::Verdict ask_head(const trainables::Metrics& metrics);
    [[nodiscard]] Word word_on(const study::Verdict& verdict);
    [[nodiscard]] double starting_s() const;

    const study::StudySpec& spec_;
    const Assignment& assignment_;
    AttemptPort& port_;
    Fail fail_;
    TrialBody* body_ = nullptr;
    CheckpointSchedule checkpoints_;
    Stopwatch watch_;
    std::optional<double> first_s_; ///< of the first iteration of this attempt
    TrialPoint point_;
    OwnEnd own_end_;
};

} // namespace ranktune::worker
