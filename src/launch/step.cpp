// SPDX-License-Identifier: Apache-2.0
#include "launch/step.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <set>
#include <thread>
#include <utility>

#include "process/descendants.hpp"
#include "process/environment.hpp"
#include "process/signal_note.hpp"
#include "process/signals.hpp"
#include "process/spawn.hpp"
#include "ranktune/base/error.hpp"
#include "storage/unique_handle.hpp"

namespace ranktune::launch {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;
using storage::FileDescriptor;

constexpr auto orphan_grace = 10s;

std::error_code last_error() { return {errno, std::generic_category()}; }

/// Blocks the stop signals and CHLD during its lifetime, and reads them.
class SignalsHere {
  public:
    SignalsHere() {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGCHLD);
        for (const int signal : process::stop_signal_numbers) sigaddset(&set, signal);
        sigprocmask(SIG_BLOCK, &set, &before_);
        fd_.reset(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
        if (!fd_) throw base::IoError("cannot create", "signalfd", last_error());
    }
    ~SignalsHere() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
    SignalsHere(const SignalsHere&) = delete;
    SignalsHere& operator=(const SignalsHere&) = delete;

    [[nodiscard]] int fd() const { return fd_.get(); }
    [[nodiscard]] const sigset_t& before() const { return before_; }
    /// The number of a pending signal; 0: none.
    [[nodiscard]] int next() const {
        signalfd_siginfo info{};
        if (read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return 0;
        return static_cast<int>(info.ssi_signo);
    }

  private:
    sigset_t before_{};
    FileDescriptor fd_;
};

/// Runs in the child between fork and exec; async-signal-safe calls only. Unblocks the stop signals, whatever this
/// process blocks. Returns when exec fails.
void become(const std::string& program, const std::vector<char*>& argv, const std::vector<char*>& environment,
            const sigset_t& mask, pid_t parent, int error_output) {
    // A process group of its own: Ctrl-C reaches only the parent, which turns it into a clean stop.
    setpgid(0, 0);
    // If the parent is killed, its ranks must end too. Launchers end them on TERM.
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    // mpirun forwards standard input to rank 0; in a background process group reading a terminal would stop it.
    if (const int null = open("/dev/null", O_RDONLY); null > 0) {
        dup2(null, STDIN_FILENO);
        close(null);
    }
    if (error_output >= 0) dup2(error_output, STDERR_FILENO);
    std::signal(SIGXFSZ, SIG_DFL);
    sigset_t own = mask;
    for (const int signal : process::stop_signal_numbers) sigdelset(&own, signal);
    sigprocmask(SIG_SETMASK, &own, nullptr);
    execve(program.c_str(), argv.data(), environment.data());
}

/// This process's environment plus the variables.
std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& variables) {
    std::vector<std::string> all = process::environment_entries();
    for (const auto& [name, value] : variables) {
        std::erase_if(all, [&name = name](const std::string& entry) { return entry.starts_with(name + "="); });
        all.push_back(name + "=" + value);
    }
    return all;
}

/// Uses fork, because posix_spawn cannot set a death signal.
pid_t start(const StepOptions& options, const process::SignalNote& note, const sigset_t& mask, int error_output) {
    auto added = options.variables;
    added.emplace_back(process::signal_note_variable, note.path());
    const std::vector<std::string> variables = environment_with(added);
    const std::string program = process::find_program(options.words.front(), variables);
    if (program.empty())
        throw base::IoError("cannot start", options.words.front(),
                            std::make_error_code(std::errc::no_such_file_or_directory));
    const std::vector<char*> argv = process::exec_pointers(options.words);
    const std::vector<char*> environment = process::exec_pointers(variables);
    process::Pipe trouble = process::make_pipe();
    const pid_t parent = getpid();
    const pid_t child = fork();
    int error = errno;
    if (child == 0) {
        become(program, argv, environment, mask, parent, error_output);
        error = errno;
        _exit(write(trouble.write.get(), &error, sizeof error) == sizeof error ? 127 : 126);
    }
    trouble.write.reset();
    // End of file: exec has succeeded.
    const bool failed = child < 0 || read(trouble.read.get(), &error, sizeof error) == sizeof error;
    if (!failed) return child;
    if (child > 0) waitpid(child, nullptr, 0);
    throw base::IoError("cannot start", program, std::error_code(error, std::generic_category()));
}

/// A copy of this process that waits for its death and then ends the step's process group. It does nothing else, and
/// ends with the step.
class Guardian {
  public:
    Guardian(pid_t group, std::chrono::milliseconds grace) : pipe_(process::make_pipe()) {
        pid_ = fork();
        if (pid_ == 0) guard(group, grace);
        pipe_.read.reset();
    }
    ~Guardian() {
        if (pid_ <= 0) return;
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    Guardian(const Guardian&) = delete;
    Guardian& operator=(const Guardian&) = delete;
    [[nodiscard]] pid_t pid() const { return pid_; }

  private:
    [[noreturn]] void guard(pid_t group, std::chrono::milliseconds grace) const {
        setsid(); // signals to the terminal or the parent's group must not reach this process
        close(pipe_.write.get());
        for (int fd = 0; fd < 3; ++fd) close(fd);
        char none = 0;
        while (read(pipe_.read.get(), &none, 1) < 0 && errno == EINTR) {
        }
        kill(-group, SIGTERM);
        for (auto waited = 0ms; waited < grace && kill(-group, 0) == 0; waited += 10ms)
            std::this_thread::sleep_for(10ms);
        kill(-group, SIGKILL);
        _exit(0);
    }

    process::Pipe pipe_;
    pid_t pid_ = -1;
};

/// Lines of the step's standard error: passes them to the callbacks and writes them out.
class ErrorLines {
  public:
    ErrorLines(int fd, const StepOptions& options) : fd_(fd), options_(options) {}
    ~ErrorLines() {
        if (!line_.empty()) end_line(""); // a line without newline
    }
    ErrorLines(const ErrorLines&) = delete;
    ErrorLines& operator=(const ErrorLines&) = delete;

    /// Reads what is available. False: end of file.
    bool take() {
        char part[4096];
        const ssize_t size = read(fd_, part, sizeof part);
        if (size < 0) return errno == EAGAIN || errno == EINTR;
        if (!options_.keep_error_line) write_out({part, static_cast<std::size_t>(size)});
        for (const char c : std::string_view(part, static_cast<std::size_t>(size))) {
            if (c != '\n') line_ += c;
            if (c == '\n' || line_.size() == longest) end_line(c == '\n' ? "\n" : "");
        }
        return size > 0;
    }

  private:
    static constexpr std::size_t longest = 4096;

    void end_line(std::string_view end) {
        if (options_.on_error_line) options_.on_error_line(line_);
        if (options_.keep_error_line && !options_.keep_error_line(line_)) write_out(line_.append(end));
        line_.clear();
    }
    static void write_out(std::string_view text) {
        while (!text.empty()) {
            const ssize_t done = write(STDERR_FILENO, text.data(), text.size());
            if (done < 0 && errno == EINTR) continue;
            if (done <= 0) return; // nobody reads it
            text.remove_prefix(static_cast<std::size_t>(done));
        }
    }

    int fd_;
    const StepOptions& options_;
    std::string line_;
};

/// Ranks whose launcher was killed become children of this process (a subreaper). They notice and end; the rest is
/// killed.
void end_orphans(const std::set<pid_t>& known) {
    const auto until = Steady::now() + orphan_grace;
    while (true) {
        bool any = false;
        for (const pid_t pid : process::children_of_this_process()) {
            if (known.count(pid) != 0) continue;
            if (waitpid(pid, nullptr, WNOHANG) == pid) continue;
            any = true;
            if (Steady::now() >= until) kill(pid, SIGKILL);
        }
        if (!any || Steady::now() >= until + 5s) return;
        std::this_thread::sleep_for(20ms);
    }
}

/// Passes on the signals of this process.
class ToChild {
  public:
    ToChild(pid_t child, const StepOptions& options, SignalRelay& relay, process::SignalNote& note)
        : child_(child), options_(options), relay_(relay), note_(note) {}

    void received(int signal) {
        const auto sent = relay_.next(signal, Steady::now());
        if (!sent) return;
        waiting_.reset();
        if (signal == SIGINT && !relay_.insisted() && *sent == SIGUSR2 && options_.ask && options_.ask()) {
            waiting_ = *sent;
            until_ = Steady::now() + options_.hearing;
        } else {
            send(signal, *sent);
        }
    }
    void tick() {
        if (!waiting_ || Steady::now() < until_) return;
        if (!options_.heard || !options_.heard()) send(SIGINT, *waiting_);
        waiting_.reset();
    }

  private:
    void send(int received, int as) {
        if (!relay_.as_is()) note_.write(received);
        kill(child_, as);
    }

    pid_t child_;
    const StepOptions& options_;
    SignalRelay& relay_;
    process::SignalNote& note_;
    std::optional<int> waiting_; ///< sent if the head does not hear the request in words
    Steady::time_point until_;
};

/// Ends a launcher that does not end on its own.
class OverdueLauncher {
  public:
    OverdueLauncher(pid_t child, const StepOptions& options)
        : child_(child), options_(options), next_(Steady::now() + options.look) {}

    /// Somebody insisted on an immediate end.
    void insist() {
        if (insisted_) return;
        insisted_ = true;
        next_ = Steady::now() + options_.grace;
    }
    void tick() {
        if ((!options_.overdue && !insisted_) || Steady::now() < next_) return;
        if (told_) {
            kill(-child_, SIGKILL);
        } else if (insisted_ || options_.overdue(child_)) {
            kill(child_, SIGTERM);
            told_ = true;
        }
        next_ = Steady::now() + (told_ ? options_.grace : options_.look);
    }

  private:
    pid_t child_;
    const StepOptions& options_;
    Steady::time_point next_;
    bool insisted_ = false;
    bool told_ = false;
};

/// Longest time between two looks at the clock.
int turn_ms(const StepOptions& options) {
    const auto turn = std::min({std::chrono::milliseconds(1s), options.look, options.grace, options.hearing});
    return static_cast<int>(std::max(turn, 1ms).count());
}

/// Waits until the child has ended and returns its status.
int wait_for(pid_t child, int turn, const SignalsHere& signals, const SignalRelay& relay, ToChild& to_child,
             OverdueLauncher& overdue, ErrorLines* lines, int lines_fd) {
    while (true) {
        int status = 0;
        const pid_t done = waitpid(child, &status, WNOHANG);
        if (done == child) return status;
        if (done < 0 && errno != EINTR) return -1;
        pollfd wanted[2] = {{signals.fd(), POLLIN, 0}, {lines_fd, POLLIN, 0}}; // poll ignores negative descriptors
        poll(wanted, 2, turn);
        if (lines != nullptr && wanted[1].revents != 0 && !lines->take()) lines_fd = -1;
        while (const int signal = signals.next()) {
            if (signal != SIGCHLD) to_child.received(signal);
        }
        to_child.tick();
        if (relay.insisted()) overdue.insist();
        overdue.tick();
    }
}

} // namespace

std::optional<int> SignalRelay::next(int signal, std::chrono::steady_clock::time_point now) {
    if (sent_ == 0) sent_ = signal == SIGINT ? SIGUSR2 : SIGUSR1;
    if (as_is_) return signal;
    switch (stops_.next(process::asker_of(signal), now)) {
        case process::StopStep::begin:
            return sent_;
        case process::StopStep::repeat:
            return std::nullopt;
        case process::StopStep::at_once:
            break;
    }
    if (std::exchange(insisted_, true)) return SIGTERM;
    // A head that got USR1 would take USR2 for a repetition, not for insisting.
    return signal == SIGINT && sent_ != SIGUSR2 ? SIGTERM : sent_;
}

StepEnded run_step(const StepOptions& options, SignalRelay& relay) {
    const SignalsHere signals;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    std::set<pid_t> known = process::children_of_this_process();
    process::Pipe errors;
    if (options.on_error_line || options.keep_error_line) errors = process::make_pipe();
    process::SignalNote note;
    const pid_t child = start(options, note, signals.before(), errors.write ? errors.write.get() : -1);
    errors.write.reset();
    int status = -1;
    {
        const Guardian guardian(child, options.grace);
        known.insert(guardian.pid());
        if (errors.read) fcntl(errors.read.get(), F_SETFL, O_NONBLOCK);
        ErrorLines lines(errors.read ? errors.read.get() : -1, options);
        ToChild to_child(child, options, relay, note);
        OverdueLauncher overdue(child, options);
        status = wait_for(child, turn_ms(options), signals, relay, to_child, overdue, errors.read ? &lines : nullptr,
                          errors.read ? errors.read.get() : -1);
        end_orphans(known);
        pollfd rest{errors.read ? errors.read.get() : -1, POLLIN, 0};
        while (errors.read && poll(&rest, 1, 0) > 0 && lines.take()) {
        }
    }
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : 1;
    return {code == 0 ? note.exit_code().value_or(0) : code, relay.asked()};
}

bool pause_unless_asked(std::chrono::milliseconds time, SignalRelay& relay) {
    const SignalsHere signals;
    const auto until = Steady::now() + time;
    for (auto now = Steady::now(); now < until && !relay.asked(); now = Steady::now()) {
        pollfd wanted{signals.fd(), POLLIN, 0};
        poll(&wanted, 1,
             static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(until - now).count()) + 1);
        while (const int signal = signals.next())
            if (signal != SIGCHLD) static_cast<void>(relay.next(signal, Steady::now()));
    }
    return relay.asked();
}

} // namespace ranktune::launch
