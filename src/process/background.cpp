// SPDX-License-Identifier: Apache-2.0
#include "process/background.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iostream>
#include <utility>

namespace ranktune::process {
namespace {

std::atomic<bool> any_left_behind{false};

} // namespace

Background::Background(Work work, Clock::time_point first) : work_(std::move(work)), next_(first) {
    const std::lock_guard lock(mutex_); // the work may ask for its next call before thread_ is assigned
    if (first != when_asked) start();
}

Background::~Background() { stop(); }

void Background::start() {
    thread_ = std::thread([this] { main(); });
}

void Background::ask() {
    {
        const std::lock_guard lock(mutex_);
        if (quit_) return;
        asked_ = true;
        if (!thread_.joinable()) start();
    }
    changed_.notify_all();
}

void Background::stop() {
    {
        const std::lock_guard lock(mutex_);
        quit_ = true;
    }
    changed_.notify_all();
    std::call_once(joined_, [this] {
        if (thread_.joinable()) thread_.join();
    });
}

void Background::main() {
    const auto called = [this] { return quit_ || asked_; };
    std::unique_lock lock(mutex_);
    while (true) {
        if (next_ == when_asked)
            changed_.wait(lock, called);
        else
            changed_.wait_until(lock, next_, called);
        if (quit_ && !asked_) return;
        asked_ = false;
        lock.unlock();
        const auto next = work_();
        lock.lock();
        next_ = next;
    }
}

Tasks::Tasks()
    : thread_([this] {
          run_all();
          return Background::when_asked;
      }) {}

void Tasks::post(std::function<void()> task) {
    {
        const std::lock_guard lock(mutex_);
        tasks_.push_back(std::move(task));
    }
    thread_.ask();
}

void Tasks::run_all() {
    std::unique_lock lock(mutex_);
    while (!tasks_.empty()) {
        const auto task = std::move(tasks_.front());
        tasks_.pop_front();
        lock.unlock();
        task();
        lock.lock();
    }
}

void leave_behind(std::thread thread) {
    any_left_behind.store(true);
    thread.detach();
}

void end_with_threads_left_behind(int code) {
    if (!any_left_behind.load()) return;
    std::cout.flush();
    std::fflush(nullptr);
    _exit(code);
}

Background::Work sparingly(std::chrono::milliseconds interval, std::function<void()> work) {
    return [interval, work = std::move(work)] {
        constexpr int rest = 19; // rests this many times as long as the work took
        const auto began = Background::Clock::now();
        work();
        const auto now = Background::Clock::now();
        return now + std::max<Background::Clock::duration>(interval, rest * (now - began));
    };
}

} // namespace ranktune::process
