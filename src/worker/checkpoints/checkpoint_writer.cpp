// SPDX-License-Identifier: Apache-2.0
#include "worker/checkpoints/checkpoint_writer.hpp"

#include <cassert>
#include <chrono>
#include <exception>
#include <utility>
#include <vector>

namespace ranktune::worker {

namespace {

constexpr std::size_t most_free = 2; // one is filled while another one is written

} // namespace

struct StatePool::Free {
    std::mutex mutex;
    std::vector<std::unique_ptr<study::MemoryState>> states;
};

StatePool::StatePool() : free_(std::make_shared<Free>()) {}

std::shared_ptr<study::MemoryState> StatePool::take() {
    std::unique_ptr<study::MemoryState> state;
    {
        const std::lock_guard lock(free_->mutex);
        if (!free_->states.empty()) {
            state = std::move(free_->states.back());
            free_->states.pop_back();
        }
    }
    if (!state) state = std::make_unique<study::MemoryState>();
    state->reset();
    return {state.release(), [free = free_](study::MemoryState* unused) {
                std::unique_ptr<study::MemoryState> back(unused);
                const std::lock_guard lock(free->mutex);
                if (free->states.size() < most_free) free->states.push_back(std::move(back));
            }};
}

CheckpointWriter::CheckpointWriter(Write write)
    : write_(std::move(write)), thread_([this] {
          write_now();
          return process::Background::when_asked;
      }) {}

bool CheckpointWriter::idle() const {
    const std::lock_guard lock(mutex_);
    return !job_ && !result_;
}

const std::shared_ptr<study::MemoryState>& CheckpointWriter::fresh_state() {
    assert(idle());
    state_.reset(); // first, so that its memory can be used again
    state_ = pool_.take();
    return state_;
}

void CheckpointWriter::start(const storage::CheckpointKey& key) {
    assert(idle());
    {
        const std::lock_guard lock(mutex_);
        job_ = key;
    }
    thread_.ask();
}

std::optional<CheckpointWriter::Result> CheckpointWriter::take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(result_, std::nullopt);
}

std::optional<CheckpointWriter::Result> CheckpointWriter::wait() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return !job_; });
    return std::exchange(result_, std::nullopt);
}

void CheckpointWriter::write_now() {
    Result result;
    const auto began = std::chrono::steady_clock::now();
    try {
        result.checkpoint = write_(*job_, state_); // both belong to this thread until the result is set
    } catch (const std::exception& error) {
        result.error = error.what();
    }
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    {
        const std::lock_guard lock(mutex_);
        job_.reset();
        result_ = std::move(result);
    }
    done_.notify_all();
}

} // namespace ranktune::worker
