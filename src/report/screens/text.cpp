// SPDX-License-Identifier: Apache-2.0
#include "report/screens/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/joined.hpp"
#include "ranktune/base/utf8.hpp"

namespace ranktune::report {
namespace {

using base::first_rune;
using base::Rune;

struct Range {
    char32_t first;
    char32_t last;
};
// Unicode 15: the blocks that matter for names and values of hyper-parameters.
constexpr std::array<Range, 5> combining{
    {{0x0300, 0x036F}, {0x0483, 0x0489}, {0x1AB0, 0x1AFF}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}}};
constexpr std::array<Range, 8> wide{{{0x1100, 0x115F},
                                     {0x2E80, 0x303E},
                                     {0x3041, 0xA4CF},
                                     {0xAC00, 0xD7A3},
                                     {0xF900, 0xFAFF},
                                     {0xFE30, 0xFE6F},
                                     {0xFF00, 0xFF60},
                                     {0x1F300, 0x1FAFF}}};

template <std::size_t N>
bool within(const std::array<Range, N>& ranges, char32_t code) {
    return std::any_of(ranges.begin(), ranges.end(), [&](Range r) { return code >= r.first && code <= r.last; });
}

std::size_t columns(const Rune& rune) {
    if (base::is_unseen(rune)) return 1; // as "?"
    if (within(combining, rune.code)) return 0;
    return within(wide, rune.code) ? 2 : 1;
}

/// Stands for a space until lines are wrapped. A C0 control character: no text on a screen contains one.
constexpr char unbroken_space = '\x1f';

std::string with_spaces(std::string line) {
    std::replace(line.begin(), line.end(), unbroken_space, ' ');
    return line;
}

} // namespace

std::size_t display_width(std::string_view text) {
    std::size_t width = 0;
    while (!text.empty()) {
        const Rune rune = first_rune(text);
        width += columns(rune);
        text.remove_prefix(rune.bytes);
    }
    return width;
}

std::string fit(std::string_view text, std::size_t width) {
    const bool cut = display_width(text) > width;
    const std::size_t room = cut && width > 0 ? width - 1 : width;
    std::string out;
    std::size_t used = 0;
    while (!text.empty()) {
        const Rune rune = first_rune(text);
        if (used + columns(rune) > room) break;
        used += columns(rune);
        if (base::is_unseen(rune)) {
            out += '?';
        } else {
            out += text.substr(0, rune.bytes);
        }
        text.remove_prefix(rune.bytes);
    }
    if (cut && width > 0) out += '~';
    return out;
}

std::string fit_ends(std::string_view text, std::size_t width) {
    if (display_width(text) <= width) return fit(text, width);
    const std::size_t room = width / 2;
    std::string_view tail = text;
    while (display_width(tail) > room) tail.remove_prefix(first_rune(tail).bytes);
    return fit(text, width - display_width(tail)) + printable(tail);
}

std::string first_line(std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

std::string replaced(std::string_view text, std::initializer_list<std::pair<char, std::string_view>> by) {
    std::string out;
    for (const char c : text) {
        const auto* const found = std::ranges::find(by, c, &std::pair<char, std::string_view>::first);
        out += found == by.end() ? std::string_view(&c, 1) : found->second;
    }
    return out;
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
    std::vector<std::string> lines(1);
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(' '), text.size());
        const std::string_view word = text.substr(0, end);
        if (!lines.back().empty() && display_width(lines.back()) + 1 + display_width(word) > width) {
            lines.back().erase(lines.back().find_last_not_of(' ') + 1); // gaps wider than one space
            lines.emplace_back();
        } else if (!lines.back().empty()) {
            lines.back() += ' ';
        }
        lines.back() += word;
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return lines;
}

std::string pad_left(std::string_view text, std::size_t width) {
    const std::string fitted = fit(text, width);
    return std::string(width - display_width(fitted), ' ') + fitted;
}

std::string pad_right(std::string_view text, std::size_t width) {
    const std::string fitted = fit(text, width);
    return fitted + std::string(width - display_width(fitted), ' ');
}

std::string metric_text(double value) {
    if (std::isnan(value)) return "-";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    const double magnitude = std::abs(value);
    if (value == 0.0 || (magnitude >= 0.01 && magnitude < 1000.0)) return fmt::format("{:.4f}", value);
    if (magnitude >= 1000.0 && magnitude < 1e6) return fmt::format("{:.1f}", value);
    return fmt::format("{:.3e}", value);
}

std::string value_text(const space::Value& value) {
    if (value.is_double()) return fmt::format("{:.4g}", value.as_double());
    if (!value.is_list()) return value.text();
    const auto of_item = [](const space::Value& item) { return value_text(item); };
    const std::string text = base::joined(value.as_list(), of_item, ",");
    return text.empty() ? "[]" : text;
}

std::string value_text(const space::Configuration& configuration, std::string_view name) {
    const space::Value* const value = configuration.find(name);
    return value == nullptr ? "-" : value_text(*value);
}

std::string configuration_text(const space::Configuration& configuration) {
    const auto with_name = [](const auto& entry) {
        const bool bare = entry.value.is_list() && !entry.value.as_list().empty();
        return entry.name + "=" + (bare ? "[" + value_text(entry.value) + "]" : value_text(entry.value));
    };
    const std::string text = base::joined(configuration.entries(), with_name, " ");
    return text.empty() ? "(no hyper-parameters)" : text;
}

std::string short_duration(double seconds) {
    if (!(seconds >= 0.0)) return "-";
    if (seconds < 59.95) return fmt::format("{:.1f}s", seconds);
    const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
    if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
    if (whole < 86400) return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
    return fmt::format("{}d{:02}h", whole / 86400, whole / 3600 % 24);
}

std::string place_text(const std::string& host, const std::string& device) {
    if (device.empty()) return "host " + host;
    const bool is_uuid = device.starts_with("GPU-") || device.starts_with("MIG-");
    return (is_uuid ? "" : "GPU ") + device + " of " + host;
}

std::string ranks_text(const std::vector<study::Rank>& ranks) {
    if (ranks.empty()) return "-";
    std::string text;
    for (std::size_t i = 0; i < ranks.size();) {
        std::size_t last = i;
        while (last + 1 < ranks.size() && ranks[last + 1].value() == ranks[last].value() + 1) ++last;
        text += text.empty() ? "w" : ",";
        text += std::to_string(ranks[i].value());
        if (last > i) text += "-" + std::to_string(ranks[last].value());
        i = last + 1;
    }
    return text;
}

std::string paint(std::string_view text, Tone tone, const Style& style) {
    if (!style.colour || tone == Tone::plain) return std::string(text);
    return (tone == Tone::good ? "\x1b[32m" : "\x1b[31m") + std::string(text) + "\x1b[0m";
}

std::string labelled(std::string_view label, std::string_view text) {
    return pad_right(label, label_width) + printable(text) + "\n";
}

std::string prose(std::string_view label, std::string_view text, const Style& style, Tone tone) {
    if (text.empty()) return {};
    std::string lines;
    for (const auto& line : wrap(text, style.width - std::min(style.width, label_width)))
        lines += labelled(lines.empty() ? label : "", with_spaces(line));
    return paint(lines, tone, style);
}

std::string paragraph(std::string_view text, const Style& style) {
    std::string lines;
    for (const auto& line : wrap(text, style.width)) lines += printable(with_spaces(line)) + "\n";
    return lines;
}

std::string indented(std::string_view text, std::size_t indent, std::size_t width) {
    std::string lines;
    for (const std::string& line : wrap(text, std::max<std::size_t>(width, indent + 20) - indent))
        lines += std::string(indent, ' ') + line + "\n";
    return lines;
}

std::string unbroken(std::string_view text) {
    std::string joined = printable(text);
    std::replace(joined.begin(), joined.end(), ' ', unbroken_space);
    return joined;
}

std::string encoded(std::string text, const Style& style) {
    if (style.utf8) return text;
    std::string out;
    for (std::string_view left = text; !left.empty();) {
        const Rune rune = first_rune(left);
        out += rune.valid && rune.code < 0x80 ? std::string(1, left.front()) : std::string(columns(rune), '?');
        left.remove_prefix(rune.bytes);
    }
    return out;
}

} // namespace ranktune::report
