// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parameter domains: what a hyper-parameter can be. All of Ray Tune's space types, with every bound resolved.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "ranktune/space/value.hpp"

namespace ranktune::space {

/// uniform, loguniform, quniform, qloguniform. Samples lie in [lower, upper); with a quantum the result is the multiple
/// of `quantum` nearest to the sample, clamped to [lower, upper], both inclusive (as in Ray Tune).
struct FloatRange {
    double lower = 0.0;
    double upper = 1.0;
    bool log = false;     ///< uniform in the logarithm; requires lower > 0
    double quantum = 0.0; ///< 0: none
    friend bool operator==(const FloatRange&, const FloatRange&) = default;
};

/// randint, lograndint, qrandint, qlograndint. Both bounds are inclusive *here*; the parser has already turned the
/// exclusive upper bound of `randint` and `lograndint` into this form.
struct IntRange {
    std::int64_t lower = 0;
    std::int64_t upper = 1; ///< inclusive
    bool log = false;       ///< requires lower >= 1
    std::int64_t quantum = 1;
    friend bool operator==(const IntRange&, const IntRange&) = default;
};

/// randn, qrandn: unbounded normal.
struct Normal {
    double mean = 0.0;
    double sd = 1.0;
    double quantum = 0.0; ///< 0: none
    friend bool operator==(const Normal&, const Normal&) = default;
};

/// One of a list, uniformly. `ordered`: neighbours are alike (searchers and PBT may use it; sampling does not).
struct Choice {
    std::vector<Value> values;
    bool ordered = false;
    friend bool operator==(const Choice&, const Choice&) = default;
};

/// Every value in turn: trial i takes point i modulo the size of the cross product of all grids, the last grid fastest.
struct Grid {
    std::vector<Value> values;
    friend bool operator==(const Grid&, const Grid&) = default;
};

struct Constant {
    Value value;
    friend bool operator==(const Constant&, const Constant&) = default;
};

using Domain = std::variant<FloatRange, IntRange, Normal, Choice, Grid, Constant>;

/// The value at position `unit` in [0, 1) of the domain: the inverse distribution function, so that a uniform `unit`
/// gives the domain's distribution. Grid and Constant ignore it (Grid: see SearchSpace). Never leaves the domain's
/// bounds.
[[nodiscard]] Value decode(const Domain& domain, double unit);
/// A position in [0, 1) that decodes to `value` again (the middle of its interval for integers and choices). Throws
/// base::UsageError when the value lies outside the domain.
[[nodiscard]] double encode(const Domain& domain, const Value& value);
[[nodiscard]] bool contains(const Domain& domain, const Value& value);

/// How the domain is written in a study file, with resolved bounds: `loguniform(0.0001, 1.0)`, `[32, 64, 128]`.
[[nodiscard]] std::string text(const Domain& domain);

/// Why the domain is impossible, in words ("needs low > 0"), or an empty string. Checks finite bounds, low <= high, log
/// of zero, quanta that fit the bounds, empty lists.
[[nodiscard]] std::string problem(const Domain& domain);

/// Parses a call such as `loguniform(1e-4, 1.0)`, with Ray Tune's names and argument order (lower inclusive; upper
/// exclusive for randint and lograndint). Throws base::UsageError with a sentence without location: unknown name (with
/// the nearest one), number and kind of arguments, or `problem` of the result.
[[nodiscard]] Domain parse_domain(const std::string& call);
/// Whether a string of a study file is meant as a call: a name followed by a bracketed argument list.
[[nodiscard]] bool looks_like_call(const std::string& text);

} // namespace ranktune::space
