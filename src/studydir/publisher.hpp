// SPDX-License-Identifier: Apache-2.0
#pragma once
// Publisher: rewrites a small file with the newest text, without blocking the caller.

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "process/background.hpp"
#include "storage/file_system.hpp"

namespace ranktune::studydir {

/// A hanging file system must not stop the head's loop: `publish` only hands the text to a thread, which writes a
/// temporary file and renames it (not synced). A newer text replaces one that is not written yet. The destructor writes
/// the last text. Failures are ignored: the file is a convenience.
class Publisher {
  public:
    /// `allowed` is called before each write, on that thread: whether the directory is still the right one.
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
