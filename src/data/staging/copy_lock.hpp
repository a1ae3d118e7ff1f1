// SPDX-License-Identifier: Apache-2.0
#pragma once
// CopyLock: who makes a copy of data on a node, and who uses it. The kernel gives the locks of dead processes back.

#include <optional>
#include <string>

#include "storage/unique_handle.hpp"

namespace ranktune::data {

/// flock(2) on a file beside the copy. Held alone: the copy is being made, or removed. Held together: it is used.
class CopyLock {
  public:
    enum class Held { alone, together };
    /// Makes the file if need be. Alone if nobody has the lock; together if others use the copy; nullopt: another
    /// process makes or removes it, ask again. Throws base::IoError.
    [[nodiscard]] static std::optional<CopyLock> take(const std::string& path);
    /// Alone, or not at all; makes no file.
    [[nodiscard]] static std::optional<CopyLock> take_unused(const std::string& path);

    [[nodiscard]] Held held() const { return held_; }
    /// From alone to together. False: another process got in between, and the lock is lost.
    [[nodiscard]] bool share();
    /// Whether nobody else uses the copy; it is held alone then, and lost otherwise.
    [[nodiscard]] bool is_last();
    /// Held alone: nobody finds this file again.
    void remove_file();

  private:
    CopyLock(std::string path, storage::FileDescriptor file, Held held)
        : path_(std::move(path)), file_(std::move(file)), held_(held) {}
    [[nodiscard]] bool is_there() const;
    std::string path_;
    storage::FileDescriptor file_;
    Held held_;
};

} // namespace ranktune::data
