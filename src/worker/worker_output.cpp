// SPDX-License-Identifier: Apache-2.0
#include "worker/worker_output.hpp"

#include <execinfo.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <utility>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#include <sanitizer/common_interface_defs.h>
#endif

#include "comm/mpi/faults.hpp"
#include "process/signals.hpp"
#include "ranktune/base/error.hpp"
#include "studydir/crash_note.hpp"

namespace ranktune::worker {
namespace {

// A sanitizer reports to the launcher, not to the log, and handles the other signals itself.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
void report_to(int fd) { __sanitizer_set_report_fd(reinterpret_cast<void*>(static_cast<std::intptr_t>(fd))); }
constexpr int crash_signals[] = {SIGABRT};
#else
void report_to(int /*fd*/) {}
constexpr int crash_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
#endif

constexpr std::size_t longest_line = std::size_t{64} << 10U; // longer ones are cut

// What the crash handler uses.
struct CrashFacts {
    std::atomic<int> pipe{-1};
    std::atomic<int> log{-1};
    std::atomic<int> error{-1}; ///< the launcher's standard error
    std::atomic<unsigned> rank{0};
    std::atomic<long> trial{-1};
};
CrashFacts facts;

/// For the crash note, which the next head reads.
const char* words_for(int signal) {
    switch (signal) {
        case SIGSEGV:
            return "killed by signal 11 (SIGSEGV)";
        case SIGBUS:
            return "killed by signal 7 (SIGBUS)";
        case SIGFPE:
            return "killed by signal 8 (SIGFPE)";
        case SIGILL:
            return "killed by signal 4 (SIGILL)";
        default:
            return "killed by signal 6 (SIGABRT)";
    }
}

/// Async-signal-safe: open, write, read, backtrace (whose library is loaded beforehand), raise.
void on_crash(int signal) {
    if (!comm::mpi::is_shrinking()) studydir::leave_crash_note(studydir::CrashCause::trial, words_for(signal));
    const int log = facts.log.load();
    if (log >= 0) {
        char last[4096];
        const auto size = read(facts.pipe.load(), last, sizeof last);
        if (size > 0) {
            process::SignalText().add("printed last:\n").write_to(log);
            [[maybe_unused]] const auto done = write(log, last, static_cast<std::size_t>(size));
        }
        process::SignalText line;
        line.add("\ncrash rank=").add(static_cast<long>(facts.rank.load())).add(" trial=").add(facts.trial.load());
        line.add(" signal=").add(static_cast<long>(signal)).add("\n").write_to(log);
        void* frames[64];
        backtrace_symbols_fd(frames, backtrace(frames, 64), log);
    }
    dup2(facts.error.load(), STDERR_FILENO);
    std::signal(signal, SIG_DFL);
    raise(signal);
}

void install_crash_notes() {
    void* warm_up[1];
    backtrace(warm_up, 1); // loads the unwinder now: the handler must not allocate
    struct sigaction action {};
    action.sa_handler = on_crash;
    action.sa_flags = SA_NODEFER;
    sigemptyset(&action.sa_mask);
    for (const int signal : crash_signals) sigaction(signal, &action, nullptr);
}

int checked_takeover(int result, const char* what) {
    if (result < 0)
        throw base::IoError("cannot take over the output", what, std::error_code(errno, std::generic_category()));
    return result;
}

} // namespace

WorkerOutput::WorkerOutput(WorkerLog& log)
    : log_(log), limit_({}, [this](std::string_view line) { log_.write_output(trial_, std::string(line)); }) {
    std::fflush(nullptr);
    int ends[2] = {-1, -1};
    checked_takeover(pipe2(ends, O_CLOEXEC), "pipe");
    pipe_ = ends[0];
    fcntl(pipe_, F_SETFL, O_NONBLOCK);
    kept_out_ = checked_takeover(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3), "standard output");
    kept_error_ = checked_takeover(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3), "standard error");
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    std::setvbuf(stdout, nullptr, _IOLBF,
                 BUFSIZ); // a pipe would be buffered by the block: lines come late, crashes lose them
    facts.pipe.store(pipe_);
    facts.error.store(kept_error_);
    report_to(kept_error_);
    facts.rank.store(log.rank().value());
    install_crash_notes();
}

WorkerOutput::~WorkerOutput() {
    if (pipe_ < 0) return;
    std::fflush(nullptr);
    drain(std::nullopt);
    if (!partial_.empty()) limit_.line(partial_);
    limit_.finish();
    facts.log.store(-1);
    for (const int signal : crash_signals) std::signal(signal, SIG_DFL);
    dup2(kept_out_, STDOUT_FILENO);
    dup2(kept_error_, STDERR_FILENO);
    report_to(STDERR_FILENO);
    for (const int fd : {pipe_, kept_out_, kept_error_}) close(fd);
}

void WorkerOutput::tend(std::optional<base::TrialId> trial) {
    const auto now = std::chrono::steady_clock::now();
    if (trial == looked_for_ && now < next_look_) return;
    next_look_ = now + std::chrono::milliseconds(1);
    looked_for_ = trial;
    drain(trial);
}

void WorkerOutput::drain(std::optional<base::TrialId> trial) {
    if (pipe_ < 0 || log_.fd() < 0) return;
    facts.log.store(log_.fd());
    char buffer[16384];
    for (;;) {
        const auto size = read(pipe_, buffer, sizeof buffer);
        if (size <= 0) break;
        partial_.append(buffer, static_cast<std::size_t>(size));
        std::size_t begin = 0;
        for (std::size_t end = 0; (end = partial_.find('\n', begin)) != std::string::npos; begin = end + 1)
            limit_.line(std::string_view(partial_).substr(begin, end - begin));
        partial_.erase(0, begin);
        if (partial_.size() > longest_line) limit_.line(std::exchange(partial_, {}));
    }
    if (!trial || trial_ == std::to_string(trial->value())) return; // output after a trial still belongs to it
    limit_.finish();
    limit_.begin_again();
    trial_ = std::to_string(trial->value());
    facts.trial.store(static_cast<long>(trial->value()));
}

} // namespace ranktune::worker
