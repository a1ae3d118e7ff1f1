// SPDX-License-Identifier: Apache-2.0
#pragma once
// The environment of a program: what torchrun would set for the trial's group, what ranktune tells, and nothing of the
// launcher that started the worker. docs/reference/program-protocol.md is the reference.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ranktune/study/spec.hpp"

namespace ranktune::trainables {

/// Number of the descriptor that the program finds its worker at.
inline constexpr int control_descriptor = 3;

/// Where a rank stands among the ranks of its trial.
struct GroupPlace {
    int rank = 0;
    int size = 1;
    int local_rank = 0; ///< among the ranks on its node
    int local_size = 1;
    int node = 0; ///< nodes are counted in the order of their lowest rank
    int nodes = 1;
    friend bool operator==(const GroupPlace&, const GroupPlace&) = default;
};
/// From the node of each rank (any number that is equal for ranks of one node).
[[nodiscard]] GroupPlace place_in_group(std::span<const std::uint64_t> node_of_rank, int rank);

/// What differs from attempt to attempt.
struct ProgramFacts {
    std::string study;           ///< name
    std::string study_directory; ///< absolute
    base::TrialId trial;
    base::Attempt attempt;
    std::uint64_t seed = 0;
    base::Iteration iterations = 1; ///< ceiling
    base::Iteration iteration = 0;  ///< completed so far
    study::Objective objective;
    std::uint32_t cpus_per_rank = 1;
    std::string run_id;      ///< the same on all ranks of the attempt, different for each
    std::string python_path; ///< folder with ranktune.py, put in front of PYTHONPATH; empty: none
    std::string config_path;
    std::string checkpoint_directory;
    std::optional<std::string> checkpoint; ///< to go on from
    GroupPlace place;
    std::string master_address;
    std::uint16_t master_port = 0;
    /// Absent: as this worker has it.
    std::optional<std::string> visible_devices;
    std::vector<std::string> addresses; ///< `host:port` of every rank, for TF_CONFIG
};

/// Whether a variable belongs to an MPI, its launcher or Slurm, and would make a program believe that it was started by
/// one. Among those of Slurm's is ENVIRONMENT when it is BATCH.
[[nodiscard]] bool is_launcher_variable(std::string_view name, std::string_view value = {});

/// The same as a list for people and for tests: names, "PREFIX_*", and NAME=VALUE where the value counts.
[[nodiscard]] std::vector<std::string> launcher_variables();

/// One that is set, or with no value taken out.
using VariableChange = std::pair<std::string, std::optional<std::string>>;
/// All variables by which libraries of any vendor choose GPUs, so that none contradicts another: a process finds the
/// devices of `list` ("0,1", "GPU-8932f937-...") and no others; with an empty one, none.
[[nodiscard]] std::vector<VariableChange> gpu_variables(const std::string& list);

/// `NAME=value` for execve, from those of this process. `program.env` has the last word.
[[nodiscard]] std::vector<std::string> program_environment(std::span<const std::string> inherited,
                                                           const study::ProgramSpec& program,
                                                           const ProgramFacts& facts);

} // namespace ranktune::trainables
