// SPDX-License-Identifier: Apache-2.0
#pragma once
// The head's last act in a Slurm job: back into the queue.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "process/command_output.hpp"
#include "ranktune/study/spec.hpp"
#include "slurm/allocation.hpp"
#include "slurm/job_state.hpp"

namespace ranktune::head {

/// How an end of the core counts here, after a drain that `asker` asked for.
[[nodiscard]] slurm::Stopped::By stopped_by(study::Reason reason, study::Asker asker);

/// What became of it, for the file `outcome`: "no", "yes" (asked for; Slurm ends the job at any moment) or "failed".
struct Requeued {
    std::string result = "no";
    std::string words; ///< for people; empty: nothing to say
};

/// Asks Slurm about the job, decides (slurm::should_requeue) and, if so, calls `before` and then `scontrol requeue`.
/// `ask` runs a program. Nothing may be left to do: everything is written and synced, because Slurm then kills the job.
[[nodiscard]] Requeued requeue(const slurm::Allocation& job, const study::SlurmSpec& spec,
                               const slurm::Stopped& stopped,
                               const std::function<process::CommandOutput(const std::vector<std::string>&)>& ask,
                               const std::function<void()>& before);

} // namespace ranktune::head
