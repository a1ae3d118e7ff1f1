// SPDX-License-Identifier: Apache-2.0
// Durations as people and Slurm write them.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "ranktune/study/parse.hpp"
#include "study/parse/checker.hpp"

namespace ranktune::study {
namespace {

using Milliseconds = std::chrono::duration<std::int64_t, std::milli>;

struct Unit {
    std::string_view name;
    std::int64_t milliseconds;
};
/// From the largest: a duration names units in this order, each at most once.
constexpr std::array<Unit, 5> units = {{{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}}};

/// A hundred years: no real duration is longer, and its nanoseconds fit into 64 bits.
constexpr double longest_ms = 100.0 * 366.0 * 86'400'000.0;

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
    throw base::UsageError(in_quotes(text) + " is not a duration: " + why);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Takes the digits at the start of `rest`. Saturates far beyond the longest duration, so that sums of products fit.
std::optional<std::int64_t> take_integer(std::string_view& rest) {
    constexpr std::int64_t most = 1'000'000'000'000;
    std::int64_t value = 0;
    std::size_t digits = 0;
    for (; digits < rest.size() && is_digit(rest[digits]); ++digits)
        value = std::min(most, value * 10 + (rest[digits] - '0'));
    if (digits == 0) return std::nullopt;
    rest.remove_prefix(digits);
    return value;
}

base::Duration checked(const std::string& text, double milliseconds) {
    if (milliseconds > longest_ms) refuse(text, "it is longer than a hundred years");
    return Milliseconds(std::llround(milliseconds));
}

/// `HH:MM:SS`, `D-HH:MM:SS`
base::Duration parse_clock(const std::string& text) {
    std::string_view rest = text;
    std::int64_t days = 0;
    const bool has_days = rest.find('-') != std::string_view::npos;
    const auto fail = [&](const std::string& why) { refuse(text, why + "; accepted: HH:MM:SS and D-HH:MM:SS"); };
    const auto take = [&](char end) {
        const auto value = take_integer(rest);
        if (!value || (end != '\0' && (rest.empty() || rest[0] != end)) || (end == '\0' && !rest.empty()))
            fail(end == ':' && value && rest.empty() ? "hours, minutes and seconds must all be given"
                                                     : "it has another form");
        if (end != '\0') rest.remove_prefix(1);
        return *value;
    };
    if (has_days) days = take('-');
    const std::int64_t hours = take(':');
    const std::int64_t minutes = take(':');
    const std::int64_t seconds = take('\0');
    if (minutes > 59 || seconds > 59) fail("minutes and seconds go up to 59");
    if (has_days && hours > 23) fail("beside days, hours go up to 23");
    const auto total = static_cast<double>(((days * 24 + hours) * 60 + minutes) * 60 + seconds);
    return checked(text, total * 1000.0);
}

/// Takes `12` or `1.5` at the start of `rest`.
std::optional<double> take_number(std::string_view& rest, bool& fraction) {
    const auto whole = take_integer(rest);
    if (!whole) return std::nullopt;
    auto value = static_cast<double>(*whole);
    if (rest.empty() || rest[0] != '.') return value;
    rest.remove_prefix(1);
    fraction = true;
    if (rest.empty() || !is_digit(rest[0])) return std::nullopt;
    for (double place = 0.1; !rest.empty() && is_digit(rest[0]); rest.remove_prefix(1), place /= 10.0)
        value += place * (rest[0] - '0');
    return value;
}

/// `90m`, `2h30m`, `1.5h`
base::Duration parse_units(const std::string& text) {
    std::string_view rest = text;
    double total = 0.0;
    bool fraction = false;
    std::size_t next_unit = 0;
    while (!rest.empty()) {
        if (fraction) refuse(text, "only the last number may have a fraction");
        const auto number = take_number(rest, fraction);
        if (!number) refuse(text, "it needs a number before each unit, as in \"2h30m\"");
        std::size_t length = 0;
        while (length < rest.size() && !is_digit(rest[length])) ++length;
        const std::string_view name = rest.substr(0, length);
        if (name.empty()) refuse(text, "it needs a unit: \"" + text + "s\", \"" + text + "m\" or \"" + text + "h\"");
        std::size_t unit = next_unit;
        while (unit < units.size() && units[unit].name != name) ++unit;
        if (unit == units.size()) refuse(text, "the units are d, h, m, s and ms, from the largest to the smallest");
        total += *number * static_cast<double>(units[unit].milliseconds);
        next_unit = unit + 1;
        rest.remove_prefix(length);
    }
    return checked(text, total);
}

/// Two numbers and one colon: Slurm reads minutes and seconds, people mean hours and minutes.
bool is_ambiguous(std::string_view text) {
    return text.find(':') != std::string_view::npos && text.find(':') == text.rfind(':') &&
           text.find('-') == std::string_view::npos;
}

} // namespace

base::Duration parse_duration(const std::string& text) {
    if (text.empty()) refuse(text, "it is empty");
    if (is_ambiguous(text))
        refuse(text, "Slurm reads minutes, people mean hours; write \"" + text + ":00\" or \"0:" + text + "\"");
    if (text.find(':') != std::string::npos) return parse_clock(text);
    return parse_units(text);
}

std::string duration_text(base::Duration duration) {
    std::int64_t left = std::chrono::round<Milliseconds>(duration).count();
    const bool negative = left < 0;
    if (negative) left = -left;
    std::string text;
    for (const Unit& unit : units) {
        if (unit.name == "d") continue; // "36h" is as clear as "1d12h"
        const std::int64_t count = left / unit.milliseconds;
        left %= unit.milliseconds;
        if (count > 0) text += std::to_string(count) + std::string(unit.name);
    }
    if (text.empty()) return "0s";
    return (negative ? "-" : "") + text;
}

} // namespace ranktune::study
