// SPDX-License-Identifier: Apache-2.0
#pragma once
// KeptProgram: a program between two attempts. It waits in its report for the answer that the next attempt of its trial
// gives, an exploit; or for its next task.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "worker/bodies/program_process.hpp"
#include "worker/trial/runner.hpp"

namespace ranktune::worker {

/// On the trial thread. The process ends with this object at the latest: a program that nobody takes is told to stop.
class KeptProgram {
  public:
    using Clock = process::Child::Clock;
    struct Limits {
        Clock::duration unclaimed; ///< it is told to stop when no attempt has taken it by then
        Clock::duration to_end;    ///< between that and TERM
        Clock::duration at_close;  ///< the same, when this object is destroyed; shorter
    };

    /// `assignment`: the attempt that is over; the answer to the report of `iteration` is missing.
    KeptProgram(std::unique_ptr<ProgramProcess> process, const Assignment& assignment, base::Iteration iteration,
                Limits limits);
    /// It waits for a task, of whatever trial.
    KeptProgram(std::unique_ptr<ProgramProcess> process, Limits limits);
    ~KeptProgram();
    KeptProgram(const KeptProgram&) = delete;
    KeptProgram& operator=(const KeptProgram&) = delete;

    /// Whether the process still waits, and `next` is what it waits for: the same trial, on the same ranks, goes on
    /// from the state of a donor; or any trial, if it waits for a task.
    [[nodiscard]] bool waits_for(const Assignment& next);
    /// Hands the process over. Requires that `waits_for` was true.
    [[nodiscard]] std::unique_ptr<ProgramProcess> take() && { return std::move(process_); }
    /// Rank 0: the program's folder.
    [[nodiscard]] const std::string& folder() const { return process_->folder(); }
    /// To be called often: reads what the program prints, and ends it when a limit is reached. False: it has ended.
    [[nodiscard]] bool tend();
    /// Tells the program to stop and returns when it has ended. `on_turn` is called meanwhile, often; when it returns
    /// false, the program is ended by signal.
    void dismiss(const std::function<bool()>& on_turn);

  private:
    void listen(Clock::duration patience);
    void take_line(const std::string& line);
    void tell_to_stop(Clock::duration to_end);

    std::unique_ptr<ProgramProcess> process_;
    std::optional<Assignment> assignment_; ///< nothing: it waits for a task
    base::Iteration iteration_ = 0;
    Limits limits_;
    Clock::time_point since_ = Clock::now();
    std::optional<Clock::time_point> stop_at_; ///< told to stop; TERM then
    bool strays_ = false;                      ///< it did not wait for the answer
};

} // namespace ranktune::worker
