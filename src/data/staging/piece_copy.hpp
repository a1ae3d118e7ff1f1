// SPDX-License-Identifier: Apache-2.0
#pragma once
// PieceCopy: a piece goes from one file to another, and is digested on the way.

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <vector>

#include "data/staging/file_list.hpp"
#include "storage/file_system.hpp"

namespace ranktune::data {

/// Blocks stay in the cache of the cores between reading, digest and writing. Longer writes get larger pages, which a
/// virtual machine may have given back to its host: up to four times the CPU time.
inline constexpr std::uint64_t copy_block_bytes = std::uint64_t{128} << 10U;

/// Reads on the calling thread while another one writes what was read before; a piece of one block needs no thread.
/// The memory serves one piece after another.
class PieceCopy {
  public:
    /// From `from`, which messages call `path`, to the same place of `to`. Returns the XXH64 of what was read. Throws
    /// base::IoError.
    [[nodiscard]] std::uint64_t run(storage::File& from, const std::string& path, storage::File& to,
                                    const Piece& piece);

  private:
    void read(storage::File& from, const std::string& path, const Piece& piece);
    void write(storage::File& to, const Piece& piece);

    std::array<std::vector<std::byte>, 16> blocks_; ///< number i is in i mod 16
    std::uint64_t digest_ = 0;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::uint64_t read_ = 0;    ///< blocks
    std::uint64_t written_ = 0; ///< blocks
    bool stop_ = false;         ///< one of the two threads has failed
    std::exception_ptr error_;  ///< of the other thread
};

} // namespace ranktune::data
