// SPDX-License-Identifier: Apache-2.0
#pragma once
// Words for messages: the nearest known name to a misspelt one, lists, numbers with their nouns.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ranktune::base {

/// Number of single-byte insertions, deletions, replacements and swaps of neighbours that turn `a` into `b` (optimal
/// string alignment); letters that differ only in ASCII case count as equal.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate that was probably meant: the one at the smallest edit distance, the first of equals. Empty when none
/// is within 1 + length / 4 edits, or when the edits would replace all of `name`. If the nearest one is more than one
/// edit away, the shortest candidate that starts with `name` (of at least three letters) wins. The result points into
/// `candidates`.
///
///   nearest("logunifrom", {"uniform", "loguniform"}) -> "loguniform"      nearest("colour", {"lr"}) -> ""
[[nodiscard]] std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates);
[[nodiscard]] std::string_view nearest(std::string_view name, std::span<const std::string> candidates);
[[nodiscard]] std::string_view nearest(std::string_view name, std::initializer_list<std::string_view> candidates);

/// `; did you mean 'loguniform'?`, to append to `unknown key 'logunifrom'`; empty when `nearest` finds nothing.
[[nodiscard]] std::string suggestion(std::string_view name, std::span<const std::string_view> candidates);
[[nodiscard]] std::string suggestion(std::string_view name, std::span<const std::string> candidates);

/// The most telling line of a message: the first, or the last line of a Python traceback.
[[nodiscard]] std::string gist(std::string_view message);

/// `a, b, c`
[[nodiscard]] std::string join(std::span<const std::string> parts, std::string_view separator = ", ");
[[nodiscard]] std::string join(std::span<const std::string_view> parts, std::string_view separator = ", ");

/// "a, b and 3 more": at most `shown` of the parts.
[[nodiscard]] std::string join_some(std::vector<std::string> parts, std::size_t shown,
                                    std::string_view separator = ", ");
/// `text` without leading and trailing blanks, tabs and line ends.
[[nodiscard]] std::string_view trimmed(std::string_view text);

/// 48,112
[[nodiscard]] std::string grouped(std::uint64_t value);
/// "rank" for 1, else "ranks". The plural is always made with an s.
[[nodiscard]] std::string plural(std::uint64_t count, std::string_view noun);
/// "1 rank", "1,620 iterations"
[[nodiscard]] std::string counted(std::uint64_t count, std::string_view noun);
/// 3.1 MB
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);

} // namespace ranktune::base
