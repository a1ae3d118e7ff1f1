// SPDX-License-Identifier: Apache-2.0
#pragma once
// OutputLimit: limits how much of a program's output goes into the log.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace ranktune::process {

/// Writes lines at once up to `first` bytes in total. Of the later ones it keeps the last `last` bytes and writes them
/// at the end, so that the log has beginning and end of the output.
class OutputLimit {
  public:
    struct Limits {
        std::size_t first = std::size_t{8} << 20U;
        std::size_t last = std::size_t{1} << 20U;
    };
    using Write = std::function<void(std::string_view)>;

    OutputLimit(Limits limits, Write write) : limits_(limits), write_(std::move(write)) {}

    void line(std::string_view text);
    /// Writes how much was left out, then the kept lines. Of later lines the last ones are kept again.
    void finish();
    /// After finish(): the first bytes are written at once again.
    void begin_again();
    /// Replaces `write`.
    void write_to(Write write) { write_ = std::move(write); }

  private:
    Limits limits_;
    Write write_;
    std::size_t written_ = 0;
    bool full_ = false;
    std::deque<std::string> kept_;
    std::size_t kept_bytes_ = 0;
    std::uint64_t lost_lines_ = 0;
    std::uint64_t lost_bytes_ = 0;
};

} // namespace ranktune::process
