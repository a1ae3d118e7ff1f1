// SPDX-License-Identifier: Apache-2.0
#include "process/process_watch.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include "process/descendants.hpp"
#include "ranktune/base/error.hpp"
#include "storage/journal/lease.hpp"

namespace ranktune::process {
namespace {

using storage::FileDescriptor;

/// Between two looks into /proc, where the kernel has no pidfd.
constexpr int look_period_ms = 50;

} // namespace

FileDescriptor open_process(std::uint64_t pid) {
#ifdef SYS_pidfd_open
    return FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0U)));
#else
    static_cast<void>(pid);
    return {};
#endif
}

ProcessId this_process() {
    const storage::LeaseHolder me = storage::this_holder("", 0);
    return {me.writer.pid, me.process_started, me.pid_namespace};
}

bool lives(const ProcessId& process) {
    const auto started = storage::process_start(process.pid);
    return started && (process.started == 0 || *started == process.started);
}

bool send_signal(const ProcessId& process, int signal) {
    const FileDescriptor handle = open_process(process.pid);
    if (!lives(process)) return false; // after the handle: what it refers to is then this process
#ifdef SYS_pidfd_send_signal
    if (handle) return syscall(SYS_pidfd_send_signal, handle.get(), signal, nullptr, 0U) == 0;
#endif
    return ::kill(static_cast<pid_t>(process.pid), signal) == 0;
}

Killing kill_silent(const ProcessId& process, bool at_once) {
    if (!at_once && lives(process) && is_runnable(static_cast<pid_t>(process.pid))) return Killing::waits;
    return send_signal(process, SIGKILL) ? Killing::done : Killing::nobody;
}

void die_on_purpose(base::LogSink& log, const std::function<void()>& write_out) {
    log.write(base::LogLevel::warning, "fault", {{"action", "this rank kills itself (run --faults)"}});
    write_out();
    ::kill(getpid(), SIGKILL);
    for (;;) pause();
}

ProcessWatch::ProcessWatch(std::vector<ProcessId> processes, std::function<void(std::size_t)> ended)
    : processes_(std::move(processes)), ended_(std::move(ended)), quit_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!quit_) throw base::IoError("cannot create", "eventfd", std::error_code(errno, std::generic_category()));
    if (!processes_.empty()) thread_ = std::thread([this] { main(); });
}

ProcessWatch::~ProcessWatch() {
    const std::uint64_t one = 1;
    static_cast<void>(!write(quit_.get(), &one, sizeof one));
    if (thread_.joinable()) thread_.join();
}

void ProcessWatch::main() {
    for (std::size_t i = 0; i < processes_.size(); ++i) {
        if (!outlives(processes_[i])) return;
        ended_(i);
    }
}

/// Waits for the end of the process. False: the watch ends first.
bool ProcessWatch::outlives(const ProcessId& process) const {
    const FileDescriptor handle = open_process(process.pid);
    if (!lives(process)) return true;                                       // after the handle, as above
    pollfd polls[] = {{quit_.get(), POLLIN, 0}, {handle.get(), POLLIN, 0}}; // a negative descriptor is skipped
    for (;;) {
        static_cast<void>(poll(polls, 2, handle ? -1 : look_period_ms));
        if (polls[0].revents != 0) return false;
        if (handle ? polls[1].revents != 0 : !lives(process)) return true;
    }
}

} // namespace ranktune::process
