// SPDX-License-Identifier: Apache-2.0
#pragma once
// MappedFile: the bytes of a file, read when they are touched, and shared with other processes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ranktune::data {

class MappedFile {
  public:
    /// Throws base::IoError.
    explicit MappedFile(const std::string& path);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

  private:
    std::span<const std::byte> bytes_;
};

} // namespace ranktune::data
