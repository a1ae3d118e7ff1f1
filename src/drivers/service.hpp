// SPDX-License-Identifier: Apache-2.0
#pragma once
// The two loops that own a transport, a clock and the signals: the head's and a worker's service thread.

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "comm/transport/transport.hpp"
#include "drivers/group/worker_machine.hpp"
#include "drivers/head/head_machine.hpp"
#include "drivers/signals.hpp"
#include "drivers/wake.hpp"

namespace ranktune::drivers {

/// This process's monotonic time on the time line of the study: goes on from `resumed` and leaves out what was before.
class ProcessClock {
  public:
    explicit ProcessClock(base::StudyTime resumed = {}) : resumed_(resumed), began_(std::chrono::steady_clock::now()) {}
    [[nodiscard]] base::StudyTime now() const { return resumed_ + (std::chrono::steady_clock::now() - began_); }

  private:
    base::StudyTime resumed_;
    std::chrono::steady_clock::time_point began_;
};

/// An Outbox over a transport.
class TransportOutbox final : public Outbox {
  public:
    explicit TransportOutbox(comm::Transport& transport) : transport_(transport) {}
    void send(base::Rank to, std::span<const std::byte> message) override { transport_.send(to, message); }

  private:
    comm::Transport& transport_;
};

/// Runs a worker to its end. `signals` may be null (several workers in one process). `each_round` (may be empty) is
/// called in every round of the loop. The transport's last messages have
/// left when this returns, or have had two seconds for it.
[[nodiscard]] WorkerEnd serve_worker(comm::Transport& transport, WorkerMachine& worker, const ProcessClock& clock,
                                     Waker& waker, SignalReader* signals, const std::function<void()>& each_round = {});

/// An end of the study that somebody asks for.
struct EndAsked {
    study::Asker by = study::Asker::none;
    std::string why = std::string(study::name(by)); ///< in words
    bool at_once = false;
    bool insisted = false;                          ///< somebody has asked before, and does so again
    study::Reason reason = study::Reason::draining; ///< of an end at once
    study::Asker as = study::Asker::none;           ///< the signal that says the same, should it come as well
};

/// Runs the head to its end. The first signal ends the study cleanly; one that insists (StopSequence), at once. A
/// signal that stands for Ctrl-C counts as INT.
/// `signals` may be null. `stopping` is called when a clean stop has been asked for, and before workers are
/// told to leave at once: a launcher may kill this process at any moment from then on, without another word. `asked`
/// (may be empty) is called in every round and must not block, like `each_round` (may be empty).
[[nodiscard]] HeadEnd serve_head(comm::Transport& transport, HeadMachine& head, const ProcessClock& clock, Waker& waker,
                                 SignalReader* signals, base::LogSink& log,
                                 const std::function<void(const EndAsked& what)>& stopping,
                                 const std::function<std::optional<EndAsked>()>& asked = {},
                                 const std::function<void()>& each_round = {});

/// Waits until everything sent has left, at most two seconds.
void flush_transport(comm::Transport& transport, Waker& waker);

/// CPU seconds of this process so far, all threads.
[[nodiscard]] double process_cpu_seconds();

} // namespace ranktune::drivers
