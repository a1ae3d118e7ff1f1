// SPDX-License-Identifier: Apache-2.0
#include "drivers/group/checkpoint_writer.hpp"

#include <cassert>
#include <chrono>
#include <exception>
#include <utility>

namespace ranktune::drivers {

CheckpointWriter::CheckpointWriter(Write write) : write_(std::move(write)) {}

CheckpointWriter::~CheckpointWriter() {
    if (!thread_.joinable()) return;
    {
        const std::lock_guard lock(mutex_);
        quit_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

bool CheckpointWriter::idle() const {
    const std::lock_guard lock(mutex_);
    return !job_ && !result_;
}

study::MemoryState& CheckpointWriter::fresh_state() {
    assert(idle());
    state_.reset();
    return state_;
}

void CheckpointWriter::start(const storage::CheckpointKey& key) {
    assert(idle());
    if (!thread_.joinable()) thread_ = std::thread([this] { main(); });
    {
        const std::lock_guard lock(mutex_);
        job_ = key;
    }
    changed_.notify_all();
}

std::optional<CheckpointWriter::Result> CheckpointWriter::take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(result_, std::nullopt);
}

std::optional<CheckpointWriter::Result> CheckpointWriter::wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !job_; });
    return std::exchange(result_, std::nullopt);
}

void CheckpointWriter::main() {
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [this] { return job_ || quit_; });
        if (!job_) return;
        const storage::CheckpointKey key = *job_;
        lock.unlock();
        Result result;
        const auto began = std::chrono::steady_clock::now();
        try {
            result.checkpoint = write_(key, state_);
        } catch (const std::exception& error) {
            result.error = error.what();
        }
        result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
        lock.lock();
        job_.reset();
        result_ = std::move(result);
        changed_.notify_all();
    }
}

} // namespace ranktune::drivers
