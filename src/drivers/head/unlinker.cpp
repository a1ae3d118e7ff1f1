// SPDX-License-Identifier: Apache-2.0
#include "drivers/head/unlinker.hpp"

#include <exception>
#include <utility>

namespace ranktune::drivers {

Unlinker::Unlinker(storage::FileSystem& files, std::string study_directory, base::LogSink& log)
    : files_(files), directory_(std::move(study_directory)), log_(log) {}

Unlinker::~Unlinker() {
    {
        const std::lock_guard lock(mutex_);
        quit_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

void Unlinker::remove(std::string path) {
    {
        const std::lock_guard lock(mutex_);
        paths_.push_back(std::move(path));
        if (!thread_.joinable()) thread_ = std::thread([this] { main(); });
    }
    changed_.notify_all();
}

void Unlinker::main() {
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [this] { return quit_ || !paths_.empty(); });
        if (paths_.empty()) return;
        const std::string path = std::move(paths_.front());
        paths_.pop_front();
        lock.unlock();
        remove_now(path);
        lock.lock();
    }
}

void Unlinker::remove_now(const std::string& path) {
    try {
        const std::string full = directory_ + "/" + path;
        files_.remove_all(full);
        // The last checkpoint of a trial takes the trial's folder with it: thousands of trials, few files.
        files_.remove_if_empty(full.substr(0, full.rfind('/')));
    } catch (const std::exception& error) {
        log_.write(base::LogLevel::warning, "unlink", {{"path", path}, {"error", error.what()}});
    }
}

} // namespace ranktune::drivers
