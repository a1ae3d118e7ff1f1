// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads names, punctuation and literals from one line of text: for domains and conditions.

#include <cstddef>
#include <string>
#include <string_view>

#include "ranktune/space/value.hpp"

namespace ranktune::space {

/// Every function skips white space first. Errors are base::UsageError: `expected ... at column 7, found '...'`. Refers
/// to the text, which must outlive it.
class Scanner {
  public:
    explicit Scanner(std::string_view text) : text_(text) {}

    /// Whether nothing is left.
    [[nodiscard]] bool at_end();
    /// Consumes the token if it comes next.
    bool take(std::string_view token);
    /// Consumes it or fails.
    void expect(std::string_view token);
    /// Whether the token comes next.
    [[nodiscard]] bool sees(std::string_view token);
    /// A name: a letter or underscore, then letters, digits, `_`, `.` and `-`. Empty if none comes next; nothing is
    /// consumed then.
    std::string_view name();
    /// The same without consuming it.
    [[nodiscard]] std::string_view peek_name();
    /// Number, quoted string, true, false or None; with `lists` also a list of literals in square brackets. Double
    /// quotes allow the escapes of TOML (\" \\ \n \t \r \b \f \uXXXX), single quotes none.
    [[nodiscard]] Value literal(bool lists);

    /// Consumes the text up to a comma or a closing bracket that belongs to no bracket in it.
    [[nodiscard]] std::string_view argument();

    [[noreturn]] void fail(std::string_view expected);
    /// Column of the next token, counted from 1 in characters, not bytes.
    [[nodiscard]] std::size_t column();

  private:
    void skip_space();
    [[nodiscard]] Value number();
    [[nodiscard]] std::string quoted();
    void escape(std::string& out);
    [[nodiscard]] Value list();

    std::string_view text_;
    std::size_t at_ = 0;
    int depth_ = 0; ///< of lists
};

} // namespace ranktune::space
