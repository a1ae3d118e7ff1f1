// SPDX-License-Identifier: Apache-2.0
#include "studydir/environment_facts.hpp"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <thread>

#include "base/json_text.hpp"
#include "process/environment.hpp"
#include "trainables/blas.hpp"

namespace ranktune::studydir {
namespace {

/// Variables other than Slurm's that explain a run and cannot hold a secret. All others stay out of env.json.
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

/// Judges by the name. Slurm, the site and plugins set such variables; options of SPANK plugins may hold anything.
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

/// Where the study runs, and the commit that is checked out there.
std::string code_json() {
    std::error_code error;
    const std::string directory = std::filesystem::current_path(error).string();
    base::JsonObject object(2);
    object.text("directory", directory).text("commit", error ? "" : source_commit(directory));
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
        .raw("code", code_json())
        .raw("layout", facts.layout)
        .raw("variables", variables_json());
    return object.str() + "\n";
}

FileSystemFacts file_system_facts(const std::string& path) {
    FileSystemFacts facts;
    const std::string type = process::file_system_type(path);
    struct statvfs room {};
    if (type.empty() || statvfs(path.c_str(), &room) != 0) {
        facts.error = {errno, std::generic_category()};
        return facts;
    }
    facts.type = type;
    facts.free_bytes = static_cast<std::uint64_t>(room.f_bavail) * room.f_frsize;
    if (room.f_files > 0) facts.free_inodes = room.f_favail;
    return facts;
}

std::string binary_size(std::uint64_t bytes) {
    constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; value >= 1023.5 && unit + 1 < std::size(units); ++unit) value /= 1024.0;
    char text[32];
    std::snprintf(text, sizeof text, "%.0f%s", value, units[unit]);
    return text;
}

namespace {

namespace fs = std::filesystem;

std::string first_line_of(const fs::path& file) {
    std::error_code error;
    std::string line;
    if (!fs::is_regular_file(file, error)) return line; // a FIFO would block for ever
    std::ifstream in(file);
    std::getline(in, line);
    return line;
}

bool is_commit(const std::string& text) { // SHA-1 or SHA-256
    return (text.size() == 40 || text.size() == 64) &&
           std::ranges::all_of(text, [](unsigned char c) { return std::isxdigit(c) != 0; });
}

/// The folder of git's files: `.git`, or what a file of that name points to (worktrees, submodules). Empty: none.
fs::path git_folder(fs::path directory) {
    std::error_code error;
    for (;; directory = directory.parent_path()) {
        const fs::path here = directory / ".git";
        if (fs::is_directory(here, error)) return here;
        constexpr std::string_view pointer = "gitdir: ";
        if (const std::string line = first_line_of(here); line.starts_with(pointer))
            return directory / line.substr(pointer.size());
        if (directory == directory.parent_path()) return {};
    }
}

std::string packed(const fs::path& folder, const std::string& name) {
    std::error_code error;
    if (!fs::is_regular_file(folder / "packed-refs", error)) return {};
    std::ifstream in(folder / "packed-refs");
    for (std::string line; std::getline(in, line);) {
        const auto space = line.find(' ');
        if (space != std::string::npos && line.substr(space + 1) == name) return line.substr(0, space);
    }
    return {};
}

} // namespace

std::string source_commit(const std::string& directory) {
    const fs::path folder = git_folder(fs::path(directory));
    if (folder.empty()) return {};
    const std::string head = first_line_of(folder / "HEAD");
    constexpr std::string_view reference = "ref: ";
    if (!head.starts_with(reference)) return is_commit(head) ? head : "";
    const std::string name = head.substr(reference.size());
    const std::string shared = first_line_of(folder / "commondir"); // of a worktree: where the branches are
    const fs::path common = shared.empty() ? folder : folder / shared;
    for (const std::string& commit : {first_line_of(folder / name), first_line_of(common / name), packed(common, name)})
        if (is_commit(commit)) return commit;
    return {};
}

} // namespace ranktune::studydir
