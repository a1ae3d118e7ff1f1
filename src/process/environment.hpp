// SPDX-License-Identifier: Apache-2.0
#pragma once
// What tells this process from others: its variables, its machine, its Slurm job, and names that nobody else has.

#include <cstdint>
#include <string>
#include <vector>

#include "ranktune/base/variables.hpp"

namespace ranktune::process {

/// The environment of this process, as `NAME=value` each, and by name.
[[nodiscard]] std::vector<std::string> environment_entries();
[[nodiscard]] base::Variables environment_variables();
/// The value of one of them; empty when unset.
[[nodiscard]] std::string environment_variable(const std::string& name);

/// This node's name: SLURMD_NODENAME (several nodes of a test bed may share a host name), otherwise the host name.
[[nodiscard]] std::string host_name();
/// Slurm's id of the job; empty outside Slurm.
[[nodiscard]] std::string slurm_job();
[[nodiscard]] std::uint32_t slurm_restart_count();
/// When Slurm says that the job ends (SLURM_JOB_END_TIME), as RFC 3339; empty when it does not.
[[nodiscard]] std::string slurm_end_time();

/// A random identifier in the form of RFC 4122, version 4.
[[nodiscard]] std::string make_uuid();

} // namespace ranktune::process
