// SPDX-License-Identifier: Apache-2.0
#pragma once
// Requeues the Slurm job at the end of the head.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "process/command_output.hpp"
#include "ranktune/study/spec.hpp"
#include "slurm/allocation.hpp"
#include "slurm/job_state.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::head {

/// Who ended the study, in terms of slurm::should_requeue; `asker` asked for the drain.
[[nodiscard]] slurm::Stopped::By stopped_by(study::Reason reason, study::Asker asker);

struct Requeued {
    studydir::Requeue result = studydir::Requeue::no;
    std::string words; ///< for people; empty: nothing to say
};

/// Asks Slurm about the job, decides (slurm::should_requeue) and, if so, calls `before` and then `scontrol requeue`.
/// `ask` runs a program. Everything must be written and synced before, because Slurm then kills the job.
[[nodiscard]] Requeued requeue(const slurm::Allocation& job, const study::SlurmSpec& spec,
                               const slurm::Stopped& stopped,
                               const std::function<process::CommandOutput(const std::vector<std::string>&)>& ask,
                               const std::function<void()>& before);

} // namespace ranktune::head
