// SPDX-License-Identifier: Apache-2.0
#pragma once
// AttemptPort: how an attempt talks to the head, through the service thread of its rank.

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "worker/trial/runner.hpp"

namespace ranktune::worker {

/// Called on the trial thread. Only the leader talks to the head.
class AttemptPort {
  public:
    virtual ~AttemptPort() = default;
    /// Leader only. Blocks while too many earlier reports are queued, at most until the trial has to give up.
    virtual void reported(RunnerReported report) = 0;
    /// Leader only.
    virtual void saved(study::CheckpointRef checkpoint) = 0;
    /// Leader only: a checkpoint could not be written; training goes on.
    virtual void unsaved(std::string why) = 0;
    /// Leader only: the program names this place as its checkpoint, with the next report.
    virtual void named(NamedPlace /*place*/) {}
    /// Leader only: another running trial names the same place, so that nothing from there may be used. Known when the
    /// verdict on the report is.
    [[nodiscard]] virtual bool contested() const { return false; }
    /// Leader only: the verdict after `iteration`. Waits for the head at a decision point. Throws ddp::Aborted when the
    /// trial has to give up.
    [[nodiscard]] virtual study::Verdict verdict_after(base::Iteration iteration) = 0;
    /// The same, but waits at most `patience`; nothing when the head has not answered by then.
    [[nodiscard]] virtual std::optional<study::Verdict> verdict_within(base::Iteration iteration,
                                                                       std::chrono::milliseconds patience) = 0;
    /// Readable when the head has said something, or the trial has to give up; -1: nothing tells, so look often.
    [[nodiscard]] virtual int news() const { return -1; }
    /// After a wait for news, before looking what it is.
    virtual void heard() noexcept {}
    /// User code made progress: feeds the hang watchdog.
    virtual void progressed() noexcept = 0;
    /// Whether user code waits for the head from now on, directly or through its leader.
    virtual void waits(bool waits) noexcept = 0;
    /// Set when the trial has to give up; every wait of the group checks it.
    [[nodiscard]] virtual const std::atomic<bool>& abort_flag() const = 0;
    /// One line of the trainable for the log.
    virtual void log(base::TrialId trial, std::string_view line) = 0;
};

/// Scope guard: user code waits for the head, directly or through its leader.
class Waiting {
  public:
    explicit Waiting(AttemptPort& port) : port_(port) { port_.waits(true); }
    ~Waiting() { port_.waits(false); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

  private:
    AttemptPort& port_;
};

} // namespace ranktune::worker
