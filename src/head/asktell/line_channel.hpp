// SPDX-License-Identifier: Apache-2.0
#pragma once
// LineChannel: lines of text over two descriptors, with the process at the other end.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "process/program/messages.hpp"
#include "storage/unique_handle.hpp"

namespace ranktune::head {

class LineChannel {
  public:
    /// The descriptors stay the caller's. `peer`: its process, the parent of this one; when that ends the channel is
    /// closed, even if a process that it forked keeps the pipe open. 0: unknown.
    LineChannel(int in, int out, std::uint64_t peer);

    /// Waits for input, at most so long (negative: without limit), and reads what is there.
    void wait(std::chrono::milliseconds patience);
    /// The next complete line, without its newline. Throws base::FormatError when it is too long, and closes the
    /// channel: where the next one begins is unknown.
    [[nodiscard]] std::optional<std::string> next();
    /// Nothing more can come. Complete lines that came before are still to be taken.
    [[nodiscard]] bool closed() const { return closed_; }
    void close() { closed_ = true; }
    /// Adds the newline. Closes the channel when nobody reads.
    void write(std::string line);

  private:
    int in_;
    int out_;
    std::uint64_t peer_pid_;
    storage::FileDescriptor peer_; ///< empty: the kernel does not watch it; each wait then looks who the parent is
    process::LineBuffer lines_;
    bool closed_ = false;
    bool garbled_ = false;
};

} // namespace ranktune::head
