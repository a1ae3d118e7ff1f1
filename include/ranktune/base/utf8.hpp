// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads UTF-8 character by character, and escapes what is not valid UTF-8, or not to be seen on a screen.

#include <cstddef>
#include <string>
#include <string_view>

namespace ranktune::base {

/// One character of a text.
struct Rune {
    char32_t code = 0; ///< if not valid, the value of the byte
    std::size_t bytes = 1;
    bool valid = true; ///< false: a byte that is not UTF-8 (RFC 3629)
};

/// Requires a non-empty text.
[[nodiscard]] Rune first_rune(std::string_view text);

/// Whether a screen obeys it or shows nothing for it: control characters (C0, C1), marks of the direction of text,
/// characters without width or ink, separators of lines, tags; and bytes that are not UTF-8.
[[nodiscard]] bool is_unseen(const Rune& rune);
/// For text of others on a screen: "?" for each of these.
[[nodiscard]] std::string printable(std::string_view text);
/// The same, lossless: the bytes of each as \x1b, except tabs and line ends.
[[nodiscard]] std::string escaped(std::string_view text);

/// \u202e or \U000e0001, as strings of TOML have it.
[[nodiscard]] std::string toml_escape(char32_t code);

/// Appends a byte as \x1b.
void append_escaped(char byte, std::string& out);

/// The text as valid UTF-8 without zero bytes: each zero byte, and each byte that is not UTF-8, is escaped as \xff.
[[nodiscard]] std::string as_utf8(std::string_view text);

} // namespace ranktune::base
