// SPDX-License-Identifier: Apache-2.0
#include "ranktune/space/domain.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>

#include "ranktune/base/error.hpp"
#include "ranktune/base/rng.hpp"
#include "space/arithmetic.hpp"

namespace ranktune::space {
namespace {

constexpr double below_one = 1.0 - 0x1p-53;
/// The lowest position of a normal distribution, half a step of 2^-53 above 0, where the inverse is infinite.
constexpr double normal_edge = 0x1p-54;

double clamp_unit(double unit) { return std::clamp(unit, 0.0, below_one); }

/// Position `unit` of `count` equal intervals. `count` 0 stands for 2^64.
std::uint64_t interval(double unit, std::uint64_t count) {
    const double width = count == 0 ? 0x1p64 : static_cast<double>(count);
    const double at = std::floor(unit * width);
    // The product can round up to the width, and 2^64 does not fit.
    if (at >= 0x1p64) return std::numeric_limits<std::uint64_t>::max();
    return std::min(static_cast<std::uint64_t>(at), count - 1);
}

double middle(std::uint64_t index, std::uint64_t count) {
    const double width = count == 0 ? 0x1p64 : static_cast<double>(count);
    return clamp_unit((static_cast<double>(index) + 0.5) / width);
}

// ---- FloatRange

double float_sample(const FloatRange& d, double unit) {
    if (d.lower == d.upper) return d.lower;
    double x = 0.0;
    if (d.log) {
        const double low = std::log(d.lower);
        x = std::exp(low + unit * (std::log(d.upper) - low));
    } else {
        const double span = d.upper - d.lower;
        x = std::isfinite(span) ? d.lower + unit * span : d.lower * (1.0 - unit) + d.upper * unit;
    }
    return x < d.upper ? std::max(x, d.lower) : std::nextafter(d.upper, d.lower);
}

double float_position(const FloatRange& d, double x) {
    if (x <= d.lower) return 0.0;
    if (x >= d.upper) return 1.0;
    if (d.log) return (std::log(x) - std::log(d.lower)) / (std::log(d.upper) - std::log(d.lower));
    // Halves, so that the difference of the bounds does not overflow.
    return (x * 0.5 - d.lower * 0.5) / (d.upper * 0.5 - d.lower * 0.5);
}

Multiples multiples_of(const FloatRange& d) { return Multiples(d.quantum, d.from_lower ? d.lower : 0.0); }

/// Numbers of the outermost multiples of a quantum.
struct Ends {
    double first;
    double last;
};
Ends ends(const FloatRange& d, const Multiples& multiples) {
    return {multiples.ceiling(d.lower), multiples.floor(d.upper)};
}

std::optional<std::uint64_t> cardinality_of(const FloatRange& d) {
    if (d.lower == d.upper) return 1;
    if (d.quantum == 0.0) return std::nullopt;
    const auto [first, last] = ends(d, multiples_of(d));
    return static_cast<std::uint64_t>(last - first) + 1;
}

Value value_in(const FloatRange& d, std::uint64_t index) {
    if (d.quantum == 0.0) return d.lower;
    const Multiples multiples = multiples_of(d);
    return multiples.at(ends(d, multiples).first + static_cast<double>(index));
}

Value decode_in(const FloatRange& d, double unit) {
    if (d.from_lower) return value_in(d, interval(unit, *cardinality_of(d)));
    const double sample = float_sample(d, unit);
    if (d.quantum == 0.0) return sample;
    const Multiples multiples = multiples_of(d);
    const auto [first, last] = ends(d, multiples);
    return multiples.at(std::clamp(multiples.nearest(sample), first, last));
}

double encode_in(const FloatRange& d, const Value& value) {
    const double x = value.as_double();
    if (d.quantum == 0.0) return clamp_unit(float_position(d, x));
    const Multiples multiples = multiples_of(d);
    const auto [first, last] = ends(d, multiples);
    const double k = multiples.nearest(x);
    if (d.from_lower) return middle(static_cast<std::uint64_t>(k - first), *cardinality_of(d));
    // The middle of the interval that rounds to this multiple; the outermost intervals also hold what is clamped.
    const double from = k <= first ? 0.0 : float_position(d, (k - 0.5) * d.quantum);
    const double to = k >= last ? 1.0 : float_position(d, (k + 0.5) * d.quantum);
    return clamp_unit(0.5 * (from + to));
}

bool contains_in(const FloatRange& d, const Value& value) {
    if (!value.is_number()) return false;
    const double x = value.as_double();
    if (!(x >= d.lower && x <= d.upper)) return false;
    if (d.quantum == 0.0) return x < d.upper || d.lower == d.upper;
    const Multiples multiples = multiples_of(d);
    return multiples.at(multiples.nearest(x)) == x;
}

// ---- IntRange: an index over its values, k = first ... last

/// The k whose interval [log k, log(k + 1)) holds the position: the integer part of a log-uniform number.
std::int64_t log_step(const Steps& s, double unit) {
    const double low = std::log(static_cast<double>(s.first));
    const double high = std::log(static_cast<double>(s.last) + 1.0);
    const double k = std::floor(std::exp(low + unit * (high - low)));
    if (k >= static_cast<double>(s.last)) return s.last;
    return std::max(static_cast<std::int64_t>(k), s.first);
}

double log_position(const Steps& s, std::int64_t k) {
    const double low = std::log(static_cast<double>(s.first));
    const double span = std::log(static_cast<double>(s.last) + 1.0) - low;
    const double from = std::log(static_cast<double>(k)) - low;
    const double width = std::log1p(1.0 / static_cast<double>(k));
    double unit = clamp_unit((from + 0.5 * width) / span);
    // The middle of an interval hardly wider than a rounding error can miss it by a few steps.
    for (int tries = 0; tries < 64; ++tries) {
        const std::int64_t got = log_step(s, unit);
        if (got == k) break;
        unit = clamp_unit(std::nextafter(unit, got < k ? 1.0 : 0.0));
    }
    return unit;
}

Value decode_in(const IntRange& d, double unit) {
    const Steps s = steps(d);
    const std::int64_t k = d.log ? log_step(s, unit) : s.at(interval(unit, s.count()));
    return s.value(k);
}

double encode_in(const IntRange& d, const Value& value) {
    const Steps s = steps(d);
    const std::int64_t k = s.number(value.as_int());
    if (d.log) return log_position(s, k);
    return middle(static_cast<std::uint64_t>(k) - static_cast<std::uint64_t>(s.first), s.count());
}

bool contains_in(const IntRange& d, const Value& value) {
    if (!value.is_int()) return false;
    const std::int64_t x = value.as_int();
    const Steps s = steps(d);
    return x >= d.lower && x <= d.upper && s.value(s.number(x)) == x;
}

std::optional<std::uint64_t> cardinality_of(const IntRange& d) {
    const std::uint64_t count = steps(d).count();
    return count == 0 ? std::numeric_limits<std::uint64_t>::max() : count;
}

Value value_in(const IntRange& d, std::uint64_t index) {
    const Steps s = steps(d);
    return s.value(s.at(index));
}

// ---- Normal

Value decode_in(const Normal& d, double unit) {
    constexpr double most = std::numeric_limits<double>::max();
    const double z = base::inverse_normal(std::clamp(unit, normal_edge, below_one));
    const double x = std::clamp(d.mean + d.sd * z, -most, most); // an enormous sd can overflow
    if (d.quantum == 0.0) return x;
    const Multiples multiples(d.quantum);
    return multiples.at(multiples.nearest(x));
}

double normal_position(const Normal& d, double x) { return 0.5 * std::erfc((d.mean - x) / (d.sd * std::sqrt(2.0))); }

double encode_in(const Normal& d, const Value& value) {
    const double x = value.as_double();
    if (d.quantum == 0.0) return clamp_unit(normal_position(d, x));
    const double k = Multiples(d.quantum).nearest(x);
    return clamp_unit(0.5 * (normal_position(d, (k - 0.5) * d.quantum) + normal_position(d, (k + 0.5) * d.quantum)));
}

bool contains_in(const Normal& d, const Value& value) {
    if (!value.is_number() || !std::isfinite(value.as_double())) return false;
    if (d.quantum == 0.0) return true;
    const Multiples multiples(d.quantum);
    return multiples.at(multiples.nearest(value.as_double())) == value.as_double();
}

std::optional<std::uint64_t> cardinality_of(const Normal&) { return std::nullopt; }
Value value_in(const Normal& d, std::uint64_t) { return d.mean; }

// ---- lists and constants

bool listed(const std::vector<Value>& values, const Value& value) {
    return std::find(values.begin(), values.end(), value) != values.end();
}

Value decode_in(const Choice& d, double unit) {
    return d.values[static_cast<std::size_t>(interval(unit, d.values.size()))];
}
double encode_in(const Choice& d, const Value& value) {
    const auto at = std::find(d.values.begin(), d.values.end(), value);
    return middle(static_cast<std::uint64_t>(at - d.values.begin()), d.values.size());
}
bool contains_in(const Choice& d, const Value& value) { return listed(d.values, value); }
std::optional<std::uint64_t> cardinality_of(const Choice& d) { return d.values.size(); }
Value value_in(const Choice& d, std::uint64_t index) { return d.values[static_cast<std::size_t>(index)]; }

Value decode_in(const Grid& d, double) { return d.values.front(); }
double encode_in(const Grid&, const Value&) { return 0.5; }
bool contains_in(const Grid& d, const Value& value) { return listed(d.values, value); }
std::optional<std::uint64_t> cardinality_of(const Grid& d) { return d.values.size(); }
Value value_in(const Grid& d, std::uint64_t index) { return d.values[static_cast<std::size_t>(index)]; }

Value decode_in(const Constant& d, double) { return d.value; }
double encode_in(const Constant&, const Value&) { return 0.5; }
bool contains_in(const Constant& d, const Value& value) { return d.value == value; }
std::optional<std::uint64_t> cardinality_of(const Constant&) { return 1; }
Value value_in(const Constant& d, std::uint64_t) { return d.value; }

} // namespace

bool in_order(const std::vector<Value>& values) {
    if (values.size() < 2 || !std::ranges::all_of(values, &Value::is_number)) return false;
    std::vector<double> numbers;
    for (const Value& value : values) numbers.push_back(value.as_double());
    return std::ranges::adjacent_find(numbers, std::less_equal{}) == numbers.end() ||
           std::ranges::adjacent_find(numbers, std::greater_equal{}) == numbers.end();
}

Value decode(const Domain& domain, double unit) {
    assert(unit >= 0.0 && unit < 1.0);
    return std::visit([&](const auto& d) { return decode_in(d, unit); }, domain);
}

Value drawn(const Domain& domain, double unit) {
    const auto* choice = std::get_if<Choice>(&domain);
    if (choice == nullptr || choice->weights.empty()) return decode(domain, unit);
    double left = unit * std::accumulate(choice->weights.begin(), choice->weights.end(), 0.0);
    std::size_t last = 0; // of weight > 0: what is left can round to the whole
    for (std::size_t i = 0; i < choice->weights.size(); ++i) {
        const double weight = choice->weights[i];
        if (weight <= 0.0) continue;
        last = i;
        if (left < weight) break;
        left -= weight;
    }
    return choice->values[last];
}

double encode(const Domain& domain, const Value& value) {
    if (!contains(domain, value)) throw base::UsageError(value.literal() + " is not in " + text(domain));
    return std::visit([&](const auto& d) { return encode_in(d, value); }, domain);
}

bool contains(const Domain& domain, const Value& value) {
    return std::visit([&](const auto& d) { return contains_in(d, value); }, domain);
}

std::optional<std::uint64_t> cardinality(const Domain& domain) {
    return std::visit([](const auto& d) { return cardinality_of(d); }, domain);
}

Value value_at(const Domain& domain, std::uint64_t index) {
    assert(index < cardinality(domain).value_or(1));
    return std::visit([&](const auto& d) { return value_in(d, index); }, domain);
}

} // namespace ranktune::space
