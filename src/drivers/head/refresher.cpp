// SPDX-License-Identifier: Apache-2.0
#include "drivers/head/refresher.hpp"

#include <algorithm>
#include <utility>

namespace ranktune::drivers {

Refresher::Refresher(std::chrono::milliseconds interval, std::function<void()> refresh)
    : interval_(interval), refresh_(std::move(refresh)), thread_([this] { main(); }) {}

Refresher::~Refresher() { stop(); }

void Refresher::stop() {
    {
        const std::lock_guard lock(mutex_);
        quit_ = true;
    }
    changed_.notify_all();
    std::call_once(joined_, [this] { thread_.join(); });
}

void Refresher::main() {
    using Clock = std::chrono::steady_clock;
    constexpr int rest = 19; // times as long as it took
    Clock::duration pause = interval_;
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, pause, [this] { return quit_; })) {
        lock.unlock();
        const auto begin = Clock::now();
        refresh_();
        pause = std::max<Clock::duration>(interval_, rest * (Clock::now() - begin));
        lock.lock();
    }
}

} // namespace ranktune::drivers
