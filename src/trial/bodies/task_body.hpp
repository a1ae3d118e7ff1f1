// SPDX-License-Identifier: Apache-2.0
#pragma once
// TaskBody: a task, which one process does on one rank. It has no state to save, and its result is reported once.

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "process/child.hpp"
#include "ranktune/study/command_template.hpp"
#include "trainables/program/environment.hpp"
#include "trainables/program/messages.hpp"
#include "trial/attempt_context.hpp"
#include "trial/bodies/program_process.hpp"
#include "trial/bodies/text_values.hpp"
#include "trial/bodies/trial_body.hpp"

namespace ranktune::trial {

/// What all tasks share: a process that is waited for until it has a result, fails, or is given up.
class TaskBody : public TrialBody {
  public:
    explicit TaskBody(const AttemptParts& parts);

    [[nodiscard]] Saves saves() override { return Saves::never; }
    [[nodiscard]] bool is_done() const override { return result_.has_value(); }
    [[nodiscard]] Word tell(const Word& word, const TrialPoint&) override { return word; }
    void save(const TrialPoint&) override {}
    void end(const Word&, const TrialPoint&) override {}
    void close(bool) override {}

  protected:
    using Clock = process::Child::Clock;

    [[nodiscard]] const study::ProgramSpec& program() const { return *setting_.spec->trainable.program; }
    [[nodiscard]] process::Child& child() const { return process_->child(); }
    [[nodiscard]] const AttemptSetting& setting() const { return setting_; }
    [[nodiscard]] const Assignment& assignment() const { return assignment_; }
    [[nodiscard]] const space::Configuration& configuration() const { return configuration_; }
    [[nodiscard]] AttemptPort& port() const { return port_; }
    /// What the program is told, without what only its kind of task has.
    [[nodiscard]] trainables::ProgramFacts facts() const;
    [[nodiscard]] study::CommandValues values() const;
    /// `folder`: of the process, removed at its end; empty: none.
    void start_process(const trainables::ProgramFacts& facts, const study::CommandValues& values,
                       std::string folder = {});
    /// Waits for a moment. False: there is a result, or the task is given up.
    [[nodiscard]] bool waits();
    /// The process has ended with an error: throws what outcome_of knows.
    [[noreturn]] void process_failed() const;

    /// Logs a line about the task.
    void log(const std::string& text) const { port_.log(assignment_.start.trial, text); }

    std::unique_ptr<ProgramProcess> process_;
    Clock::time_point started_at_;
    std::optional<trainables::ProgramResult> result_;
    std::optional<Word> asked_; ///< the head wants the attempt to end
    std::optional<trainables::ProgramFailed> failed_;
    TextValues texts_;

  private:
    /// A message that the base does not know.
    virtual void take(trainables::ProgramMessage& message) = 0;
    /// The process has ended: throws, or there is a result.
    virtual void ended() = 0;
    /// Throws when the task takes too long.
    virtual void check_time() const = 0;
    /// run.abort_grace has passed since the head asked for the end. Throws, or the task is over without a result.
    virtual void give_up() = 0;

    void take_line(const std::string& line);
    [[nodiscard]] bool is_given_up();

    const AttemptSetting& setting_;
    const Assignment& assignment_;
    const space::Configuration& configuration_;
    AttemptPort& port_;
    Clock::time_point failed_at_;
    Clock::time_point asked_at_;
};

/// Of a trial whose program is kept. It sends the configuration to the process, waits for the result, reports that, and
/// leaves the process in `spare` for the tasks that follow on this rank. A process that has ended, or whose task is
/// given up, is replaced at the next task.
class KeptTaskBody final : public TaskBody {
  public:
    KeptTaskBody(const AttemptParts& parts, Spare& spare) : TaskBody(parts), spare_(spare) {}

    void start(const study::CheckpointRef* checkpoint) override;
    /// Throws base::Error when the process ends before the task is done.
    [[nodiscard]] study::Verb train(const Report& report) override;

  private:
    [[nodiscard]] bool take_process();
    void keep_process();
    void take(trainables::ProgramMessage& message) override;
    void ended() override;
    void check_time() const override;
    void give_up() override;

    Spare& spare_;
    std::optional<Clock::time_point> ready_at_; ///< when the task began: a new program has said that it is ready
};

} // namespace ranktune::trial
