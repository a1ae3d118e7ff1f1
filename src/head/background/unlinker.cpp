// SPDX-License-Identifier: Apache-2.0
#include "head/background/unlinker.hpp"

#include <exception>
#include <utility>

namespace ranktune::head {

Unlinker::Unlinker(storage::FileSystem& files, std::string study_directory, base::LogSink& log)
    : files_(files), directory_(std::move(study_directory)), log_(log), thread_([this] {
          remove_all();
          return process::Background::when_asked;
      }) {}

void Unlinker::remove(std::string path) {
    {
        const std::lock_guard lock(mutex_);
        paths_.push_back(std::move(path));
    }
    thread_.ask();
}

void Unlinker::remove_all() {
    std::unique_lock lock(mutex_);
    while (!paths_.empty()) {
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
        // The last checkpoint of a trial takes the trial's folder with it: thousands of trials leave few files.
        files_.remove_if_empty(full.substr(0, full.rfind('/')));
    } catch (const std::exception& error) {
        log_.write(base::LogLevel::warning, "unlink", {{"path", path}, {"error", error.what()}});
    }
}

} // namespace ranktune::head
