// SPDX-License-Identifier: Apache-2.0
#include "drivers/environment_facts.hpp"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <thread>

#include "drivers/json_text.hpp"

namespace ranktune::drivers {
namespace {

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr ? value : "";
}

/// Names that explain a run and cannot hold a secret. Anything else of the environment stays where it is.
constexpr const char* listed[] = {"SLURM_JOB_ID",         "SLURM_JOB_NAME",
                                  "SLURM_JOB_PARTITION",  "SLURM_JOB_NODELIST",
                                  "SLURM_JOB_NUM_NODES",  "SLURM_JOB_CPUS_PER_NODE",
                                  "SLURM_JOB_START_TIME", "SLURM_JOB_END_TIME",
                                  "SLURM_ARRAY_JOB_ID",   "SLURM_ARRAY_TASK_ID",
                                  "SLURM_RESTART_COUNT",  "SLURM_STEP_ID",
                                  "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE",
                                  "SLURM_NTASKS",         "SLURM_TASKS_PER_NODE",
                                  "SLURM_CPUS_PER_TASK",  "SRUN_CPUS_PER_TASK",
                                  "SLURM_CPU_BIND",       "SLURM_DISTRIBUTION",
                                  "SLURM_GPUS",           "SLURM_GPUS_ON_NODE",
                                  "SLURM_GPUS_PER_NODE",  "SLURM_GPUS_PER_TASK",
                                  "SLURM_MPI_TYPE",       "SLURM_CLUSTER_NAME",
                                  "SLURM_SUBMIT_DIR",     "SLURMD_NODENAME",
                                  "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS",
                                  "OPENBLAS_NUM_THREADS", "HDF5_USE_FILE_LOCKING",
                                  "OMPI_COMM_WORLD_SIZE", "OMPI_MCA_pml",
                                  "OMPI_MCA_btl",         "OMPI_MCA_mpi_yield_when_idle",
                                  "PMIX_VERSION",         "TMPDIR",
                                  "LOADEDMODULES"};

std::string variables_json() {
    JsonObject object(2);
    for (const char* name : listed)
        if (const char* value = std::getenv(name)) object.text(name, value);
    return object.str();
}

std::string limit_text(int resource) {
    rlimit limit{};
    if (getrlimit(static_cast<decltype(RLIMIT_NOFILE)>(resource), &limit) != 0) return "unknown";
    return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur);
}

std::string machine_json() {
    utsname name{};
    uname(&name);
    JsonObject object(2);
    object.text("host", host_name())
        .text("system", name.sysname)
        .text("release", name.release)
        .text("machine", name.machine)
        .integer("cpus", std::thread::hardware_concurrency())
        .text("open_files_limit", limit_text(RLIMIT_NOFILE))
        .text("core_file_limit", limit_text(RLIMIT_CORE));
    return object.str();
}

std::string build_json() {
    JsonObject object(2);
#if defined(__clang__)
    object.text("compiler", "clang " __clang_version__);
#elif defined(__GNUC__)
    object.text("compiler", "gcc " __VERSION__);
#endif
#ifdef NDEBUG
    object.boolean("assertions", false);
#else
    object.boolean("assertions", true);
#endif
    object.text("cuda", "not compiled");
    return object.str();
}

} // namespace

std::vector<std::string> environment_entries() {
    std::vector<std::string> entries;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) entries.emplace_back(*entry);
    return entries;
}

base::Variables environment_variables() {
    base::Variables variables;
    for (const std::string& entry : environment_entries())
        if (const auto at = entry.find('='); at != std::string::npos)
            variables.emplace(entry.substr(0, at), entry.substr(at + 1));
    return variables;
}

std::string host_name() {
    auto name = variable("SLURMD_NODENAME");
    if (!name.empty()) return name;
    char buffer[256] = {};
    if (gethostname(buffer, sizeof buffer - 1) != 0) return "localhost";
    return buffer;
}

std::string slurm_job() { return variable("SLURM_JOB_ID"); }

std::uint32_t slurm_restart_count() {
    return static_cast<std::uint32_t>(std::strtoul(variable("SLURM_RESTART_COUNT").c_str(), nullptr, 10));
}

std::string environment_json(const EnvironmentFacts& facts) {
    JsonObject object;
    object.integer("schema", 1)
        .text("time", facts.wall_time)
        .text("ranktune", facts.version)
        .text("study", facts.study)
        .integer("start", facts.incarnation)
        .integer("ranks", static_cast<std::uint64_t>(facts.ranks))
        .text("mpi", facts.mpi)
        .text("hdf5", facts.hdf5)
        .raw("build", build_json())
        .raw("machine", machine_json())
        .raw("layout", facts.layout)
        .raw("variables", variables_json());
    return object.str() + "\n";
}

} // namespace ranktune::drivers
