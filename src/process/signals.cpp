// SPDX-License-Identifier: Apache-2.0
#include "process/signals.hpp"

#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <utility>

#include "ranktune/base/error.hpp"

namespace ranktune::process {
namespace {

sigset_t stop_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : stop_signal_numbers) sigaddset(&set, signal);
    return set;
}

/// The reading thread; set before the handler is installed, and by every reader.
std::atomic<pthread_t> reader_thread;
static_assert(std::atomic<pthread_t>::is_always_lock_free);

/// Runs in a thread that does not block the signal; makes it pending in the reader's thread, which does.
void pass_on(int signal) {
    const int kept = errno;
    pthread_kill(reader_thread.load(), signal);
    errno = kept;
}

} // namespace

study::Asker asker_of(int signal) {
    using study::Asker;
    switch (signal) {
        case SIGINT:
            return Asker::sigint;
        case SIGTERM:
            return Asker::sigterm;
        case SIGHUP:
            return Asker::sighup;
        case SIGUSR1:
            return Asker::sigusr1;
        case SIGUSR2:
            return Asker::sigusr2;
        default:
            return Asker::none;
    }
}

void outlive_file_size_limit() { std::signal(SIGXFSZ, SIG_IGN); }

void block_stop_signals() {
    const sigset_t set = stop_signals();
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    reader_thread.store(pthread_self());
    struct sigaction action {};
    action.sa_handler = pass_on;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (const int signal : stop_signal_numbers) sigaction(signal, &action, nullptr);
}

SignalReader::SignalReader(SignalMeanings meanings) : meanings_(std::move(meanings)) {
    reader_thread.store(pthread_self());
    const sigset_t set = stop_signals();
    fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd_ < 0) throw base::IoError("cannot create", "signalfd", std::error_code(errno, std::generic_category()));
}

SignalReader::~SignalReader() { close(fd_); }

std::optional<study::Asker> SignalReader::poll() {
    signalfd_siginfo info{};
    if (read(fd_, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
    return asker_of(static_cast<int>(info.ssi_signo));
}

StopStep StopSequence::next(study::Asker asker, std::chrono::steady_clock::time_point now) {
    if (asker == study::Asker::keyboard) asker = study::Asker::sigint;
    const bool begin = first_.empty();
    const auto [known, is_new] = first_.try_emplace(asker, now);
    if (begin) return StopStep::begin;
    const bool insists = asker == study::Asker::sigint || (!is_new && now - known->second >= insisting);
    return insists ? StopStep::at_once : StopStep::repeat;
}

} // namespace ranktune::process
