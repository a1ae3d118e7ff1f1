// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs one launcher as a child of this process, in a process group of its own: stops it with signals that its ranks
// understand, and leaves no process behind.

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "process/signals.hpp"

namespace ranktune::launch {

/// Which signal to send to a launcher for a received one. A first signal becomes USR1, or USR2 if it is INT: launchers
/// pass these to all ranks, which stop cleanly, while INT and TERM would make mpirun kill them. A second INT, or
/// another signal that insists (StopSequence), sends the first one again: the head then ends at once and still reports.
/// After that TERM.
class SignalRelay {
  public:
    /// `as_is`: the program has a relay of its own, so pass every signal unchanged.
    explicit SignalRelay(bool as_is = false) : as_is_(as_is) {}
    /// The signal to send; nothing: the launcher or Slurm has only repeated the request.
    [[nodiscard]] std::optional<int> next(int signal, std::chrono::steady_clock::time_point now);
    [[nodiscard]] bool as_is() const { return as_is_; }
    /// Somebody insisted: a launcher that does not end soon is killed.
    [[nodiscard]] bool insisted() const { return insisted_; }
    /// A signal was received.
    [[nodiscard]] bool asked() const { return sent_ != 0; }

  private:
    process::StopSequence stops_;
    bool as_is_;
    int sent_ = 0; ///< the first signal sent; 0: none received
    bool insisted_ = false;
};

/// How to start a step.
struct StepOptions {
    std::vector<std::string> words; ///< program (a path, or a name on PATH) and its arguments
    std::vector<std::pair<std::string, std::string>> variables; ///< set in its environment
    /// If set, standard error passes through this process, which gives each line to it and then writes it out.
    std::function<void(const std::string& line)> on_error_line;
    /// If set, standard error passes through this process line by line; lines for which it returns true are not written
    /// out.
    std::function<bool(const std::string& line)> keep_error_line;
    /// Asks the head in words, for a first INT: a launcher's signal could not be told from others. False: not possible.
    /// May be empty.
    std::function<bool()> ask;
    /// Whether the head has taken the request. If not within `hearing`, it gets the signal.
    std::function<bool()> heard;
    /// Called once per `look`. True: the launcher (its process) has nothing left to do and is ended: TERM, and KILL for
    /// its process group after `grace`. May be empty.
    std::function<bool(pid_t launcher)> overdue;
    std::chrono::milliseconds look = std::chrono::seconds(5);
    std::chrono::milliseconds grace = std::chrono::seconds(15);
    std::chrono::milliseconds hearing = std::chrono::seconds(5); ///< the head checks for requests once a second
};

/// How a step ended.
struct StepEnded {
    int code = 0;       ///< of the launcher, or of rank 0 if the launcher's is 0; 128 + n: killed by signal n
    bool asked = false; ///< this process was told to stop during the step
};

/// Runs a step and waits for it. Standard input is /dev/null. INT, TERM, HUP, USR1 and USR2 received by this process go
/// through `relay`. Callers block them before (block_stop_signals), so that none is lost between two steps and a late
/// one does not change this process's exit code. If a signal is passed on as another one, the original is in the
/// SignalNote that the step's variables name. After somebody insists, a launcher that does not end within `grace` gets
/// TERM, and KILL after another `grace`. If this process is killed, the launcher gets TERM as its death signal, and a
/// guardian process sends TERM, then KILL after `grace`, to its process group. Processes that the step leaves on this
/// machine are killed after 10 s. Only for a process with one thread. Throws base::IoError when the program cannot be
/// started.
[[nodiscard]] StepEnded run_step(const StepOptions& options, SignalRelay& relay);

/// Waits for `time`, or returns true as soon as a stop signal comes, which is passed to `relay`.
[[nodiscard]] bool pause_unless_asked(std::chrono::milliseconds time, SignalRelay& relay);

} // namespace ranktune::launch
