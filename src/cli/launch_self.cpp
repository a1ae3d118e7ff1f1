// SPDX-License-Identifier: Apache-2.0
#include "cli/launch_self.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/terminal.hpp"
#include "comm/mpi/environment.hpp"
#include "ranktune/base/error.hpp"

extern char** environ;

namespace ranktune::cli {
namespace {

std::string find_program(const std::string& name) {
    std::string path = environment("PATH");
    path += ':';
    for (std::size_t begin = 0, end = 0; (end = path.find(':', begin)) != std::string::npos; begin = end + 1) {
        const std::string candidate = path.substr(begin, end - begin) + "/" + name;
        if (end > begin && access(candidate.c_str(), X_OK) == 0) return candidate;
    }
    return {};
}

std::string shell_quoted(const std::string& word) {
    if (!word.empty() &&
        word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%") ==
            std::string::npos) {
        return word;
    }
    std::string text = "'";
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return text + "'";
}

/// The options that an oversubscribed laptop needs, by MPI.
std::vector<std::string> launcher_arguments(std::uint32_t ranks) {
    std::vector<std::string> arguments{"-n", std::to_string(ranks)};
    if (comm::mpi::library() == comm::mpi::Library::open_mpi) {
        // A quiet mpirun: it would explain at length that a rank ended with another code than 0, which is this
        // program's way to speak.
        for (const char* option : {"--oversubscribe", "--bind-to", "none", "--quiet"}) arguments.emplace_back(option);
    }
    return arguments;
}

void prepare_environment(const std::string& line) {
    const auto set = [](const char* name, const std::string& value) { setenv(name, value.c_str(), 0); };
    setenv(launch_line_variable, line.c_str(), 1);
    const Terminal terminal = detect_terminal();
    set(terminal_variable, terminal.interactive ? std::to_string(terminal.style.width) : "0");
    if (comm::mpi::library() != comm::mpi::Library::open_mpi) return;
    // More ranks than cores: who waits must let others work. Containers often refuse ptrace, which the single-copy
    // transport needs.
    set("OMPI_MCA_mpi_yield_when_idle", "1");
    set("OMPI_MCA_btl_vader_single_copy_mechanism", "none");
    // One machine: no fabric is searched for, which takes long and warns.
    set("OMPI_MCA_pml", "ob1");
    set("OMPI_MCA_btl", "self,vader");
    if (geteuid() == 0) {
        set("OMPI_ALLOW_RUN_AS_ROOT", "1");
        set("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    }
}

/// Waits for the child; what this process receives, the child's process group gets in the form that means a clean stop.
int wait_passing_signals(pid_t child) {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD}) sigaddset(&signals, signal);
    int asked = 0;
    while (true) {
        int status = 0;
        const pid_t done = waitpid(child, &status, WNOHANG);
        if (done == child) return status;
        if (done < 0 && errno != EINTR) return -1;
        const int signal = sigwaitinfo(&signals, nullptr);
        if (signal <= 0 || signal == SIGCHLD) continue;
        ++asked;
        kill(child, asked == 1 ? SIGUSR1 : SIGTERM);
    }
}

/// The exit code in the file `outcome`, if the file is newer than this run.
int code_from_outcome(const std::string& file, const std::filesystem::file_time_type& since, int otherwise) {
    std::error_code error;
    const auto written = std::filesystem::last_write_time(file, error);
    if (error || written < since) return otherwise;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
        if (line.rfind("exit=", 0) == 0) return std::atoi(line.c_str() + 5);
    }
    return otherwise;
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
    if (!find_program("sbatch").empty() && !find_program("sinfo").empty()) return Launch::login_node;
    return Launch::plain;
}

std::uint32_t default_workers(std::uint32_t ranks_per_trial, std::uint32_t cpus_per_rank) {
    cpu_set_t set;
    CPU_ZERO(&set);
    const int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    const std::uint32_t fit = static_cast<std::uint32_t>(std::max(1, cores)) / std::max(1U, cpus_per_rank);
    return std::max(ranks_per_trial, fit / ranks_per_trial * ranks_per_trial);
}

int run_under_mpirun(const Invocation& invocation, std::uint32_t workers, const std::string& outcome_file) {
    std::string launcher = find_program("mpirun");
    if (launcher.empty()) launcher = find_program("mpiexec");
    if (launcher.empty()) {
        throw base::UsageError(
            "neither mpirun nor mpiexec is on PATH; install Open MPI (Debian: openmpi-bin) or load your centre's MPI "
            "module");
    }
    std::vector<std::string> words{launcher};
    for (auto& argument : launcher_arguments(workers + 1)) words.push_back(std::move(argument));
    words.push_back(invocation.program);
    for (std::size_t i = 0; i < invocation.arguments.size(); ++i) {
        const std::string& argument = invocation.arguments[i];
        // --local is this process's business: the ranks are already where it asked for.
        if (argument == "--local")
            ++i;
        else if (argument.rfind("--local=", 0) != 0)
            words.push_back(argument);
    }
    std::string line = std::filesystem::path(launcher).filename().string();
    for (std::size_t i = 1; i < words.size(); ++i) {
        const bool is_program = words[i] == invocation.program;
        line += " " + (is_program ? std::filesystem::path(words[i]).filename().string() : shell_quoted(words[i]));
    }
    prepare_environment(line);

    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    sigset_t blocked;
    sigset_t before;
    sigemptyset(&blocked);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD}) sigaddset(&blocked, signal);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    // A process group of its own: Ctrl-C reaches this process alone, which turns it into a clean stop.
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &before);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    // mpirun forwards standard input to rank 0; in a background process group reading a terminal would stop it.
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    const auto since = std::filesystem::file_time_type::clock::now() - std::chrono::seconds(1);
    pid_t child = 0;
    const int error = posix_spawn(&child, launcher.c_str(), &actions, &attributes, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (error != 0) throw base::IoError("cannot start", launcher, std::error_code(error, std::generic_category()));
    const int status = wait_passing_signals(child);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    return code_from_outcome(outcome_file, since, code);
}

} // namespace ranktune::cli
