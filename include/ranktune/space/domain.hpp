// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parameter domains: the values that a hyper-parameter can have. All of Ray Tune's space types, and steps from a lower
// bound as Optuna has them, with every bound resolved.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ranktune/space/condition.hpp"
#include "ranktune/space/value.hpp"

namespace ranktune::space {

/// uniform, loguniform, quniform, qloguniform. Samples lie in [lower, upper); if lower == upper, every sample is lower.
/// With a quantum the result is the multiple of `quantum` nearest to the sample, clamped to the outermost multiples
/// inside [lower, upper], both bounds inclusive: quniform(0.15, 1.0, 0.1) gives 0.2 ... 1.0. (So bounds that are
/// multiples have half the probability of the other values, as in Ray Tune.) A multiple is the double nearest to the
/// decimal number: 3 x 0.1 is 0.3, not 0.30000000000000004.
/// stepuniform (`from_lower`): the values are lower + k x quantum instead, up to `upper`, all equally likely.
struct FloatRange {
    double lower = 0.0;
    double upper = 1.0;
    bool log = false;        ///< uniform in the logarithm; requires lower > 0
    double quantum = 0.0;    ///< 0: none
    bool from_lower = false; ///< requires a quantum, and no log
    friend bool operator==(const FloatRange&, const FloatRange&) = default;
};

/// randint, lograndint, qrandint, qlograndint. Both bounds are inclusive *here*; the parser has already turned the
/// exclusive upper bound of `randint` and `lograndint` into this form. The values are the multiples of `quantum` inside
/// [lower, upper]: qrandint(1, 10, 4) gives 4 or 8. All are equally likely; with `log`, value k x quantum has a
/// probability proportional to log((k + 1) / k), so that `qlograndint(a, b, 1)` is `lograndint(a, b + 1)`.
/// steprandint (`from_lower`): the values are lower + k x quantum instead: steprandint(1, 10, 4) gives 1, 5 or 9.
struct IntRange {
    std::int64_t lower = 0;
    std::int64_t upper = 1; ///< inclusive
    bool log = false;       ///< requires lower >= 1
    std::int64_t quantum = 1;
    bool from_lower = false; ///< requires no log
    friend bool operator==(const IntRange&, const IntRange&) = default;
};

/// randn, qrandn: normal, without bounds; with a quantum the nearest multiple of it.
struct Normal {
    double mean = 0.0;
    double sd = 1.0;
    double quantum = 0.0; ///< 0: none
    friend bool operator==(const Normal&, const Normal&) = default;
};

/// One of a list, uniformly. `ordered`: neighbours are alike (searchers and PBT may use it; sampling does not). Where a
/// study file does not say it, a list has the order of its numbers (`in_order`): models see their positions, which is
/// the logarithm where ratios are equal.
/// `weights`: random samples and the first points of searchers take value i in proportion to weights[i]; models learn
/// from results alone. Empty: all alike.
struct Choice {
    std::vector<Value> values;
    bool ordered = false;
    std::vector<double> weights = {};
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

/// Whether values are two and more numbers that only rise, or only fall.
[[nodiscard]] bool in_order(const std::vector<Value>& values);
/// `choice([...], ordered=..., weights=[...])`, where `text` leaves out what need not be said.
[[nodiscard]] std::string full_text(const Choice& choice);

using Domain = std::variant<FloatRange, IntRange, Normal, Choice, Grid, Constant>;

/// Whether a parameter of this domain has a coordinate in the unit cube of its space.
[[nodiscard]] inline bool has_coordinate(const Domain& domain) {
    return !std::holds_alternative<Grid>(domain) && !std::holds_alternative<Constant>(domain);
}

// The functions below require a domain without a `problem`.

/// The value at position `unit` in [0, 1) of the domain: the inverse distribution function, so that a uniform `unit`
/// gives the domain's distribution. Grid gives its first value (see SearchSpace), Constant its only one. Never leaves
/// the domain's bounds.
[[nodiscard]] Value decode(const Domain& domain, double unit);
/// The same with regard to the weights of a choice, which have no place in its coordinate.
[[nodiscard]] Value drawn(const Domain& domain, double unit);
/// A position in [0, 1) that decodes to `value` again (the middle of its interval where the domain is finite): exactly
/// for every value of a finite domain of up to 2^50 values (log: 2^40), to rounding for continuous ones. Throws
/// base::UsageError when the value lies outside the domain.
[[nodiscard]] double encode(const Domain& domain, const Value& value);
/// Whether `decode` can give the value. Integers count as floats in float domains, never the other way round.
[[nodiscard]] bool contains(const Domain& domain, const Value& value);

/// Number of different positions of a finite domain: list entries, integers, multiples of a quantum; nullopt for a
/// continuous one (uniform, loguniform, randn, qrandn). Saturates at 2^64 - 1.
[[nodiscard]] std::optional<std::uint64_t> cardinality(const Domain& domain);
/// The value at a position of a finite domain, ascending or in the order of the list. Requires index < cardinality.
[[nodiscard]] Value value_at(const Domain& domain, std::uint64_t index);

/// How the domain is written in a study file, with resolved bounds: `loguniform(0.0001, 1.0)`, `[32, 64, 128]`.
/// `parse_domain` reads calls back as the same domain.
[[nodiscard]] std::string text(const Domain& domain);

/// Why the domain is impossible, in words ("needs low > 0"), or an empty string. Checks finite bounds, low <= high, log
/// of zero, quanta that fit the bounds, empty lists, values that are not a number.
[[nodiscard]] std::string problem(const Domain& domain);

/// Parses a call such as `loguniform(1e-4, 1.0)`, with Ray Tune's names, argument order and names of arguments
/// (`quniform(0, 10, q=2)`): uniform quniform loguniform qloguniform randn qrandn randint qrandint lograndint
/// qlograndint choice grid; and stepuniform, steprandint. Lower bounds are inclusive, upper bounds exclusive for
/// randint and lograndint. The
/// logarithmic ones accept `base`, which has no effect: the distribution does not depend on it. `choice` and `grid`
/// take one list; `choice` also `ordered` (default: in_order) and `weights` (one for each value). Throws
/// base::UsageError, without a location, for an unknown name (with the nearest one), a wrong number or kind of
/// arguments, or a `problem` of the result.
[[nodiscard]] Domain parse_domain(const std::string& call);
/// A domain with bounds that depend on other parameters, such as `randint(1, 2 * layers)`: the domain with the widest
/// bounds, and what the parameter keeps: `units < (2 * layers)`.
struct DependentDomain {
    Domain domain;
    std::vector<std::string> requirements;
};
/// The same for a parameter of this name, whose bounds may be arithmetic (Condition) on parameters with a `range_of`.
[[nodiscard]] DependentDomain parse_domain(const std::string& call, const std::string& name,
                                           const Condition::RangeOf& range_of);
/// Whether a string of a study file is meant as a call: a name followed by a bracketed argument list, or a known name
/// followed by an opening bracket.
[[nodiscard]] bool looks_like_call(const std::string& text);

} // namespace ranktune::space
