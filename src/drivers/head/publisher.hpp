// SPDX-License-Identifier: Apache-2.0
#pragma once
// Publisher: writes a small file again and again, always the newest text, without holding up who gives it.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "storage/file_system.hpp"

namespace ranktune::drivers {

/// A file system that hangs for a minute must not stop the head's loop: `publish` only leaves the text for a thread,
/// which writes it aside and renames it (not synced). A text that was not written when the next one comes is skipped.
/// Failures are dropped: the file is a convenience.
class Publisher {
  public:
    /// `allowed` is asked before each write, on that thread: whether the place is still the one that was meant.
    Publisher(storage::FileSystem& files, std::string path, std::function<bool()> allowed);
    ~Publisher(); ///< writes what is left
    Publisher(const Publisher&) = delete;
    Publisher& operator=(const Publisher&) = delete;

    void publish(std::string text);

  private:
    void main();

    storage::FileSystem& files_;
    std::string path_;
    std::function<bool()> allowed_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::optional<std::string> text_;
    bool quit_ = false;
    std::thread thread_; // last: starts when everything above is there
};

} // namespace ranktune::drivers
