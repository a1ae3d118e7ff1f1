// SPDX-License-Identifier: Apache-2.0
#pragma once
// A text that breaks its grammar, and where: for callers that point at another text than the one that was parsed.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "ranktune/base/error.hpp"

namespace ranktune::space {

/// The column of a byte of the text, from 1: in characters of UTF-8.
[[nodiscard]] inline std::size_t column_at(std::string_view text, std::size_t byte) {
    const auto before = text.substr(0, byte);
    return 1 + static_cast<std::size_t>(std::ranges::count_if(before, [](char c) { return (c & 0xC0) != 0x80; }));
}

/// `expected ... at column 7, found '...'`.
class SyntaxError : public base::UsageError {
  public:
    SyntaxError(const std::string& expected, std::size_t column, const std::string& found)
        : UsageError("expected " + expected + " at column " + std::to_string(column) + ", found " + found),
          expected_(expected),
          found_(found),
          column_(column) {}

    [[nodiscard]] std::size_t column() const { return column_; } ///< as of column_at
    /// The same error at another column.
    [[nodiscard]] SyntaxError at(std::size_t column) const { return {expected_, column, found_}; }

  private:
    std::string expected_;
    std::string found_;
    std::size_t column_;
};

} // namespace ranktune::space
