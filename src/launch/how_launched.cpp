// SPDX-License-Identifier: Apache-2.0
#include "launch/how_launched.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <sched.h>
#include <unistd.h>

#include "comm/mpi/launch.hpp"
#include "process/command_output.hpp"
#include "process/environment.hpp"
#include "process/spawn.hpp"

namespace ranktune::launch {
namespace {

/// A controller that takes longer to answer counts as absent.
constexpr std::chrono::seconds ping_patience{3};

/// Where Slurm's programs look for slurm.conf: fixed places, and those of an installation with its own prefix.
std::vector<std::filesystem::path> settings_files(const std::string& sbatch) {
    std::vector<std::filesystem::path> files{"/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf",
                                             "/usr/local/etc/slurm.conf", "/run/slurm/conf/slurm.conf"};
    std::error_code error;
    for (const std::filesystem::path& program :
         {std::filesystem::path(sbatch), std::filesystem::canonical(sbatch, error)}) {
        const std::filesystem::path prefix = program.parent_path().parent_path();
        files.insert(files.end(), {prefix / "etc/slurm.conf", prefix / "etc/slurm/slurm.conf"});
    }
    return files;
}

/// Nodes without slurm.conf ask the controller for it.
bool controller_answers() {
    const auto ping = process::run_command({"scontrol", "ping"}, ping_patience);
    return ping.ok() && ping.text.find(" UP") != std::string::npos; // older versions report DOWN with exit code 0
}

/// Slurm's programs may be installed on a machine outside any cluster.
bool belongs_to_cluster(const std::string& sbatch) {
    if (!process::environment_variable("SLURM_CONF").empty()) return true;
    const auto is_there = [](const std::filesystem::path& file) { return access(file.c_str(), R_OK) == 0; };
    return std::ranges::any_of(settings_files(sbatch), is_there) || controller_answers();
}

} // namespace

Launch how_launched() {
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "PMI_FD", "MPI_LOCALRANKID",
                             "PALS_RANKID", "FLUX_TASK_RANK"}) {
        if (!process::environment_variable(name).empty()) return Launch::by_launcher;
    }
    // srun started this task without PMI: the launch checks explain the problem.
    if (!process::environment_variable("SLURM_STEP_ID").empty() &&
        !process::environment_variable("SLURM_PROCID").empty() &&
        process::environment_variable("SLURM_STEP_NUM_TASKS") != "1") {
        return Launch::by_launcher;
    }
    if (!process::environment_variable("SLURM_JOB_ID").empty()) return Launch::allocation;
    return Launch::by_hand;
}

bool is_login_node() {
    const std::string sbatch = process::find_program("sbatch", process::environment_entries());
    return !sbatch.empty() && belongs_to_cluster(sbatch);
}

bool speaks() { return comm::mpi::is_first_task(process::environment_variables()); }

std::uint32_t hardware_threads() {
    cpu_set_t set;
    CPU_ZERO(&set);
    const int threads = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return static_cast<std::uint32_t>(std::max(1, threads));
}

std::uint32_t most_workers() {
    constexpr std::uint64_t worker_bytes = std::uint64_t{64} << 20;
    const std::uint64_t by_cores = std::max<std::uint64_t>(16, std::uint64_t{4} * hardware_threads());
    const std::uint64_t by_memory = std::max<std::uint64_t>(1, process::memory_bytes() / worker_bytes);
    return static_cast<std::uint32_t>(std::min(by_cores, by_memory));
}

std::uint32_t default_workers(const study::StudySpec& spec) {
    const std::uint32_t group = spec.max_ranks_per_trial();
    const std::uint32_t fit = std::min(hardware_threads() / std::max(1U, spec.resources.cpus_per_rank), most_workers());
    return std::max(group, fit / group * group) + spec.output.spares;
}

} // namespace ranktune::launch
