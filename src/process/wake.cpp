// SPDX-License-Identifier: Apache-2.0
#include "process/wake.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <iterator>

#include "ranktune/base/error.hpp"

namespace ranktune::process {

namespace {

timespec as_timespec(std::chrono::nanoseconds time) {
    return {static_cast<time_t>(time.count() / 1'000'000'000), static_cast<long>(time.count() % 1'000'000'000)};
}

/// Takes all datagrams. Returns whether there was one.
bool silence(int bell) noexcept {
    constexpr unsigned at_once = 16;
    mmsghdr rings[at_once] = {}; // their bytes do not matter
    bool rung = false;
    int taken = 0;
    do {
        taken = recvmmsg(bell, rings, at_once, MSG_DONTWAIT, nullptr);
        rung = rung || taken > 0;
    } while (taken == static_cast<int>(at_once));
    return rung;
}

} // namespace

Waker::Waker() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (event_ < 0) throw base::IoError("cannot create", "eventfd", std::error_code(errno, std::generic_category()));
}

Waker::~Waker() { close(event_); }

void Waker::wake() noexcept {
    const std::uint64_t one = 1;
    // Fails only when the counter is full, and then the sleeper wakes anyway.
    [[maybe_unused]] const auto written = write(event_, &one, sizeof one);
}

void Waker::clear() noexcept {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto had = read(event_, &count, sizeof count); // fails when there was nothing
}

bool Waker::nap(std::chrono::microseconds time, int signal_fd, int bell) noexcept {
    pollfd files[3] = {{event_, POLLIN, 0}, {signal_fd, POLLIN, 0}, {bell, POLLIN, 0}}; // those below 0 are ignored
    const timespec limit = as_timespec(time);
    if (ppoll(files, std::size(files), &limit, nullptr) <= 0) return false;
    std::uint64_t count = 0;
    const bool woken = (files[0].revents & POLLIN) != 0 && read(event_, &count, sizeof count) > 0;
    return ((files[2].revents & POLLIN) != 0 && silence(bell)) || woken;
}

void await_readable(int fd, std::chrono::nanoseconds time) noexcept {
    pollfd file{fd, POLLIN, 0}; // one below 0 is ignored
    const timespec limit = as_timespec(time);
    ppoll(&file, 1, &limit, nullptr);
}

std::chrono::microseconds nap_until(base::StudyTime wake_at, base::StudyTime now, std::chrono::microseconds nap) {
    using namespace std::chrono_literals;
    if (wake_at <= now) return 50us; // due, but the loop must not spin while the machine cannot act yet
    // Compare before converting: `wake_at` may be the largest possible time.
    if (wake_at - now > nap) return nap;
    return std::chrono::duration_cast<std::chrono::microseconds>(wake_at - now) + 1us;
}

std::chrono::microseconds AdaptiveNap::next(Clock::time_point now, bool rung) const {
    if (rung) return rung_;
    const auto idle = std::chrono::duration_cast<std::chrono::microseconds>(now - busy_);
    return std::clamp(idle / 4, shortest_, longest_);
}

double process_cpu_seconds() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

} // namespace ranktune::process
