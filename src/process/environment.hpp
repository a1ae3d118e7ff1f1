// SPDX-License-Identifier: Apache-2.0
#pragma once
// Facts about this process: its variables, its machine, its Slurm job; and unique names.

#include <cstdint>
#include <string>
#include <vector>

#include "ranktune/base/variables.hpp"

namespace ranktune::process {

/// The environment of this process, as `NAME=value` entries, and as a map.
[[nodiscard]] std::vector<std::string> environment_entries();
[[nodiscard]] base::Variables environment_variables();
/// The value of one variable; empty when unset.
[[nodiscard]] std::string environment_variable(const std::string& name);

/// This node's name: SLURMD_NODENAME (several nodes of a test bed may share a host name), otherwise the host name.
[[nodiscard]] std::string host_name();
/// "ada@login1". Looked up once: getpwuid is not for several threads.
[[nodiscard]] const std::string& user_at_host();
/// Memory that the processes of this job may use on this node, in bytes: the node's, or the limit of the process's
/// control group (version 2) if that is less.
[[nodiscard]] std::uint64_t memory_bytes();
/// Name of a file system by its statfs(2) magic number: "lustre", "nfs", "ext4"; "0x1234" for an unknown one.
[[nodiscard]] std::string file_system_name(std::uint64_t number);
/// The one of the file system that holds `path`; empty, and errno: it cannot be read.
[[nodiscard]] std::string file_system_type(const std::string& path);
/// Slurm's id of the job; empty outside Slurm.
[[nodiscard]] std::string slurm_job();
[[nodiscard]] std::uint32_t slurm_restart_count();
/// End time of the job (SLURM_JOB_END_TIME) as RFC 3339; empty when unknown.
[[nodiscard]] std::string slurm_end_time();

/// A random identifier in the form of RFC 4122, version 4.
[[nodiscard]] std::string make_uuid();

} // namespace ranktune::process
