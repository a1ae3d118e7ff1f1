// SPDX-License-Identifier: Apache-2.0
// A condition compares parameters with literals only: between two neighbouring literals all values of a number are
// alike, so that one of each interval, and the literals themselves, stand for all.
#include "space/satisfiable.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace ranktune::space {
namespace {

constexpr std::uint64_t most_listed = 64; ///< values of a finite domain that are looked at one by one
constexpr std::size_t most_combinations = 10'000;

struct Literals {
    std::vector<double> numbers;
    std::vector<std::int64_t> integers; ///< those among them, which a float may not hold exactly
};

/// Every number in the text of a condition, with both signs. (One inside a string does no harm.)
Literals literals_in(const std::string& text) {
    Literals found;
    const auto in_name = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    const char* const last = text.data() + text.size();
    for (std::size_t at = 0; at < text.size();) {
        const char* const first = text.data() + at++;
        const bool begins = (*first >= '0' && *first <= '9') || *first == '.';
        if (!begins || (first != text.data() && in_name(first[-1]))) continue;
        double number = 0.0;
        std::int64_t integer = 0;
        const auto [end, error] = std::from_chars(first, last, number);
        if (error != std::errc() || !std::isfinite(number)) continue;
        found.numbers.insert(found.numbers.end(), {number, -number});
        if (std::from_chars(first, last, integer).ec == std::errc())
            found.integers.insert(found.integers.end(), {integer, -integer});
        at = static_cast<std::size_t>(end - text.data());
    }
    return found;
}

/// Sorted points and the middles between them.
std::vector<double> with_middles(std::vector<double> points) {
    std::ranges::sort(points);
    const std::size_t count = points.size();
    for (std::size_t i = 1; i < count; ++i) points.push_back(points[i - 1] * 0.5 + points[i] * 0.5);
    return points;
}

std::int64_t to_integer(double x, const IntRange& d) {
    if (x <= static_cast<double>(d.lower)) return d.lower;
    if (x >= static_cast<double>(d.upper)) return d.upper;
    return static_cast<std::int64_t>(std::floor(x));
}

/// A quantum is not looked at here: a value too many only means that a condition is not refused.
std::vector<Value> values_of(const FloatRange& d, const Literals& literals) {
    std::vector<double> points = literals.numbers;
    points.insert(points.end(), {d.lower, d.upper});
    std::vector<Value> values;
    for (const double x : with_middles(std::move(points)))
        if (x >= d.lower && (x < d.upper || d.quantum > 0.0 || d.lower == d.upper) && x <= d.upper)
            values.emplace_back(x);
    return values;
}

std::vector<Value> values_of(const IntRange& d, const Literals& literals) {
    std::vector<Value> values;
    const auto add = [&](std::int64_t from, std::int64_t step) {
        std::int64_t x = 0;
        if (__builtin_mul_overflow(step, d.quantum, &step) || __builtin_add_overflow(from, step, &x)) return;
        if (contains(d, x)) values.emplace_back(x);
    };
    std::vector<std::int64_t> around{d.lower, d.upper};
    for (const double number : literals.numbers) around.push_back(to_integer(number, d));
    for (const std::int64_t integer : literals.integers) around.push_back(std::clamp(integer, d.lower, d.upper));
    for (const std::int64_t x : around)
        for (std::int64_t step = -2; step <= 2; ++step) add(x - x % d.quantum, step);
    return values;
}

std::vector<Value> values_of(const Normal&, const Literals& literals) {
    std::vector<double> points = literals.numbers;
    constexpr double most = std::numeric_limits<double>::max();
    points.insert(points.end(), {-most, most});
    std::vector<Value> values;
    for (const double x : with_middles(std::move(points))) values.emplace_back(x);
    return values;
}

std::vector<Value> values_of(const Choice& d, const Literals&) { return d.values; }
std::vector<Value> values_of(const Grid& d, const Literals&) { return d.values; }
std::vector<Value> values_of(const Constant& d, const Literals&) { return {d.value}; }

std::vector<Value> values_of(const Domain& domain, const Literals& literals) {
    const auto count = cardinality(domain);
    if (!count || *count > most_listed)
        return std::visit([&](const auto& d) { return values_of(d, literals); }, domain);
    std::vector<Value> values;
    for (std::uint64_t i = 0; i < *count; ++i) values.push_back(value_at(domain, i));
    return values;
}

/// Goes through all combinations as an odometer does.
bool holds_for_some(const Condition& condition, const std::vector<std::vector<std::optional<Value>>>& values) {
    const auto& names = condition.names();
    std::vector<std::size_t> at(names.size(), 0);
    for (;;) {
        const auto value_of = [&](std::string_view name) -> const Value* {
            const auto i = static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
            return values[i][at[i]] ? &*values[i][at[i]] : nullptr;
        };
        if (condition.holds(std::cref(value_of))) return true; // by reference: no allocation for each combination
        std::size_t turning = 0;
        while (turning < at.size() && ++at[turning] == values[turning].size()) at[turning++] = 0;
        if (turning == at.size()) return false;
    }
}

} // namespace

bool can_hold(const Condition& condition, const std::function<Range(std::string_view name)>& range_of) {
    const Literals literals = literals_in(condition.text());
    std::vector<std::vector<std::optional<Value>>> values;
    std::size_t combinations = 1;
    for (const std::string& name : condition.names()) {
        const Range range = range_of(name);
        if (range.domain == nullptr) return true;
        auto& of_name = values.emplace_back();
        for (Value& value : values_of(*range.domain, literals)) of_name.emplace_back(std::move(value));
        if (range.may_be_absent) of_name.emplace_back(std::nullopt);
        combinations *= of_name.size();
        if (of_name.empty() || combinations > most_combinations) return true;
    }
    return holds_for_some(condition, values);
}

} // namespace ranktune::space
