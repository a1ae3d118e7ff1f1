// SPDX-License-Identifier: Apache-2.0
#pragma once
// A text that breaks its grammar, and where: for callers that point at another text than the one that was parsed.

#include <cstddef>
#include <string>

#include "ranktune/base/error.hpp"

namespace ranktune::space {

/// `expected ... at column 7, found '...'`.
class SyntaxError : public base::UsageError {
  public:
    SyntaxError(const std::string& expected, std::size_t column, const std::string& found)
        : UsageError("expected " + expected + " at column " + std::to_string(column) + ", found " + found),
          expected_(expected),
          found_(found),
          column_(column) {}

    [[nodiscard]] std::size_t column() const { return column_; } ///< in characters, from 1
    /// The same error at another column.
    [[nodiscard]] SyntaxError at(std::size_t column) const { return {expected_, column, found_}; }

  private:
    std::string expected_;
    std::string found_;
    std::size_t column_;
};

} // namespace ranktune::space
