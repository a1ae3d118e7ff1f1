// SPDX-License-Identifier: Apache-2.0
#include "cli/checks/doctor.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/checks/gpu_checks.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/version.hpp"
#include "comm/mpi/environment.hpp"
#include "comm/mpi/launch.hpp"
#include "data/staging/places.hpp"
#include "launch/shared_memory.hpp"
#include "process/command_output.hpp"
#include "process/environment.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "report/screens/text.hpp"
#include "slurm/allocation.hpp"
#include "storage/hdf5/thread.hpp"
#include "storage/unique_handle.hpp"
#include "studydir/environment_facts.hpp"
#include "trainables/blas.hpp"
#include "trainables/builtin.hpp"

namespace ranktune::cli {
namespace {

namespace fs = std::filesystem;
using State = Check::State;
using report::first_line;
using namespace std::chrono_literals;

constexpr auto answer_within = 10s;

// ---- MPI, launchers, Slurm ----

Check mpi() {
    Check check{"mpi", State::good, comm::mpi::library_version()};
    const std::string pml = process::environment_variable("OMPI_MCA_pml");
    if (!pml.empty()) check.text += "; OMPI_MCA_pml=" + pml + " is set by your environment";
    if (comm::mpi::library() == comm::mpi::Library::other) {
        check.state = State::note;
        check.mend = "tested are Open MPI 4.1 and later, and MPICH 4.0 and later";
    }
    const char* const survives = comm::mpi::survival_variable(comm::mpi::library_version());
    check.text += survives == nullptr ? "; a rank that dies ends the start, and the next one goes on"
                  : survives == comm::mpi::ulfm_variable
                      ? "; studies go on when a worker dies, under mpirun --with-ft ulfm (`ranktune run` adds it)"
                  : survives == comm::mpi::fault_variable ? "; studies go on when a worker dies, under mpirun"
                                                          : "; studies go on when a worker dies";
    return check;
}

Check launcher() {
    const auto found = process::run_command({"mpirun", "--version"}, answer_within);
    if (!found.ok())
        return {"mpirun", State::note, "not found: " + first_line(found.error),
                "not needed where srun starts ranks; otherwise load the MPI that ranktune was built with"};
    const std::string text = first_line(found.text);
    const bool open = text.find("Open MPI") != std::string::npos;
    const bool built_with_open = comm::mpi::library() == comm::mpi::Library::open_mpi;
    if (open == built_with_open) return {"mpirun", State::good, text};
    return {"mpirun", State::wrong, text + ", but this program was built with " + comm::mpi::library_version(),
            "load the MPI that ranktune was built with; each rank would be alone"};
}

Check slurm_programs() {
    const auto found = process::run_command({"sinfo", "--version"}, answer_within);
    if (found.no_exit == process::NoExit::no_such_program) return {"slurm", State::good, "none here"};
    if (!found.ok())
        return {"slurm", State::note, "its programs are here, but do not work: " + first_line(found.error),
                "on a machine without a cluster that is all right; otherwise ask whoever keeps its slurm.conf"};
    Check check{"slurm", State::good, first_line(found.text)};
    const auto job = slurm::allocation(process::environment_variables());
    if (job) check.text += ", in job " + job->job;
    const auto ping = process::run_command({"scontrol", "ping"}, answer_within);
    if (!ping.ok()) {
        check.state = State::note;
        check.text +=
            "; its controller does not answer" + (ping.error.empty() ? "" : " (" + first_line(ping.error) + ")");
        check.mend = "studies run all the same, but know no deadline and cannot requeue their job";
    }
    return check;
}

Check pmix() {
    const auto list = process::run_command({"srun", "--mpi=list"}, answer_within);
    const std::string offered = comm::mpi::offered_interfaces(list.text + list.error);
    if (offered.empty()) return {"pmix", State::good, "no srun that offers an interface; mpirun brings its own"};
    const std::string wanted = comm::mpi::library() == comm::mpi::Library::mpich ? "pmi2" : "pmix";
    if (offered.find(wanted) != std::string::npos)
        return {"pmix", State::good, "srun offers " + offered + "; use srun --mpi=" + wanted};
    return {"pmix", State::wrong,
            "srun offers " + offered + ", but " + comm::mpi::library_version() + " needs " + wanted,
            "start ranks by mpirun (launcher = \"mpirun\" in the site file), or ask for Slurm's " + wanted + " plugin"};
}

// ---- libraries and cores ----

Check blas() {
    // OpenBLAS starts a thread per core when it is loaded, and waits for ever where a memory limit forbids the threads.
    constexpr const char* threads = "OPENBLAS_NUM_THREADS";
    const bool is_set = getenv(threads) != nullptr;
    if (!is_set) setenv(threads, "1", 0);
    Check check{"blas", State::good, trainables::blas::built_with()};
    check.state = State::note; // if loading fails: only `mlp` needs BLAS
    try {
        check.text = trainables::blas::library();
        check.state = State::wrong; // if use_threads throws: the slow reference library
        trainables::blas::use_threads(1);
        check.state = State::good;
    } catch (const base::Error& error) {
        check.mend = error.what();
    }
    if (!is_set) unsetenv(threads);
    return check;
}

Check libtorch() {
    const std::string found = trainables::torch_built_with();
    return {"libtorch", State::good, found.empty() ? "none: " + trainables::why_no_torch() : found};
}

Check binding() {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    const auto online = sysconf(_SC_NPROCESSORS_ONLN);
    if (sched_getaffinity(0, sizeof mask, &mask) != 0) return {"binding", State::note, "sched_getaffinity fails"};
    const int allowed = CPU_COUNT(&mask);
    Check check{"binding", State::good, fmt::format("{} of {} cores may be used from here", allowed, online)};
    for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"})
        if (const std::string value = process::environment_variable(name); !value.empty())
            check.text += fmt::format(", {}={}", name, value);
    if (allowed == 1 && online > 1) {
        check.state = State::note;
        check.mend = "a launcher has bound this process to one core: srun --cpu-bind=none, mpirun --bind-to none";
    }
    return check;
}

// ---- the file system of the study ----

/// The directory, or the nearest one above it that exists.
fs::path existing(const std::string& directory) {
    fs::path path = fs::absolute(directory.empty() ? "." : directory);
    std::error_code error;
    while (!fs::is_directory(path, error) && path.has_parent_path() && path != path.parent_path())
        path = path.parent_path();
    return path;
}

/// Result of writing a test file in the directory.
struct FileTrial {
    std::string error; ///< empty: none
    double sync_ms = 0.0;
    bool links = false;
    bool locks = false;
};

FileTrial try_a_file(const fs::path& directory) {
    FileTrial result;
    std::string name = (directory / ".ranktune-doctor-XXXXXX").string();
    const storage::FileDescriptor file(mkostemp(name.data(), O_CLOEXEC));
    if (!file) {
        result.error = std::strerror(errno);
        return result;
    }
    const std::string block(4096, 'x');
    std::vector<double> times;
    for (int i = 0; i < 7 && result.error.empty(); ++i) {
        const auto begin = std::chrono::steady_clock::now();
        if (write(file.get(), block.data(), block.size()) < 0 || fdatasync(file.get()) != 0)
            result.error = std::strerror(errno);
        times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    }
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
    result.sync_ms = times[times.size() / 2];
    const std::string other = name + ".link";
    result.links = link(name.c_str(), other.c_str()) == 0;
    result.locks = flock(file.get(), LOCK_EX | LOCK_NB) == 0;
    unlink(other.c_str());
    unlink(name.c_str());
    return result;
}

void file_system(const std::string& directory, std::vector<Check>& checks) {
    const fs::path path = existing(directory);
    const studydir::FileSystemFacts facts = studydir::file_system_facts(path);
    if (facts.error) {
        checks.push_back({"file system", State::wrong, path.string() + ": " + facts.error.message(),
                          "give a directory that can be read"});
        return;
    }
    const FileTrial trial = try_a_file(path);
    Check check{"file system", State::good, fmt::format("{} at {}", facts.type, path.string())};
    if (!trial.error.empty()) {
        check.state = State::wrong;
        check.text += ": a file cannot be written there (" + trial.error + ")";
        check.mend = "put the study where you may write: -o DIR";
    } else {
        check.text += fmt::format(", sync {:.1f} ms, {}hard links, {}locks (not needed)", trial.sync_ms,
                                  trial.links ? "" : "no ", trial.locks ? "" : "no ");
        if (facts.type == "tmpfs") {
            check.state = State::note;
            check.mend = "it is this node's memory: a study there is gone with the node, and other nodes do not see it";
        } else if (trial.sync_ms > 100.0) {
            check.state = State::note;
            check.mend =
                "a slow sync holds up nothing but the end of a run; journal.commit_interval = \"10s\" makes them fewer";
        }
    }
    checks.push_back(std::move(check));

    Check space{"space", facts.free_bytes < (1ULL << 30U) ? State::note : State::good,
                base::bytes_text(facts.free_bytes) + " free"};
    if (facts.free_inodes) space.text += fmt::format(", {} inodes", *facts.free_inodes);
    if (space.state == State::note)
        space.mend = "checkpoints may not fit; a study that finds no room ends with 75 and goes on when there is";
    if (facts.free_inodes && *facts.free_inodes < 1000) {
        space.state = State::wrong;
        space.mend = "remove files: a study needs one for each checkpoint that it keeps";
    }
    checks.push_back(std::move(space));
}

/// Where data.stage would put copies, if the study file names no place.
Check data_copies() {
    constexpr std::uint64_t little = std::uint64_t{1} << 30U;
    const data::CopyPlaces places = data::look_for_places("");
    std::vector<std::string> found;
    for (const data::CopyPlace& place : places.usable)
        found.push_back(base::bytes_text(place.room) + " " + place.shortage);
    found.insert(found.end(), places.refused.begin(), places.refused.end());
    Check check{"data copies", State::good, base::join(found, "; ")};
    if (std::ranges::all_of(places.usable, [](const data::CopyPlace& place) { return place.room < little; })) {
        check.state = State::note;
        check.mend = "data.stage copies what fits; data.directory names another disk of the nodes, as in \"/local\"";
    }
    return check;
}

// ---- limits ----

std::string limit_text(rlim_t value, bool bytes) {
    if (value == RLIM_INFINITY) return "unlimited";
    return bytes ? base::bytes_text(value) : std::to_string(value);
}

rlim_t soft_limit(decltype(RLIMIT_NOFILE) resource) {
    rlimit limit{};
    return getrlimit(resource, &limit) == 0 ? limit.rlim_cur : 0;
}

Check left_behind() {
    constexpr std::size_t most = 5;
    const auto left = launch::abandoned_by_ranks();
    if (left.empty()) return {"left behind", State::good, "nothing of ranks that were killed"};
    return {"left behind", State::note,
            fmt::format("memory in /dev/shm or session folders of {} runs that were killed", left.size()),
            "no process here holds " + base::join_some(left, most) +
                "; ranktune doctor --clean looks again, and removes what nobody holds then"};
}

void limits(std::vector<Check>& checks) {
    const rlim_t files = soft_limit(RLIMIT_NOFILE);
    Check open{"open files", State::good, limit_text(files, false)};
    if (files < 1024) {
        open.state = State::wrong;
        open.mend = "ulimit -n 4096 in the job script; the head needs a few, and one for each peer over TCP";
    } else if (files < 4096) {
        open.text += ": enough for some 900 ranks over TCP";
    }
    checks.push_back(std::move(open));

    const studydir::FileSystemFacts shm = studydir::file_system_facts("/dev/shm");
    Check memory{"/dev/shm", State::good, base::bytes_text(shm.free_bytes) + " free"};
    if (shm.error) {
        memory = {"/dev/shm", State::wrong, shm.error.message(),
                  "ranks of one node talk through it: mount a tmpfs there"};
    } else if (shm.free_bytes < (64U << 20U)) { // Open MPI takes about 4 MiB for each rank of a node
        memory.state = State::wrong;
        memory.mend = "ranks need some 4 MiB each: remove what is left behind (below), or in a container --shm-size=1g";
    }
    checks.push_back(std::move(memory));

    checks.push_back(left_behind());

    checks.push_back({"core files", State::good, limit_text(soft_limit(RLIMIT_CORE), true)});
    const rlim_t locked = soft_limit(RLIMIT_MEMLOCK);
    Check lock{"locked memory", State::good, limit_text(locked, true)};
    if (locked != RLIM_INFINITY && locked < (64U << 20U) && fs::exists("/dev/infiniband")) {
        lock.state = State::wrong;
        lock.mend = "InfiniBand needs it: ulimit -l unlimited, or memlock in /etc/security/limits.conf";
    }
    checks.push_back(std::move(lock));

    const std::string temporary = process::environment_variable("TMPDIR");
    Check socket{"TMPDIR", State::good, temporary.empty() ? "/tmp" : temporary};
    if (temporary.size() > 60) {
        socket.state = State::wrong;
        socket.mend = "PMIx keeps sockets in it, whose names may have 107 bytes: export TMPDIR=/tmp";
    }
    checks.push_back(std::move(socket));
}

const char* state_name(State state) { return state == State::good ? "good" : state == State::note ? "note" : "wrong"; }

} // namespace

std::vector<Check> examine(const std::string& directory) {
    std::vector<Check> checks;
    checks.push_back({"ranktune", State::good, std::string(version()) + " on " + process::host_name()});
    checks.push_back(mpi());
    checks.push_back(launcher());
    checks.push_back(slurm_programs());
    checks.push_back(pmix());
    checks.push_back({"hdf5", State::good, storage::hdf5_version()});
    checks.push_back(blas());
    checks.push_back(libtorch());
    for (Check& check : gpu_checks(find_gpus())) checks.push_back(std::move(check));
    checks.push_back(binding());
    file_system(directory, checks);
    checks.push_back(data_copies());
    limits(checks);
    return checks;
}

std::string doctor_text(const std::vector<Check>& checks) {
    std::string text;
    std::size_t wrong = 0;
    for (const auto& check : checks) {
        wrong += check.state == State::wrong ? 1 : 0;
        const char* mark = check.state == State::good ? " " : check.state == State::note ? "-" : "!";
        text += fmt::format("{} {:14} {}\n", mark, check.name, report::escaped(check.text));
        if (!check.mend.empty())
            text += fmt::format("{:17}{} {}\n", "",
                                check.state == State::wrong ? "mend:" : "note:", report::escaped(check.mend));
    }
    return text + (wrong == 0 ? std::string("nothing is wrong\n")
                              : fmt::format("{} {} wrong\n", wrong, wrong == 1 ? "thing is" : "things are"));
}

std::string doctor_json(const std::vector<Check>& checks) {
    nlohmann::ordered_json root = {{"schema", 1}, {"wrong", 0}, {"checks", nlohmann::ordered_json::array()}};
    int wrong = 0;
    for (const auto& check : checks) {
        wrong += check.state == State::wrong ? 1 : 0;
        root["checks"].push_back(
            {{"name", check.name}, {"state", state_name(check.state)}, {"text", check.text}, {"mend", check.mend}});
    }
    root["wrong"] = wrong;
    return root.dump(2, ' ', false, decltype(root)::error_handler_t::replace) + "\n";
}

} // namespace ranktune::cli
