// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text for terminals: widths of UTF-8, numbers, durations. Pure functions.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ranktune/base/text.hpp"
#include "ranktune/base/utf8.hpp"
#include "ranktune/space/configuration.hpp"
#include "ranktune/space/value.hpp"
#include "ranktune/study/vocabulary.hpp"

namespace ranktune::report {

using base::counted;
using base::escaped;
using base::grouped;
using base::plural;
using base::printable;

/// Columns that a UTF-8 string takes on a terminal: 0 for combining characters, 2 for East Asian wide ones, 1 for the
/// rest; bytes that are not UTF-8 count 1 each.
[[nodiscard]] std::size_t display_width(std::string_view text);
/// Cut to at most `width` columns, with "~" at the end. What is not to be seen becomes "?".
[[nodiscard]] std::string fit(std::string_view text, std::size_t width);
/// As `fit`, but cut in the middle: the cause of an error stands at its end.
[[nodiscard]] std::string fit_ends(std::string_view text, std::size_t width);
/// Padded with spaces to `width` columns.
[[nodiscard]] std::string pad_left(std::string_view text, std::size_t width);
[[nodiscard]] std::string pad_right(std::string_view text, std::size_t width);

/// Up to the first line end: the rest of a message (a traceback) is for the log.
[[nodiscard]] std::string first_line(std::string_view text);
/// With each of these characters replaced.
[[nodiscard]] std::string replaced(std::string_view text, std::initializer_list<std::pair<char, std::string_view>> by);
/// Lines of at most `width` columns, broken at spaces; a longer word has a line of its own. At least one line.
[[nodiscard]] std::vector<std::string> wrap(std::string_view text, std::size_t width);

/// A metric for a table: four decimals (0.9722), or one for 1,000 and more, or for very small and large values four
/// significant digits (1.234e-05); "-" for NaN.
[[nodiscard]] std::string metric_text(double value);
/// A hyper-parameter for a table: floats with four significant digits, lists as 256,128.
[[nodiscard]] std::string value_text(const space::Value& value);
/// That of the hyper-parameter `name`; "-" where the configuration has none.
[[nodiscard]] std::string value_text(const space::Configuration& configuration, std::string_view name);
/// lr=0.01 hidden=[256,128]
[[nodiscard]] std::string configuration_text(const space::Configuration& configuration);
/// 0.2s, 14.2s, 1m12s, 2h05m, 3d04h
[[nodiscard]] std::string short_duration(double seconds);
using base::bytes_text;
/// "host n1"; with a GPU (study::RankInfo::device) "GPU-5ca1ab1e of n1" or "GPU 2 of n1".
[[nodiscard]] std::string place_text(const std::string& host, const std::string& device);
/// w3-4, w1,5-6; "-" for none.
[[nodiscard]] std::string ranks_text(const std::vector<study::Rank>& ranks);

/// Properties of the terminal. The caller determines them (NO_COLOR, COLUMNS, locale).
struct Style {
    std::size_t width = 80;
    bool colour = false;
    bool utf8 = true;
    [[nodiscard]] std::string_view dot() const { return utf8 ? " \u00b7 " : " - "; }
};

/// The meaning of a coloured text.
enum class Tone : std::uint8_t { plain, good, bad };
[[nodiscard]] std::string paint(std::string_view text, Tone tone, const Style& style);
/// Columns of the labels on the left of a screen.
constexpr std::size_t label_width = 10;
/// A label and a line that is not wrapped: a command to be copied.
[[nodiscard]] std::string labelled(std::string_view label, std::string_view text);
/// A label and text, wrapped at the width of the terminal; empty for an empty text.
[[nodiscard]] std::string prose(std::string_view label, std::string_view text, const Style& style,
                                Tone tone = Tone::plain);
/// Wrapped text without a label.
[[nodiscard]] std::string paragraph(std::string_view text, const Style& style);
/// Wrapped at `width`, `indent` columns from the left.
[[nodiscard]] std::string indented(std::string_view text, std::size_t indent, std::size_t width);
/// Marks text that `prose` and `paragraph` must not wrap although it may hold spaces: a path or command to be copied, a
/// message to be searched for.
[[nodiscard]] std::string unbroken(std::string_view text);
/// For a terminal that is not UTF-8: everything but ASCII becomes "?", column by column.
[[nodiscard]] std::string encoded(std::string text, const Style& style);

} // namespace ranktune::report
