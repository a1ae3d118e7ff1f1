// SPDX-License-Identifier: Apache-2.0
#include "drivers/head/publisher.hpp"

#include <utility>

#include "drivers/study_directory.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::drivers {

Publisher::Publisher(storage::FileSystem& files, std::string path, std::function<bool()> allowed)
    : files_(files), path_(std::move(path)), allowed_(std::move(allowed)), thread_([this] { main(); }) {}

Publisher::~Publisher() {
    {
        const std::lock_guard lock(mutex_);
        quit_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void Publisher::publish(std::string text) {
    {
        const std::lock_guard lock(mutex_);
        text_ = std::move(text);
    }
    changed_.notify_all();
}

void Publisher::main() {
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [this] { return quit_ || text_; });
        if (!text_) return;
        const std::string text = std::move(*text_);
        text_.reset();
        lock.unlock();
        try {
            if (allowed_()) publish_text(files_, path_, text, false);
        } catch (const base::Error&) { // full disk: the next text may fit, and nothing depends on it
        }
        lock.lock();
    }
}

} // namespace ranktune::drivers
