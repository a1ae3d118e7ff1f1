// SPDX-License-Identifier: Apache-2.0
#pragma once
// Signals that end a run: blocked in every thread, read from a file descriptor by one loop.

#include <array>
#include <chrono>
#include <csignal>
#include <map>
#include <optional>

#include "process/signal_note.hpp"
#include "ranktune/study/vocabulary.hpp"

namespace ranktune::process {

/// The signals that end a run.
inline constexpr std::array stop_signal_numbers{SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

/// Who asks by such a signal; none for those that stop nothing.
[[nodiscard]] study::Asker asker_of(int signal);

/// Blocks INT, TERM, HUP, USR1 and USR2 in the calling thread and in all threads it starts later. Call it first in
/// `main`, before MPI starts its own threads: a signal goes to any thread that does not block it. A library that
/// starts threads when it is loaded (a tool's in LD_PRELOAD, say) does so even before `main`: a handler passes on to
/// the reader's thread what they catch.
void block_stop_signals();

/// Reads what `block_stop_signals` has blocked. One per process at a time; used by the thread that made it.
class SignalReader {
  public:
    /// `meanings`: of signals that stand for others. Throws base::IoError when the process is out of file descriptors.
    explicit SignalReader(SignalMeanings meanings = {});
    ~SignalReader();
    SignalReader(const SignalReader&) = delete;
    SignalReader& operator=(const SignalReader&) = delete;

    /// The next signal that has arrived. Never blocks. One pending signal of a kind counts once however often it was
    /// sent.
    [[nodiscard]] std::optional<study::Asker> poll();
    /// Who asks by this signal.
    [[nodiscard]] study::Asker meaning(study::Asker signal) const { return meanings_.of(signal); }
    /// For Waker::nap.
    [[nodiscard]] int fd() const { return fd_; }

  private:
    int fd_ = -1;
    SignalMeanings meanings_;
};

/// What a stop signal means, given those before it.
enum class StopStep {
    begin,  ///< the first: a clean stop
    repeat, ///< the launcher's way to say the same again
    at_once ///< somebody insists
};

/// Tells somebody who insists from a launcher that repeats itself. Slurm sends TERM twice within milliseconds when the
/// time is up, and after the USR1 of `--signal`; there is still KillWait for checkpoints then. So the stop is at once
/// only after a second INT (or Ctrl-C), or when a signal comes again `insisting` or more after it came first.
class StopSequence {
  public:
    static constexpr std::chrono::seconds insisting{5};

    [[nodiscard]] StopStep next(study::Asker asker, std::chrono::steady_clock::time_point now);

  private:
    std::map<study::Asker, std::chrono::steady_clock::time_point> first_;
};

} // namespace ranktune::process
