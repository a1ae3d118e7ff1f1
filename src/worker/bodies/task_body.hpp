// SPDX-License-Identifier: Apache-2.0
#pragma once
// TaskBody: a task that a kept program does. The process stays for the tasks that follow on this rank.

#include <optional>
#include <string>

#include "process/program/messages.hpp"
#include "worker/bodies/task_process.hpp"
#include "worker/bodies/text_values.hpp"
#include "worker/bodies/trial_body.hpp"
#include "worker/trial/attempt_context.hpp"

namespace ranktune::worker {

/// Of a trial with one rank that has no state: a task, or a range of predictions.
class StatelessBody : public TrialBody {
  public:
    [[nodiscard]] Saves saves() override { return Saves::never; }
    [[nodiscard]] Word tell(const Word& word, const TrialPoint&) override { return word; }
    void save(const TrialPoint&) override {}
    void end(const Word&, const TrialPoint&) override {}
    void close(bool) override {}
};

/// It sends the configuration to the process, waits for the result, reports that, and leaves the process in `spare`. A
/// process that has ended, or whose task is given up, is replaced at the next task.
class TaskBody final : public StatelessBody {
  public:
    TaskBody(const AttemptParts& parts, Spare& spare);

    void start(const study::CheckpointRef* checkpoint) override;
    /// Throws base::Error when the process ends before the task is done.
    [[nodiscard]] study::Verb train(const Report& report) override;
    [[nodiscard]] bool is_done() const override { return result_.has_value(); }

  private:
    [[nodiscard]] const study::ProgramSpec& program() const { return *setting_.spec->trainable.program; }
    [[nodiscard]] bool take_process();
    void start_process();
    void take(process::ProgramMessage message);

    const AttemptSetting& setting_;
    const Assignment& assignment_;
    const space::Configuration& configuration_;
    AttemptPort& port_;
    Spare& spare_;
    TaskProcess process_;
    std::optional<process::ProgramResult> result_;
    TextValues texts_;
};

} // namespace ranktune::worker
