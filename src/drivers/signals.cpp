// SPDX-License-Identifier: Apache-2.0
#include "drivers/signals.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "ranktune/base/error.hpp"

namespace ranktune::drivers {
namespace {

sigset_t stop_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) sigaddset(&set, signal);
    return set;
}

std::string name_of(int signal) {
    switch (signal) {
        case SIGINT: return "SIGINT";
        case SIGTERM: return "SIGTERM";
        case SIGHUP: return "SIGHUP";
        case SIGUSR1: return "SIGUSR1";
        case SIGUSR2: return "SIGUSR2";
        default: return "signal " + std::to_string(signal);
    }
}

} // namespace

void block_stop_signals() {
    const sigset_t set = stop_signals();
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

SignalReader::SignalReader() {
    const sigset_t set = stop_signals();
    fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd_ < 0) throw base::IoError("cannot create", "signalfd", std::error_code(errno, std::generic_category()));
}

SignalReader::~SignalReader() { close(fd_); }

std::optional<std::string> SignalReader::poll() {
    signalfd_siginfo info{};
    if (read(fd_, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
    return name_of(static_cast<int>(info.ssi_signo));
}

} // namespace ranktune::drivers
