// SPDX-License-Identifier: Apache-2.0
#pragma once
// TaskBody: a task that a kept program does. The process stays for the tasks that follow on this rank.

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "process/child.hpp"
#include "trainables/program/messages.hpp"
#include "trial/attempt_context.hpp"
#include "trial/bodies/program_process.hpp"
#include "trial/bodies/text_values.hpp"
#include "trial/bodies/trial_body.hpp"

namespace ranktune::trial {

/// Of a trial with one rank. It sends the configuration to the process, waits for the result, reports that, and leaves
/// the process in `spare`. A process that has ended, or whose task is given up, is replaced at the next task.
class TaskBody final : public TrialBody {
  public:
    TaskBody(const AttemptParts& parts, Spare& spare);

    void start(const study::CheckpointRef* checkpoint) override;
    /// Throws base::Error when the process ends before the task is done.
    [[nodiscard]] study::Verb train(const Report& report) override;
    [[nodiscard]] Saves saves() override { return Saves::never; }
    [[nodiscard]] bool is_done() const override { return result_.has_value(); }
    [[nodiscard]] Word tell(const Word& word, const TrialPoint&) override { return word; }
    void save(const TrialPoint&) override {}
    void end(const Word&, const TrialPoint&) override {}
    void close(bool) override {}

  private:
    using Clock = process::Child::Clock;

    [[nodiscard]] const study::ProgramSpec& program() const { return *setting_.spec->trainable.program; }
    [[nodiscard]] process::Child& child() const { return process_->child(); }
    [[nodiscard]] bool take_process();
    void start_process();
    void keep_process();
    [[nodiscard]] bool waits();
    void take_line(const std::string& line);
    [[noreturn]] void ended_early() const;
    void check_time() const;
    [[nodiscard]] bool is_given_up();

    const AttemptSetting& setting_;
    const Assignment& assignment_;
    const space::Configuration& configuration_;
    AttemptPort& port_;
    Spare& spare_;
    std::unique_ptr<ProgramProcess> process_;
    Clock::time_point started_at_;
    std::optional<Clock::time_point> ready_at_; ///< when the task began: a new program has said that it is ready
    std::optional<trainables::ProgramResult> result_;
    std::optional<trainables::ProgramFailed> failed_;
    Clock::time_point failed_at_;
    std::optional<Word> asked_; ///< the head wants the attempt to end
    Clock::time_point asked_at_;
    TextValues texts_;
};

} // namespace ranktune::trial
