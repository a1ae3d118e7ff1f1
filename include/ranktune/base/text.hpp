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

/// The candidate that `name` was probably meant to be: the one at the smallest edit distance, the first of equals;
/// empty when none is within 1 + length / 4, or nothing of `name` would be left. Further than one step away the
/// shortest candidate that begins with `name` (of three letters at least) comes first. The result points into
/// `candidates`.
///
///   nearest("logunifrom", {"uniform", "loguniform"}) -> "loguniform"      nearest("colour", {"lr"}) -> ""
[[nodiscard]] std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates);
[[nodiscard]] std::string_view nearest(std::string_view name, std::span<const std::string> candidates);
[[nodiscard]] std::string_view nearest(std::string_view name, std::initializer_list<std::string_view> candidates);

/// `; did you mean 'loguniform'?` for `nearest(...)` or an empty string: to append to `unknown key 'logunifrom'`.
[[nodiscard]] std::string suggestion(std::string_view name, std::span<const std::string_view> candidates);
[[nodiscard]] std::string suggestion(std::string_view name, std::span<const std::string> candidates);

/// The one line that says what a message of several is about: its first one, or of a traceback of Python the last.
[[nodiscard]] std::string gist(std::string_view message);

/// `a, b, c`
[[nodiscard]] std::string join(std::span<const std::string> parts, std::string_view separator = ", ");
[[nodiscard]] std::string join(std::span<const std::string_view> parts, std::string_view separator = ", ");

/// "a, b and 3 more": at most `shown` of the parts.
[[nodiscard]] std::string join_some(std::vector<std::string> parts, std::size_t shown,
                                    std::string_view separator = ", ");
/// Without blanks, tabs and line ends at both ends.
[[nodiscard]] std::string_view trimmed(std::string_view text);

/// 48,112
[[nodiscard]] std::string grouped(std::uint64_t value);
/// "rank" for 1, else "ranks". The plural is always made with an s.
[[nodiscard]] std::string plural(std::uint64_t count, std::string_view noun);
/// "1 rank", "1,620 iterations"
[[nodiscard]] std::string counted(std::uint64_t count, std::string_view noun);

} // namespace ranktune::base
