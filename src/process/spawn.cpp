// SPDX-License-Identifier: Apache-2.0
#include "process/spawn.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "process/program/environment.hpp"
#include "ranktune/base/error.hpp"
#include "storage/unique_handle.hpp"

namespace ranktune::process {
namespace {

/// Everything that the new process needs, prepared before, because it must not allocate.
struct Plan {
    const char* path;
    char* const* arguments;
    char* const* environment;
    const char* directory;
    SpawnDescriptors descriptors;
    pid_t parent;
    int highest_descriptor;
    bool dies_with_thread;
    // The error, passed back through the shared memory.
    int error = 0;
    bool in_directory = false;
};

void close_all_from(int first, int last) {
#ifdef SYS_close_range
    if (syscall(SYS_close_range, static_cast<unsigned>(first), ~0U, 0U) == 0) return;
#endif
    for (int fd = first; fd <= last; ++fd) close(fd); // kernels before 5.9
}

/// Runs in the new process: only async-signal-safe calls, and no write to the caller's memory except `error`.
[[noreturn, gnu::noinline]] void become(Plan& plan) {
    setpgid(0, 0);
    if (plan.dies_with_thread) prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != plan.parent) _exit(127); // the parent died before the call above
    struct sigaction by_default {};
    by_default.sa_handler = SIG_DFL;
    for (int signal = 1; signal < NSIG; ++signal) sigaction(signal, &by_default, nullptr);
    if (chdir(plan.directory) != 0) {
        plan.error = errno;
        _exit(127);
    }
    plan.in_directory = true;
    // The source descriptors have higher numbers than all targets: see `lifted`.
    dup2(plan.descriptors.in, STDIN_FILENO);
    dup2(plan.descriptors.out, STDOUT_FILENO);
    dup2(plan.descriptors.error, STDERR_FILENO);
    dup2(plan.descriptors.control, process::control_descriptor);
    close_all_from(process::control_descriptor + 1, plan.highest_descriptor);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execve(plan.path, plan.arguments, plan.environment);
    plan.error = errno;
    _exit(127);
}

[[gnu::noinline]] pid_t start(Plan& plan) {
    // Why vfork: see the header. The child only calls `become`, which is written for it.
    const pid_t child = vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork)
    if (child == 0) become(plan); // NOLINT(clang-analyzer-unix.Vfork)
    return child;
}

/// Duplicates a descriptor to a number above those that the program gets.
storage::FileDescriptor lifted(int fd) {
    storage::FileDescriptor copy(fcntl(fd, F_DUPFD_CLOEXEC, 16));
    if (!copy) throw SetUpError("cannot start a program: descriptors", errno);
    return copy;
}

std::string variable(const std::vector<std::string>& environment, const std::string& name) {
    for (const std::string& entry : environment)
        if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
    return "";
}

bool can_run(const std::string& path) {
    struct stat info {};
    return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

[[noreturn]] void fail(const std::string& program, const Plan& plan, const std::string& directory) {
    const std::string why = std::strerror(plan.error);
    if (!plan.in_directory)
        throw base::Error("cannot start '" + program + "' in the directory '" + directory + "': " + why);
    std::string advice;
    if (plan.error == ENOEXEC) advice = " (a script needs a first line such as #!/bin/sh)";
    if (plan.error == EACCES) advice = " (is it executable?)";
    throw base::Error("cannot start '" + program + "': " + why + advice);
}

} // namespace

std::vector<char*> exec_pointers(const std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
    result.push_back(nullptr);
    return result;
}

std::string find_program(const std::string& name, const std::vector<std::string>& environment) {
    if (name.find('/') != std::string::npos) return name;
    const std::string path = variable(environment, "PATH");
    for (std::size_t at = 0; at <= path.size();) {
        const std::size_t end = std::min(path.find(':', at), path.size());
        std::string candidate = path.substr(at, end - at) + "/" + name;
        if (end > at && can_run(candidate)) return candidate;
        at = end + 1;
    }
    return {};
}

pid_t spawn(const std::vector<std::string>& words, const std::vector<std::string>& environment,
            const std::string& directory, const SpawnDescriptors& descriptors, bool dies_with_thread) {
    if (words.empty() || words.front().empty()) throw base::Error("the command of the trial is empty");
    const std::string path = find_program(words.front(), environment);
    if (path.empty()) throw NoSuchProgram("cannot start '" + words.front() + "': no such program in PATH");
    const auto arguments = exec_pointers(words);
    const auto variables = exec_pointers(environment);
    const auto in = lifted(descriptors.in);
    const auto out = lifted(descriptors.out);
    const auto error = lifted(descriptors.error);
    const auto control = lifted(descriptors.control);
    Plan plan{.path = path.c_str(),
              .arguments = arguments.data(),
              .environment = variables.data(),
              .directory = directory.c_str(),
              .descriptors = {in.get(), out.get(), error.get(), control.get()},
              .parent = getpid(),
              .highest_descriptor = static_cast<int>(std::min(sysconf(_SC_OPEN_MAX), 65536L)),
              .dies_with_thread = dies_with_thread};
    // No signal handler may run in the new process while it shares this memory.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t child = start(plan);
    const int vfork_error = errno;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (child < 0) throw SetUpError("cannot start '" + words.front() + "'", vfork_error);
    if (plan.error == 0) return child;
    siginfo_t gone{};
    while (waitid(P_PID, static_cast<id_t>(child), &gone, WEXITED) != 0 && errno == EINTR) {
    }
    fail(words.front(), plan, directory);
}

} // namespace ranktune::process
