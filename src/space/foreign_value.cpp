// SPDX-License-Identifier: Apache-2.0
#include "space/foreign_value.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/number_in.hpp"

namespace ranktune::space {
namespace {

bool is_close(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max({1e-300, std::abs(a), std::abs(b)}); }

/// The multiple of the quantum that is meant; `value` as it is if none is near.
double snapped(const Domain& domain, double value) {
    const auto count = cardinality(domain);
    if (!count) return value;
    // Multiples ascend with their positions.
    std::uint64_t low = 0;
    std::uint64_t high = *count - 1;
    while (low < high) {
        const std::uint64_t middle = low + (high - low) / 2;
        const double there = value_at(domain, middle).as_double();
        if (there < value && !is_close(there, value))
            low = middle + 1;
        else
            high = middle;
    }
    const double nearest = value_at(domain, low).as_double();
    return is_close(nearest, value) || std::abs(nearest - value) < 1e-12 ? nearest : value;
}

std::optional<Value> whole_number(double number) {
    constexpr double exact = 9007199254740992.0; // 2^53
    if (number != std::floor(number) || std::abs(number) > exact) return {};
    return Value(static_cast<std::int64_t>(number));
}

/// The entries of a list; null: the domain is none.
const std::vector<Value>* entries_of(const Domain& domain) {
    if (const auto* choice = std::get_if<Choice>(&domain)) return &choice->values;
    const auto* grid = std::get_if<Grid>(&domain);
    return grid == nullptr ? nullptr : &grid->values;
}

bool is_of_floats(const Domain& domain) {
    return std::holds_alternative<FloatRange>(domain) || std::holds_alternative<Normal>(domain);
}

Value near_in_range(const Domain& domain, const Value& value) {
    const double number = value.as_double();
    if (const auto* range = std::get_if<FloatRange>(&domain)) {
        if (range->quantum > 0.0) return snapped(domain, number);
        if (number == range->upper) return std::nextafter(range->upper, range->lower);
    }
    return value;
}

/// Without blanks, and in small letters: "True" is true, "[128, 64]" is [128,64].
std::string plain(std::string_view text) {
    std::string out;
    for (const char c : text)
        if (c != ' ') out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return out;
}

bool means_none(std::string_view text) { return plain(text) == "none" || plain(text) == "null"; }

} // namespace

Value as_meant(const Domain& domain, const Value& value) {
    if (contains(domain, value)) return is_of_floats(domain) ? Value(value.as_double()) : value;
    if (value.is_string() && means_none(value.as_string()) && contains(domain, Value::none())) return Value::none();
    if (!value.is_number()) return value;
    if (const auto* entries = entries_of(domain)) {
        const auto same = std::ranges::find_if(
            *entries, [&](const Value& each) { return each.is_number() && each.as_double() == value.as_double(); });
        return same == entries->end() ? value : *same;
    }
    if (const auto* constant = std::get_if<Constant>(&domain)) {
        const bool same = constant->value.is_number() && constant->value.as_double() == value.as_double();
        return same ? constant->value : value;
    }
    if (is_of_floats(domain)) return near_in_range(domain, value);
    const auto whole = whole_number(value.as_double());
    return whole && contains(domain, *whole) ? *whole : value;
}

Value as_meant(const Domain& domain, std::string_view text) {
    std::vector<Value> listed;
    if (const auto* entries = entries_of(domain)) listed = *entries;
    if (const auto* constant = std::get_if<Constant>(&domain)) listed.push_back(constant->value);
    for (const Value& each : listed) // exactly, before anything that only looks alike
        if (each.text() == text) return each;
    for (const Value& each : listed)
        if ((each.is_bool() || each.is_list()) && plain(each.text()) == plain(text)) return each;
    for (const Value& each : listed)
        if (each.is_none() && means_none(text)) return each;
    if (const auto whole = base::number_in<std::int64_t>(text)) return as_meant(domain, Value(*whole));
    if (const auto number = base::number_in<double>(text)) return as_meant(domain, Value(*number));
    return std::string(text);
}

} // namespace ranktune::space
