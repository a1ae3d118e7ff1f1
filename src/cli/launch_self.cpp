// SPDX-License-Identifier: Apache-2.0
#include "cli/launch_self.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>

#include <sched.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cli/message.hpp"
#include "cli/shared_memory.hpp"
#include "cli/terminal.hpp"
#include "comm/mpi/environment.hpp"
#include "comm/mpi/launch.hpp"
#include "comm/mpi/launcher_words.hpp"
#include "drivers/command_output.hpp"
#include "drivers/environment.hpp"
#include "drivers/exit_code.hpp"
#include "drivers/program/descendants.hpp"
#include "drivers/program/spawn.hpp"
#include "drivers/signal_note.hpp"
#include "drivers/signals.hpp"
#include "drivers/study_directory.hpp"
#include "drivers/supervise/overdue.hpp"
#include "drivers/supervise/step.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/study/command_template.hpp"
#include "ranktune/study/vocabulary.hpp"
#include "storage/file_system.hpp"

namespace ranktune::cli {
namespace {

/// After the end of all ranks.
constexpr std::chrono::seconds launcher_wait{30};
/// Until it has started a first one.
constexpr std::chrono::seconds launcher_start{120};

/// The launcher that belongs to this program's MPI: where several are installed, a plain `mpirun` is often Open MPI's,
/// under which ranks of MPICH would each be alone. A name on PATH and not a path: what Open MPI is called by with a
/// path it takes for --prefix, and puts /usr/bin in front of the user's PATH and LD_LIBRARY_PATH.
std::string find_launcher() {
    std::vector<const char*> names{"mpirun", "mpiexec"};
    if (comm::mpi::library() == comm::mpi::Library::mpich)
        names.insert(names.begin(), {"mpiexec.mpich", "mpiexec.hydra"});
    for (const char* name : names) {
        if (!drivers::find_program(name, drivers::environment_entries()).empty()) return name;
    }
    return {};
}

/// Large messages between ranks of one machine are twice as fast when one may read the other's memory; many containers
/// forbid the call, even on oneself.
bool may_read_other_processes() {
    char from = 1;
    char to = 0;
    const iovec local{&to, 1};
    const iovec remote{&from, 1};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1;
}

/// The options that an oversubscribed laptop needs, by MPI: all of them, so that who types the line gets the same run.
std::vector<std::string> launcher_arguments(std::uint32_t ranks) {
    std::vector<std::string> arguments{"-n", std::to_string(ranks)};
    if (comm::mpi::library() != comm::mpi::Library::open_mpi) return arguments;
    for (const char* option : {"--oversubscribe", "--bind-to", "none"}) arguments.emplace_back(option);
    if (geteuid() == 0) arguments.emplace_back("--allow-run-as-root");
    const auto set = [&](const std::string& name, const char* value) {
        if (!environment(("OMPI_MCA_" + name).c_str()).empty()) return; // the user knows better
        arguments.insert(arguments.end(), {"--mca", name, value});
    };
    // More ranks than cores: who waits must let others work. Containers often refuse ptrace, which the single-copy
    // transport needs.
    set("mpi_yield_when_idle", "1");
    if (!may_read_other_processes()) set("btl_vader_single_copy_mechanism", "none");
    // One machine: no fabric is searched for, which takes long and warns.
    set("pml", "ob1");
    set("btl", "self,vader");
    return arguments;
}

/// The whole line: launcher, its options, this program, its arguments.
std::vector<std::string> launcher_words(const Invocation& invocation, std::uint32_t ranks) {
    const std::string launcher = find_launcher();
    if (launcher.empty()) {
        throw base::UsageError(
            "neither mpirun nor mpiexec is on PATH; install Open MPI (Debian: openmpi-bin) or load your centre's MPI "
            "module");
    }
    std::vector<std::string> words{launcher};
    for (auto& argument : launcher_arguments(ranks)) words.push_back(std::move(argument));
    words.push_back(invocation.program);
    for (std::size_t i = 0; i < invocation.arguments.size(); ++i) {
        const std::string& argument = invocation.arguments[i];
        // --local is this process's business: the ranks are already where it asked for.
        if (argument == "--local")
            ++i;
        else if (argument.rfind("--local=", 0) != 0)
            words.push_back(argument);
    }
    return words;
}

/// The line as a person would type it: programs without their folders.
std::string shown(const std::vector<std::string>& words, const Invocation& invocation) {
    std::string line = words.front();
    for (std::size_t i = 1; i < words.size(); ++i) {
        const bool is_program = words[i] == invocation.program;
        line +=
            " " + (is_program ? std::filesystem::path(words[i]).filename().string() : study::shell_text({words[i]}));
    }
    return line;
}

void prepare_environment(const std::string& line, const std::string& shared_memory) {
    const auto set = [](const char* name, const std::string& value) { setenv(name, value.c_str(), 0); };
    setenv(launch_line_variable, line.c_str(), 1);
    const Terminal terminal = detect_terminal();
    set(terminal_variable, terminal.interactive ? std::to_string(terminal.style.width) : "0");
    set(rows_variable, std::to_string(terminal.rows));
    char device[256] = {};
    if (terminal.interactive && ttyname_r(STDOUT_FILENO, device, sizeof device) == 0) set(device_variable, device);
    if (comm::mpi::library() == comm::mpi::Library::open_mpi && !shared_memory.empty())
        set(backing_directory, shared_memory); // of this run alone, so not in the line
}

} // namespace

namespace {

/// What a controller may take to answer, before it is taken for none.
constexpr std::chrono::seconds ping_patience{3};

/// Where Slurm's programs look for their settings: fixed places, and those beside an installation of its own folder.
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

/// Nodes without settings of their own ask the controller for them.
bool controller_answers() {
    const auto ping = drivers::run_command({"scontrol", "ping"}, ping_patience);
    return ping.ok() && ping.text.find(" UP") != std::string::npos; // older ones say DOWN and end with 0
}

/// Slurm's programs may be installed on a machine that belongs to no cluster.
bool belongs_to_cluster(const std::string& sbatch) {
    if (!environment("SLURM_CONF").empty()) return true;
    const auto is_there = [](const std::filesystem::path& file) { return access(file.c_str(), R_OK) == 0; };
    return std::ranges::any_of(settings_files(sbatch), is_there) || controller_answers();
}

} // namespace

Launch how_launched() {
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "PMI_FD", "MPI_LOCALRANKID",
                             "PALS_RANKID", "FLUX_TASK_RANK"}) {
        if (!environment(name).empty()) return Launch::by_launcher;
    }
    // A task that srun started without any PMI: the launch checks name what is wrong.
    if (!environment("SLURM_STEP_ID").empty() && !environment("SLURM_PROCID").empty() &&
        environment("SLURM_STEP_NUM_TASKS") != "1") {
        return Launch::by_launcher;
    }
    if (!environment("SLURM_JOB_ID").empty()) return Launch::allocation;
    return Launch::by_hand;
}

bool is_login_node() {
    const std::string sbatch = drivers::find_program("sbatch", drivers::environment_entries());
    return !sbatch.empty() && belongs_to_cluster(sbatch);
}

bool speaks() { return comm::mpi::is_first_task(drivers::environment_variables()); }

std::uint32_t hardware_threads() {
    cpu_set_t set;
    CPU_ZERO(&set);
    const int threads = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return static_cast<std::uint32_t>(std::max(1, threads));
}

std::uint32_t default_workers(std::uint32_t ranks_per_trial, std::uint32_t cpus_per_rank) {
    const std::uint32_t fit = hardware_threads() / std::max(1U, cpus_per_rank);
    return std::max(ranks_per_trial, fit / ranks_per_trial * ranks_per_trial);
}

std::string command_line(const Invocation& invocation) {
    const std::string program = std::filesystem::path(invocation.program).filename().string();
    return invocation.arguments.empty() ? program : program + " " + study::shell_text(invocation.arguments);
}

int run_under_mpirun(const Invocation& invocation, std::uint32_t workers, const std::string& directory) {
    std::vector<std::string> words = launcher_words(invocation, workers + 1);
    const SharedMemoryFolder shared_memory;
    const bool open_mpi = comm::mpi::library() == comm::mpi::Library::open_mpi;
    if (open_mpi) {
        const std::string shortage =
            shared_memory_shortage(environment(backing_directory), workers + 1, drivers::environment_variables());
        if (!shortage.empty()) throw base::UsageError(shortage);
    }
    prepare_environment(shown(words, invocation), shared_memory.path());

    auto& files = storage::posix_file_system();
    const std::string launch = drivers::make_uuid();
    // Of this process, whose own directory --fresh may rename.
    const drivers::StudyDirectory study{std::filesystem::absolute(directory).lexically_normal().string()};
    const auto before = drivers::read_outcome(files, study);
    drivers::SignalRelay relay;
    drivers::StepOptions step;
    step.words = std::move(words);
    step.variables.emplace_back(drivers::interrupt_variable, study::name(study::Asker::sigusr2));
    step.variables.emplace_back(drivers::launch_variable, launch);
    comm::mpi::LauncherWords said;
    if (open_mpi) step.keep_error_line = [&](const std::string& line) { return said.take(line); };
    // A launcher that has locked itself up: after the death of a rank, or before there was any.
    bool had_ranks = false;
    step.overdue = [&had_ranks,
                    overdue = drivers::Overdue(launcher_wait, std::nullopt, launcher_start)](pid_t launcher) mutable {
        const std::optional<bool> has_ranks = drivers::has_living_children(launcher);
        had_ranks = had_ranks || has_ranks.value_or(false);
        if (!overdue.next({false, {}, false, has_ranks})) return false;
        std::cerr << (had_ranks ? "ranktune: mpirun has not ended, although all ranks have: it is ended\n"
                                : "ranktune: mpirun has started no rank in 2 minutes: it is ended\n")
                  << std::flush;
        return true;
    };
    drivers::block_stop_signals(); // a second Ctrl-C may come while this process says how it ended
    const drivers::StepEnded ended = drivers::run_step(step, relay);
    const int code = ended.code;
    // An earlier run, or one that runs now and has refused this one, may have written another.
    const auto written = drivers::read_outcome(files, study);
    const bool told = written && written->launch == launch;
    const int outcome = told ? static_cast<int>(written->outcome) : code;
    if (code == 0 && !told && written == before) { // no study began, none went on, and nobody said why
        std::cerr << error_message(
            "mpirun ended without an error, but no rank of ranktune has run: is the mpirun on PATH that of " +
                comm::mpi::library_version() + "? The line that was run is above",
            1);
        return 1;
    }
    constexpr int resumable = static_cast<int>(study::StudyOutcome::resumable);
    if (!told && code != 0 && !ended.asked) std::cerr << said.text() << std::flush;
    constexpr int usage = static_cast<int>(study::StudyOutcome::usage); // refused: its words are on the screen
    if (ended.asked && !told && code != 0 && code != usage) {           // before the head was there, or twice in a row
        std::cerr << error_message(
            "stopped before the study could say how far it came; the same command goes on from there", resumable);
        return resumable;
    }
    // With the study's own code it has ended by itself, and has said why: no room, `ranktune stop`.
    // When a rank has died, mpirun tells the others to stop, and does not end with that code.
    const bool killed = told ? outcome == resumable && code != resumable : code > 128;
    if (killed && !ended.asked) {
        const std::string how = code == drivers::head_lost_code
                                    ? "the workers heard nothing of the head for run.heartbeat_timeout, and left"
                                    : "a rank ended before the study did";
        std::cerr << error_message(how + " (mpirun: exit code " + std::to_string(code) +
                                       "); the same command goes on from there; output: " + directory + "/logs/",
                                   outcome);
        if (!environment(supervised_variable).empty()) return std::max(code, 1); // the launcher's code, not bent
    }
    return outcome;
}

} // namespace ranktune::cli
