// SPDX-License-Identifier: Apache-2.0
#include "drivers/head/keeper.hpp"

#include <chrono>
#include <utility>

#include "drivers/study_directory.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::drivers {

Keeper::Keeper(storage::FileSystem& files, storage::Lease& lease, std::string stop_file, Waker& waker,
               base::LogSink& log)
    : files_(files), lease_(lease), stop_file_(std::move(stop_file)), waker_(waker), log_(log), thread_([this] {
          main();
      }) {}

Keeper::~Keeper() {
    {
        const std::lock_guard lock(mutex_);
        quit_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

std::optional<EndAsked> Keeper::asked() {
    const std::lock_guard lock(mutex_);
    return std::exchange(asked_, std::nullopt);
}

void Keeper::main() {
    using Clock = std::chrono::steady_clock;
    auto next_renewal = Clock::now() + storage::lease_period;
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::seconds(1), [this] { return quit_; })) {
        lock.unlock();
        look_for_stop();
        if (Clock::now() >= next_renewal) {
            next_renewal = Clock::now() + storage::lease_period;
            renew();
        }
        lock.lock();
    }
}

void Keeper::look_for_stop() {
    try {
        if (auto who = take_stop_request(files_, stop_file_)) ask({std::move(*who), false});
    } catch (const base::IoError& error) {
        log_.write(base::LogLevel::warning, "stop-file", {{"error", error.what()}});
    }
}

void Keeper::renew() {
    if (taken_) return;
    try {
        if (lease_.renew()) return;
    } catch (const base::IoError& error) { // a full disk, a server that restarts: the next period may go better
        log_.write(base::LogLevel::warning, "lease", {{"error", error.what()}});
        return;
    }
    taken_ = true;
    log_.write(base::LogLevel::error, "lease", {{"error", "another head has taken the study over"}});
    ask({"another head has taken the study over", true});
}

void Keeper::ask(EndAsked what) {
    {
        const std::lock_guard lock(mutex_);
        asked_ = std::move(what);
    }
    waker_.wake();
}

} // namespace ranktune::drivers
