// SPDX-License-Identifier: Apache-2.0
#pragma once
// SideBody: a side task, done by a process of its own.

#include "ranktune/study/side_task.hpp"
#include "trial/bodies/task_body.hpp"

namespace ranktune::trial {

/// The study as an attempt of the task sees it: the command of the task is the program, and limits of trials do not
/// hold.
[[nodiscard]] study::StudySpec spec_for(const study::StudySpec& study, const study::SideTask& task);

/// The process has until its end, or [...].timeout. Its metrics are those that it reports, each the newest, and those
/// of a JSON object on the last line that it prints.
class SideBody final : public TaskBody {
  public:
    /// `parts.setting.spec` is that of `spec_for`; `trainable` of the setting that of the study: null for programs.
    SideBody(const AttemptParts& parts, const study::SideTask& task) : TaskBody(parts), task_(task) {}

    void start(const study::CheckpointRef* checkpoint) override;
    [[nodiscard]] study::Verb train(const Report& report) override;

  private:
    [[nodiscard]] std::string locate(const study::CheckpointRef& checkpoint) const;
    [[nodiscard]] std::string make_folder() const;
    void add(trainables::Metrics& metrics, const std::vector<std::pair<std::string, std::string>>& texts);
    void take(trainables::ProgramMessage& message) override;
    void ended() override;
    void check_time() const override;
    void give_up() override;

    study::SideTask task_;
    trainables::ProgramResult found_; ///< so far
    base::Iteration reports_ = 0;
};

} // namespace ranktune::trial
