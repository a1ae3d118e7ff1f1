// SPDX-License-Identifier: Apache-2.0
#pragma once
// The job that this process belongs to, as its environment tells.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/base/variables.hpp"

namespace ranktune::slurm {

/// What is not told, or in a form that is not known, is nothing; no value is guessed.
struct Allocation {
    std::string job;                 ///< "1234": of a task of a job array its own number too
    std::optional<std::string> step; ///< nothing: the batch script
    std::string partition;
    std::uint32_t restarts = 0; ///< how often the job was started again
    /// What Slurm's commands are to be given: "1234", or "1200_7" for a task of a job array. The number of an array's
    /// last task is that of the array: commands take it for all of its tasks.
    std::string name;
    std::optional<std::vector<std::string>> nodes;
    std::optional<std::vector<std::uint32_t>> tasks_by_node; ///< of the step, otherwise of the job
    std::optional<std::uint32_t> cpus_per_task;
    std::optional<std::int64_t> end; ///< seconds since 1970: the time limit, where Slurm tells (22.05 does not)
};

/// Nothing: not in a job.
[[nodiscard]] std::optional<Allocation> allocation(const base::Variables& variables);

/// The switches above this process's node, the outermost first: "s0.s2" for SLURM_TOPOLOGY_ADDR=s0.s2.n7 with
/// SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node. Empty: none are configured, or the variables speak of another node
/// than `node` (a launcher passed on those of its own).
[[nodiscard]] std::string switches_above(const base::Variables& variables, std::string_view node);

/// Processors of this node that the job was granted. Nothing: not told, or not in a job.
[[nodiscard]] std::optional<std::uint32_t> cpus_on_node(const base::Variables& variables);

} // namespace ranktune::slurm
