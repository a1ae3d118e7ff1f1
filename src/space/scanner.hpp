// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads names, punctuation and literals from one line of text: for domains and conditions.

#include <cstddef>
#include <string>
#include <string_view>

#include "ranktune/base/error.hpp"
#include "ranktune/space/value.hpp"

namespace ranktune::space {

/// A text that breaks its grammar: `expected ... at column 7, found '...'`.
class SyntaxError : public base::UsageError {
    using UsageError::UsageError;
};

/// Every function skips white space first. Errors are SyntaxError. Refers to the text, which must outlive it.
class Scanner {
  public:
    /// `more`: characters that a name may hold, too.
    explicit Scanner(std::string_view text, std::string_view more = {}) : text_(text), more_(more) {}

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
    [[nodiscard]] bool is_name_part(char c) const;
    [[nodiscard]] Value number();
    [[nodiscard]] std::string quoted();
    void escape(std::string& out);
    [[nodiscard]] Value list();

    std::string_view text_;
    std::string_view more_;
    std::size_t at_ = 0;
    int depth_ = 0; ///< of lists
};

} // namespace ranktune::space
