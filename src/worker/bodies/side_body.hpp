// SPDX-License-Identifier: Apache-2.0
#pragma once
// SideBody: a side task, done by a process of its own.

#include "ranktune/study/side_task.hpp"
#include "worker/bodies/task_body.hpp"
#include "worker/bodies/task_process.hpp"
#include "worker/bodies/text_values.hpp"

namespace ranktune::worker {

/// The study as an attempt of the task sees it: the command of the task is the program, and limits of trials do not
/// hold.
[[nodiscard]] study::StudySpec spec_for(const study::StudySpec& study, const study::SideTask& task);

/// The process has until its end, or [...].timeout. Its metrics are those that it reports, each the newest, and those
/// of a JSON object on the last line that it prints.
class SideBody final : public StatelessBody {
  public:
    /// `parts.setting.spec` is that of `spec_for`; `trainable` of the setting that of the study: null for programs.
    SideBody(const AttemptParts& parts, const study::SideTask& task);

    void start(const study::CheckpointRef* checkpoint) override;
    [[nodiscard]] study::Verb train(const Report& report) override;
    [[nodiscard]] bool is_done() const override { return done_; }

  private:
    [[nodiscard]] std::string locate(const study::CheckpointRef& checkpoint) const;
    [[nodiscard]] std::string make_folder() const;
    void add(trainables::Metrics& metrics, const std::vector<std::pair<std::string, std::string>>& texts);
    void take(process::ProgramMessage message);

    const AttemptSetting& setting_;
    const Assignment& assignment_;
    const space::Configuration& configuration_;
    AttemptPort& port_;
    study::SideTask task_;
    std::string limit_; ///< the key of its time-out
    TaskProcess process_;
    trainables::Metrics found_; ///< so far
    TextValues texts_;
    base::Iteration reports_ = 0;
    bool done_ = false;
};

} // namespace ranktune::worker
