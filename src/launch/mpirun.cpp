// SPDX-License-Identifier: Apache-2.0
#include "launch/mpirun.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include <sys/uio.h>
#include <unistd.h>

#include "comm/mpi/environment.hpp"
#include "comm/mpi/launch.hpp"
#include "comm/mpi/launcher_words.hpp"
#include "comm/wire/protocol.hpp"
#include "launch/overdue.hpp"
#include "launch/shared_memory.hpp"
#include "launch/step.hpp"
#include "process/descendants.hpp"
#include "process/environment.hpp"
#include "process/signal_note.hpp"
#include "process/signals.hpp"
#include "process/spawn.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/study/command_template.hpp"
#include "ranktune/study/vocabulary.hpp"
#include "storage/file_system.hpp"
#include "storage/journal/lease.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::launch {
namespace {

/// For a launcher whose ranks have all ended.
constexpr std::chrono::seconds launcher_wait{30};
/// For a launcher that has not started a rank yet.
constexpr std::chrono::seconds launcher_start{120};

/// The launcher of this program's MPI. If several are installed, `mpirun` is often Open MPI's, under which each MPICH
/// rank would be alone. Returns a name on PATH, not a path: Open MPI takes a path for --prefix and puts /usr/bin in
/// front of the user's PATH and LD_LIBRARY_PATH.
std::string find_launcher() {
    std::vector<const char*> names{"mpirun", "mpiexec"};
    if (comm::mpi::library() == comm::mpi::Library::mpich)
        names.insert(names.begin(), {"mpiexec.mpich", "mpiexec.hydra"});
    for (const char* name : names) {
        if (!process::find_program(name, process::environment_entries()).empty()) return name;
    }
    return {};
}

/// Whether a process may read another's memory, which makes large messages on one machine twice as fast. Many
/// containers forbid the call, even for the own process.
bool may_read_other_processes() {
    char from = 1;
    char to = 0;
    const iovec local{&to, 1};
    const iovec remote{&from, 1};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1;
}

/// The options that an oversubscribed laptop needs with this MPI. All are in the printed line, so that typing it gives
/// the same run.
std::vector<std::string> launcher_arguments(std::uint32_t ranks) {
    // First: Hydra takes its options for all ranks before those for some.
    auto arguments = comm::mpi::survival_options(process::environment_variables(), comm::mpi::library_version());
    arguments.insert(arguments.end(), {"-n", std::to_string(ranks)});
    if (comm::mpi::library() != comm::mpi::Library::open_mpi) return arguments;
    for (const char* option : {"--oversubscribe", "--bind-to", "none"}) arguments.emplace_back(option);
    if (geteuid() == 0) arguments.emplace_back("--allow-run-as-root");
    const auto set = [&](const std::string& name, const char* value) {
        if (!process::environment_variable("OMPI_MCA_" + name).empty()) return; // the user's setting wins
        arguments.insert(arguments.end(), {"--mca", name, value});
    };
    // More ranks than cores: waiting ranks must yield. Containers often refuse ptrace, which the single-copy transport
    // needs.
    set("mpi_yield_when_idle", "1");
    if (!may_read_other_processes()) set("btl_vader_single_copy_mechanism", "none");
    // One machine: do not search for a fabric, which is slow and prints warnings.
    set("pml", "ob1");
    set("btl", "self,vader");
    return arguments;
}

/// The whole line: launcher, its options, this program, its arguments.
std::vector<std::string> launcher_words(const MpirunStart& start) {
    const std::string launcher = find_launcher();
    if (launcher.empty()) {
        throw base::UsageError(
            "neither mpirun nor mpiexec is on PATH; install Open MPI (Debian: openmpi-bin) or load your centre's MPI "
            "module");
    }
    std::vector<std::string> words{launcher};
    for (auto& argument : launcher_arguments(start.workers + 1)) words.push_back(std::move(argument));
    words.push_back(start.program);
    words.insert(words.end(), start.arguments.begin(), start.arguments.end());
    return words;
}

/// The line as a user would type it: programs without their folders.
std::string shown(const std::vector<std::string>& words, const MpirunStart& start) {
    std::string line = words.front();
    for (std::size_t i = 1; i < words.size(); ++i) {
        const bool is_program = words[i] == start.program;
        line +=
            " " + (is_program ? std::filesystem::path(words[i]).filename().string() : study::shell_text({words[i]}));
    }
    return line;
}

void prepare_environment(const MpirunStart& start, const std::string& line, const std::string& shared_memory) {
    setenv(launch_line_variable, line.c_str(), 1);
    for (const auto& [name, value] : start.variables) setenv(name.c_str(), value.c_str(), 0);
    if (comm::mpi::library() == comm::mpi::Library::open_mpi && !shared_memory.empty())
        setenv(backing_directory, shared_memory.c_str(), 0); // for this run only, so not in the printed line
}

/// What the ranks wrote to the file `outcome`.
struct Left {
    std::optional<int> told; ///< exit code, if this run wrote it
    bool changed = false;    ///< it differs from the one before this run
    bool died = false;       ///< this run's head has died: its lease is still there
};

MpirunEnd end_of(const StepEnded& ended, const Left& left, const std::string& directory) {
    const int code = ended.code;
    const bool told = left.told.has_value();
    const int outcome = left.told.value_or(code);
    const bool nothing_ran = code == 0 && !told && !left.changed && !left.died && !ended.asked;
    if (nothing_ran) // and nothing says why
        return {1, 1,
                "mpirun ended without an error, but no rank of ranktune has run: is the mpirun on PATH that of " +
                    comm::mpi::library_version() + "? The line that was run is above"};
    constexpr int resumable = static_cast<int>(study::StudyOutcome::resumable);
    constexpr int usage = static_cast<int>(study::StudyOutcome::usage); // refused: the message is on the screen
    if (ended.asked && !told && code != usage)                          // asked before the head ran, or twice in a row
        return {resumable, resumable,
                "stopped before the study could say how far it came; the same command goes on from there"};
    // With the study's own code it ended on its own and said why: full disk, `ranktune stop`. When a rank has died,
    // mpirun stops the others and exits with another code, unless it was told to outlive them: then its code says
    // nothing.
    const bool outlives = comm::mpi::will_outlive_ranks(comm::mpi::Starter::here, process::environment_variables(),
                                                        comm::mpi::library_version());
    const bool stopped_others = told ? outcome == resumable && code != resumable && !outlives : code > 128;
    const bool killed = left.died || stopped_others;
    if (!killed || ended.asked) return {outcome, outcome, ""};
    const std::string how = code == comm::head_lost_code
                                ? "the workers heard nothing of the head for run.heartbeat_timeout, and left"
                            : left.died ? "the head died before the study ended"
                                        : "a rank ended before the study did";
    const std::string again = "the same command goes on from there; output: " + directory + "/logs/";
    const bool supervised =
        !process::environment_variable(supervised_variable).empty(); // `supervise` needs the launcher's code
    if (left.died) return {supervised ? comm::head_lost_code : resumable, resumable, how + "; " + again};
    return {supervised ? std::max(code, 1) : outcome, outcome,
            how + " (mpirun: exit code " + std::to_string(code) + "); " + again};
}

} // namespace

MpirunEnd run_under_mpirun(const MpirunStart& start, const std::function<void(const std::string& text)>& say) {
    std::vector<std::string> words = launcher_words(start);
    const SharedMemoryFolder shared_memory;
    const bool open_mpi = comm::mpi::library() == comm::mpi::Library::open_mpi;
    if (open_mpi) {
        const std::string shortage = shared_memory_shortage(process::environment_variable(backing_directory),
                                                            start.workers + 1, process::environment_variables());
        if (!shortage.empty()) throw base::UsageError(shortage);
    }
    prepare_environment(start, shown(words, start), shared_memory.path());

    auto& files = storage::posix_file_system();
    const std::string launch = process::make_uuid();
    // Absolute, because --fresh may rename this process's working directory.
    const studydir::StudyDirectory study{std::filesystem::absolute(start.directory).lexically_normal().string()};
    const auto before = studydir::read_outcome(files, study);
    const auto held_before = storage::read_lease(files, study.path);
    SignalRelay relay;
    StepOptions step;
    step.words = std::move(words);
    step.variables.emplace_back(process::interrupt_variable, study::name(study::Asker::sigusr2));
    step.variables.emplace_back(studydir::launch_variable, launch);
    comm::mpi::LauncherWords said;
    if (open_mpi) step.keep_error_line = [&](const std::string& line) { return said.take(line); };
    // A launcher that hangs: after the death of a rank, or before it started one.
    bool had_ranks = false;
    step.overdue = [&had_ranks, &say,
                    overdue = Overdue(launcher_wait, std::nullopt, launcher_start)](pid_t launcher) mutable {
        const std::optional<bool> has_ranks = process::has_living_children(launcher);
        had_ranks = had_ranks || has_ranks.value_or(false);
        if (!overdue.next({false, {}, false, has_ranks})) return false;
        say(had_ranks ? "ranktune: mpirun has not ended, although all its ranks have: ending it\n"
                      : "ranktune: mpirun has started no rank in 2 minutes: ending it\n");
        return true;
    };
    process::block_stop_signals(); // a second Ctrl-C may come while this process reports the end
    const StepEnded ended = run_step(step, relay);
    // Another run may have written the file: an earlier one, or one that is running and refused this one.
    const auto written = studydir::read_outcome(files, study);
    const bool told = written && written->launch == launch;
    const bool began = written != before;
    if (!told && !ended.asked && (ended.code != 0 || !began)) say(said.text());
    const auto held = storage::read_lease(files, study.path);
    return end_of(ended,
                  {told ? std::optional(static_cast<int>(written->outcome)) : std::nullopt, began,
                   held && held != held_before && !storage::possible_writer(files, study.path)},
                  start.directory);
}

} // namespace ranktune::launch
