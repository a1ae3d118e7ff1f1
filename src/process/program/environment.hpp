// SPDX-License-Identifier: Apache-2.0
#pragma once
// The environment of a program: the variables of torchrun for the trial's group and ranktune's own, without those of
// the worker's launcher. Reference: docs/reference/program-protocol.md.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ranktune/study/spec.hpp"

namespace ranktune::process {

/// The program's file descriptor for messages to and from its worker.
inline constexpr int control_descriptor = 3;

/// A rank's place among the ranks of its trial.
struct GroupPlace {
    int rank = 0;
    int size = 1;
    int local_rank = 0; ///< among the ranks on its node
    int local_size = 1;
    int node = 0; ///< nodes are counted in the order of their lowest rank
    int nodes = 1;
    friend bool operator==(const GroupPlace&, const GroupPlace&) = default;
};
/// `node_of_rank`: any numbers that are equal for ranks on one node.
[[nodiscard]] GroupPlace place_in_group(std::span<const std::uint64_t> node_of_rank, int rank);

/// The values that differ between attempts.
struct ProgramFacts {
    std::string study;                                    ///< name
    std::string study_directory;                          ///< absolute
    std::optional<base::TrialId> trial = base::TrialId{}; ///< nullopt: a task before or after all trials
    base::AttemptId attempt;
    std::uint64_t seed = 0;
    base::Iteration iterations = 1; ///< upper limit
    base::Iteration iteration = 0;  ///< completed so far
    study::Objective objective;
    std::uint32_t cpus_per_rank = 1;
    std::vector<study::DataFile> data = {};
    std::string run_id;      ///< the same on all ranks of an attempt, different between attempts
    std::string python_path; ///< folder of ranktune.py, prepended to PYTHONPATH; empty: none
    std::string config_path; ///< of the configuration as JSON; or the JSON itself, of a task or function; empty: none
    std::string checkpoint_directory;
    std::string trial_folder;              ///< the trial's own, for {folder}
    std::optional<std::string> checkpoint; ///< to resume from
    GroupPlace place;
    std::string master_address;
    std::uint16_t master_port = 0;
    /// Absent: inherited from this worker.
    std::optional<std::string> visible_devices;
    double gpu_share = 1.0;             ///< of its GPU's memory, where several trials share a GPU
    std::vector<std::string> addresses; ///< `host:port` of every rank, for TF_CONFIG
    space::Configuration configuration; ///< for values of `env` that are `{name}`
};

/// Whether a variable belongs to MPI, its launcher or Slurm, so that a program might believe that it was started by
/// one. Includes Slurm's ENVIRONMENT=BATCH.
[[nodiscard]] bool is_launcher_variable(std::string_view name, std::string_view value = {});

/// The same as a list for documentation and tests: names, "PREFIX_*", and NAME=VALUE where the value matters.
[[nodiscard]] std::vector<std::string> launcher_variables();

/// A variable to set; without a value: to remove.
using VariableChange = std::pair<std::string, std::optional<std::string>>;
/// Consistent values for the GPU variables of all vendors: a process sees the devices of `list` ("0,1",
/// "GPU-8932f937-...") and no others; with an empty list, none.
[[nodiscard]] std::vector<VariableChange> gpu_variables(const std::string& list);

/// `NAME=value` entries for execve, based on `inherited`. `program.env` overrides everything else.
[[nodiscard]] std::vector<std::string> program_environment(std::span<const std::string> inherited,
                                                           const study::ProgramSpec& program,
                                                           const ProgramFacts& facts);

} // namespace ranktune::process
