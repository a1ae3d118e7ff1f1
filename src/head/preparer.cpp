// SPDX-License-Identifier: Apache-2.0
#include "head/preparer.hpp"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace ranktune::head {

struct Preparer::Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::pair<std::uint64_t, Work>> work;
    std::deque<study::Prepared> ready;
    std::function<void()> wake;
    bool running = false; ///< the thread was started
    bool quit = false;
};

Preparer::Preparer(std::function<void()> wake) : shared_(std::make_shared<Shared>()) {
    shared_->wake = std::move(wake);
}

Preparer::~Preparer() {
    const std::lock_guard lock(shared_->mutex);
    shared_->quit = true;
    shared_->changed.notify_all();
}

void Preparer::prepare(std::uint64_t ticket, Work work) {
    const std::lock_guard lock(shared_->mutex);
    shared_->work.emplace_back(ticket, std::move(work));
    if (!std::exchange(shared_->running, true)) std::thread([shared = shared_] { main(shared); }).detach();
    shared_->changed.notify_all();
}

std::optional<study::Prepared> Preparer::prepared() {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->ready.empty()) return std::nullopt;
    auto next = std::move(shared_->ready.front());
    shared_->ready.pop_front();
    return next;
}

void Preparer::main(const std::shared_ptr<Shared>& shared) {
    std::unique_lock lock(shared->mutex);
    while (true) {
        shared->changed.wait(lock, [&] { return shared->quit || !shared->work.empty(); });
        if (shared->quit) return;
        const auto [ticket, work] = std::move(shared->work.front());
        shared->work.pop_front();
        lock.unlock();
        auto answer = answer_to(ticket, work);
        lock.lock();
        if (shared->quit) return;
        shared->ready.push_back(std::move(answer));
        shared->wake();
    }
}

} // namespace ranktune::head
