// SPDX-License-Identifier: Apache-2.0
#pragma once
// The Slurm job of this process, read from its environment.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/base/variables.hpp"

namespace ranktune::slurm {

/// Missing or unrecognised values are nothing; no value is guessed.
struct Allocation {
    std::string job;                 ///< "1234"; in a job array the task's own number
    std::optional<std::string> step; ///< nothing: the batch script
    std::string partition;
    std::uint32_t restarts = 0; ///< how often the job was requeued
    /// The id to pass to Slurm's commands: "1234", or "1200_7" for a task of a job array. (An array's last task has the
    /// array's number, which commands apply to all of its tasks.)
    std::string name;
    std::optional<std::vector<std::string>> nodes;
    std::optional<std::vector<std::uint32_t>> tasks_by_node; ///< of the step, or else of the job
    std::optional<std::uint32_t> cpus_per_task;
    std::optional<std::int64_t> end; ///< end time in seconds since 1970, where Slurm sets it (22.05 does not)
};

/// The allocation; nothing outside a job.
[[nodiscard]] std::optional<Allocation> allocation(const base::Variables& variables);

/// The switches above this process's node, the outermost first: "s0.s2" for SLURM_TOPOLOGY_ADDR=s0.s2.n7 with
/// SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node. Empty: none configured, or the variables are of another node than
/// `node` (inherited from a launcher).
[[nodiscard]] std::string switches_above(const base::Variables& variables, std::string_view node);

/// Number of this node's processors granted to the job. Nothing: unknown, or not in a job.
[[nodiscard]] std::optional<std::uint32_t> cpus_on_node(const base::Variables& variables);

} // namespace ranktune::slurm
