// SPDX-License-Identifier: Apache-2.0
#pragma once
// Unlinker: removes released checkpoints on a thread of its own.

#include <deque>
#include <mutex>
#include <string>

#include "process/background.hpp"
#include "ranktune/base/log.hpp"
#include "storage/file_system.hpp"

namespace ranktune::head {

/// The destructor finishes all removals. A file that cannot be removed is logged and stays; the next start finds it as
/// an orphan.
class Unlinker {
  public:
    /// References outlive it.
    Unlinker(storage::FileSystem& files, std::string study_directory, base::LogSink& log);

    /// Removes a file or folder soon. `path` is relative to the study directory. Thread-safe; never waits for a disk.
    void remove(std::string path);

  private:
    void remove_all();
    void remove_now(const std::string& path);

    storage::FileSystem& files_;
    std::string directory_;
    base::LogSink& log_;
    std::mutex mutex_;
    std::deque<std::string> paths_;
    process::Background thread_;
};

} // namespace ranktune::head
