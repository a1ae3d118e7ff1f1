// SPDX-License-Identifier: Apache-2.0
#pragma once
// TaskProcess: the process of a program while it works on a task of this rank.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "process/child.hpp"
#include "process/program/environment.hpp"
#include "process/program/messages.hpp"
#include "worker/bodies/kept_program.hpp"
#include "worker/bodies/program_process.hpp"
#include "worker/bodies/trial_body.hpp"
#include "worker/trial/attempt.hpp"

namespace ranktune::worker {

/// How kinds of tasks differ.
struct TaskManner {
    /// What to say of a program that ends with exit code 0 before its task is done; null: the task is done then.
    const char* on_early_end = nullptr;
    /// Names FailureSpec::iteration_timeout, which begins when the program is ready; if its end is that of the task,
    /// when it starts.
    std::string_view limit = "failure.iteration_timeout";
};

/// Of an attempt of one rank, on the trial thread. The process ends with this object, unless it is kept.
class TaskProcess {
  public:
    /// The arguments outlive this object.
    TaskProcess(const AttemptSetting& setting, const Assignment& assignment, AttemptPort& port, TaskManner manner);

    /// What a program is told about the attempt.
    [[nodiscard]] process::ProgramFacts facts() const;
    /// Starts the process. Throws as process::spawn. `folder`: of the process, removed at its end; empty: none.
    void start(const study::ProgramSpec& program, const std::vector<std::string>& words,
               const process::ProgramFacts& facts, std::string folder = {});
    /// Takes over a process that waits for a task. False: it does not wait.
    [[nodiscard]] bool take(std::unique_ptr<KeptProgram> kept);
    /// The task is done: the process waits for the next one.
    [[nodiscard]] std::unique_ptr<KeptProgram> keep();

    /// Both need a process.
    [[nodiscard]] process::Child& child() const { return process_->child(); }
    void print(const std::string& line) { process_->print(line); }
    /// Waits for the next message, other than those for the log. nullopt: the task was given up (`given_up`), or, if
    /// on_early_end is null, the program has ended and its task is done. (Such a task is given up by ddp::Aborted.)
    /// Throws what
    /// outcome_of knows when the program fails or is too slow; base::FormatError; ddp::Aborted.
    [[nodiscard]] std::optional<process::ProgramMessage> next();
    /// What the head wants the attempt to end with. Set when the program was not done within run.abort_grace.
    [[nodiscard]] const std::optional<Word>& given_up() const { return given_up_; }

  private:
    using Clock = process::Child::Clock;

    [[nodiscard]] std::optional<process::ProgramMessage> take_line(const std::string& line);
    /// The program has ended, and so its task.
    [[nodiscard]] bool check_end() const;
    [[noreturn]] void ended_early() const;
    void check_time() const;
    [[nodiscard]] bool is_given_up();

    const AttemptSetting& setting_;
    const Assignment& assignment_;
    AttemptPort& port_;
    TaskManner manner_;
    std::unique_ptr<ProgramProcess> process_;
    std::string works_in_;
    std::optional<Clock::time_point> ready_at_; ///< when the task began: a new program has said that it is ready
    Clock::time_point progress_at_ = Clock::now();
    std::optional<process::ProgramFailed> failed_;
    Clock::time_point failed_at_;
    std::optional<Word> asked_; ///< the head wants the attempt to end
    Clock::time_point asked_at_;
    std::optional<Word> given_up_;
};

} // namespace ranktune::worker
