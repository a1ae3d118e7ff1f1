// SPDX-License-Identifier: Apache-2.0
#include "drivers/environment_facts.hpp"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <string_view>
#include <thread>

#include "drivers/json_text.hpp"
#include "trainables/blas.hpp"

namespace ranktune::drivers {
namespace {

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr ? value : "";
}

/// Names beside Slurm's that explain a run and cannot hold a secret. Anything else of the environment stays where it
/// is.
constexpr const char* listed[] = {"CUDA_VISIBLE_DEVICES",
                                  "HDF5_USE_FILE_LOCKING",
                                  "LOADEDMODULES",
                                  "OMPI_COMM_WORLD_SIZE",
                                  "OMPI_MCA_btl",
                                  "OMPI_MCA_mpi_yield_when_idle",
                                  "OMPI_MCA_pml",
                                  "OMP_NUM_THREADS",
                                  "OPENBLAS_NUM_THREADS",
                                  "PMIX_VERSION",
                                  "TMPDIR"};

/// What Slurm, its site and its plugins set, by name. Options of SPANK plugins may be anything.
bool may_hold_a_secret(std::string_view name) {
    for (const char* part : {"AUTH", "CREDENTIAL", "JWT", "KEY", "PASS", "SECRET", "SPANK", "TOKEN"})
        if (name.find(part) != std::string_view::npos) return true;
    return false;
}

bool is_shown(std::string_view name) {
    const bool slurm = name.starts_with("SLURM") || name.starts_with("SRUN_") || name.starts_with("SBATCH_");
    return slurm ? !may_hold_a_secret(name) : std::ranges::find(listed, name) != std::end(listed);
}

std::string variables_json() {
    JsonObject object(2);
    for (const auto& [name, value] : environment_variables())
        if (is_shown(name)) object.text(name, value);
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

std::string build_json(const std::string& type) {
    JsonObject object(2);
    object.text("type", type);
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

std::string slurm_end_time() {
    const auto seconds = static_cast<std::time_t>(std::strtoll(variable("SLURM_JOB_END_TIME").c_str(), nullptr, 10));
    if (seconds <= 0) return {};
    std::tm parts{};
    gmtime_r(&seconds, &parts);
    char text[40];
    return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
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
        .text("blas", trainables::blas::built_with())
        .raw("build", build_json(facts.build_type))
        .raw("machine", machine_json())
        .raw("layout", facts.layout)
        .raw("variables", variables_json());
    return object.str() + "\n";
}

} // namespace ranktune::drivers
