// SPDX-License-Identifier: Apache-2.0
#pragma once
// UTF-8, character by character, and texts that claim to be UTF-8 and are not.

#include <cstddef>
#include <string>
#include <string_view>

namespace ranktune::base {

/// One character of a text.
struct Rune {
    char32_t code = 0; ///< not valid: the value of the byte
    std::size_t bytes = 1;
    bool valid = true; ///< false: a byte that is not UTF-8 (RFC 3629)
};

/// Requires that the text is not empty.
[[nodiscard]] Rune first_rune(std::string_view text);

/// Appends a byte as \x1b.
void append_escaped(char byte, std::string& out);

/// The text for files that hold UTF-8 alone: zero bytes, which end a text there, and bytes that are not UTF-8 are
/// written as \xff. Everything else stays.
[[nodiscard]] std::string as_utf8(std::string_view text);

} // namespace ranktune::base
