// SPDX-License-Identifier: Apache-2.0
#include "studydir/environment_facts.hpp"

#include <sys/resource.h>
#include <sys/utsname.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <thread>

#include "base/json_text.hpp"
#include "process/environment.hpp"
#include "trainables/blas.hpp"

namespace ranktune::studydir {
namespace {

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
    base::JsonObject object(2);
    for (const auto& [name, value] : process::environment_variables())
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
    base::JsonObject object(2);
    object.text("host", process::host_name())
        .text("system", name.sysname)
        .text("release", name.release)
        .text("machine", name.machine)
        .integer("cpus", std::thread::hardware_concurrency())
        .text("open_files_limit", limit_text(RLIMIT_NOFILE))
        .text("core_file_limit", limit_text(RLIMIT_CORE));
    return object.str();
}

std::string build_json(const std::string& type) {
    base::JsonObject object(2);
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

std::string environment_json(const EnvironmentFacts& facts) {
    base::JsonObject object;
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

} // namespace ranktune::studydir
