// SPDX-License-Identifier: Apache-2.0
#pragma once
// One launcher as a child of this process: in a process group of its own, told to stop in the way that its ranks
// understand, and never left behind.

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "process/signals.hpp"

namespace ranktune::launch {

/// What to send to a launcher for what was received. A first signal becomes USR1, or USR2 when it is INT: launchers
/// pass these to all ranks, which stop cleanly, while INT and TERM would make mpirun kill them. A second INT, or
/// another signal that insists (StopSequence), is the first one sent again, by which the head ends at once and still
/// says what there is; after that TERM.
class SignalRelay {
  public:
    /// `as_is`: to a program that has a relay of its own, every signal goes as it came.
    explicit SignalRelay(bool as_is = false) : as_is_(as_is) {}
    /// The signal to send; nothing: the launcher's, or Slurm's, way to say the same again.
    [[nodiscard]] std::optional<int> next(int signal, std::chrono::steady_clock::time_point now);
    [[nodiscard]] bool as_is() const { return as_is_; }
    /// Somebody has insisted: what does not end soon is made to.
    [[nodiscard]] bool insisted() const { return insisted_; }
    /// Anything was received.
    [[nodiscard]] bool asked() const { return sent_ != 0; }

  private:
    process::StopSequence stops_;
    bool as_is_;
    int sent_ = 0; ///< the first one; 0: nothing was received
    bool insisted_ = false;
};

/// What a step is started with.
struct StepOptions {
    std::vector<std::string> words; ///< program (a path, or a name on PATH) and its arguments
    std::vector<std::pair<std::string, std::string>> variables; ///< set in its environment
    /// When given, standard error passes through this process, which hands each line to it and then writes it out.
    std::function<void(const std::string& line)> on_error_line;
    /// When given, standard error passes through this process line by line, and is written out but for the lines for
    /// which this returns true.
    std::function<bool(const std::string& line)> keep_error_line;
    /// Asks the head in words, for a first INT: as a signal of a launcher it could not be told from others. False: that
    /// cannot be done. May be empty.
    std::function<bool()> ask;
    /// Whether the head has taken what it was asked. Not within `hearing`: it gets the signal after all.
    std::function<bool()> heard;
    /// Asked once per `look`; true: the launcher (its process) has nothing to do any more, and is ended: TERM, and
    /// after `grace` KILL for its process group. May be empty.
    std::function<bool(pid_t launcher)> overdue;
    std::chrono::milliseconds look = std::chrono::seconds(5);
    std::chrono::milliseconds grace = std::chrono::seconds(15);
    std::chrono::milliseconds hearing = std::chrono::seconds(5); ///< a head looks for requests once a second
};

/// How a step ended.
struct StepEnded {
    int code = 0;       ///< 128 + n: killed by signal n
    bool asked = false; ///< this process was told to stop meanwhile
};

/// Runs a step and waits for it. Standard input is /dev/null. INT, TERM, HUP, USR1 and USR2 that this process receives
/// go through `relay`; callers block them before (block_stop_signals): none is lost between two steps, and one that
/// comes after the last does not take this process's exit code away. What was received, when it is passed on as
/// something else, is in the SignalNote of which the step's variables tell. A launcher that does not end within
/// `grace` after somebody has insisted gets TERM, and KILL after another one. When this process is killed, the launcher
/// gets TERM as its death signal, and a guardian process sends TERM, and KILL after another grace, to its process
/// group. What the step leaves behind on this machine has 10 s to end by itself, then it is killed. For a process with
/// one thread. Throws base::IoError when the program cannot be started.
[[nodiscard]] StepEnded run_step(const StepOptions& options, SignalRelay& relay);

/// Waits, unless a stop signal comes: then it returns true, and `relay` knows.
[[nodiscard]] bool pause_unless_asked(std::chrono::milliseconds time, SignalRelay& relay);

} // namespace ranktune::launch
