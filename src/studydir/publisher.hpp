// SPDX-License-Identifier: Apache-2.0
#pragma once
// Publisher: writes a small file again and again, always the newest text, without holding up who gives it.

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "process/background.hpp"
#include "storage/file_system.hpp"

namespace ranktune::studydir {

/// A file system that hangs for a minute must not stop the head's loop: `publish` only leaves the text for a thread,
/// which writes it aside and renames it (not synced). A text that was not written when the next one comes is skipped.
/// The last one is written before this object is gone. Failures are dropped: the file is a convenience.
class Publisher {
  public:
    /// `allowed` is asked before each write, on that thread: whether the place is still the one that was meant.
    Publisher(storage::FileSystem& files, std::string path, std::function<bool()> allowed);

    void publish(std::string text);

  private:
    void write();

    storage::FileSystem& files_;
    std::string path_;
    std::function<bool()> allowed_;
    std::mutex mutex_;
    std::optional<std::string> text_;
    process::Background thread_;
};

} // namespace ranktune::studydir
