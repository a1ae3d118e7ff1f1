// SPDX-License-Identifier: Apache-2.0
// Domains in words: how they are written, and why one is impossible.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/joined.hpp"
#include "ranktune/space/domain.hpp"
#include "space/arithmetic.hpp"

namespace ranktune::space {
namespace {

/// More multiples than this inside the bounds cannot be told apart from no quantum at all.
constexpr double most_multiples = 0x1p50;

std::string call(const char* name, std::initializer_list<Value> arguments) {
    return std::string(name) + "(" + base::joined(arguments, &Value::literal) + ")";
}

std::string text_of(const FloatRange& d) {
    if (d.from_lower) return call("stepuniform", {d.lower, d.upper, d.quantum});
    if (d.quantum != 0.0) return call(d.log ? "qloguniform" : "quniform", {d.lower, d.upper, d.quantum});
    return call(d.log ? "loguniform" : "uniform", {d.lower, d.upper});
}

std::string text_of(const IntRange& d) {
    if (d.from_lower) return call("steprandint", {d.lower, d.upper, d.quantum});
    // The upper bound of the quantised names is inclusive, so they can express the largest integer, too.
    if (d.quantum != 1 || d.upper == std::numeric_limits<std::int64_t>::max())
        return call(d.log ? "qlograndint" : "qrandint", {d.lower, d.upper, d.quantum});
    return call(d.log ? "lograndint" : "randint", {d.lower, d.upper + 1});
}

std::string text_of(const Normal& d) {
    if (d.quantum != 0.0) return call("qrandn", {d.mean, d.sd, d.quantum});
    return call("randn", {d.mean, d.sd});
}

std::string text_of(const Choice& d) {
    const bool plain = d.ordered == in_order(d.values) && d.weights.empty();
    return plain ? Value(d.values).literal() : full_text(d);
}
std::string text_of(const Grid& d) { return call("grid", {d.values}); }
std::string text_of(const Constant& d) { return d.value.literal(); }

std::string bounds(double lower, double upper) { return "[" + float_text(lower) + ", " + float_text(upper) + "]"; }

std::string too_fine(double quantum, const char* name = "q") {
    return std::string("needs a larger ") + name + ": multiples of " + float_text(quantum) +
           " are below the precision of the values";
}

std::string problem_of(const FloatRange& d) {
    if (!std::isfinite(d.lower) || !std::isfinite(d.upper)) return "needs finite bounds";
    if (d.lower > d.upper) return "needs low <= high, got " + float_text(d.lower) + " > " + float_text(d.upper);
    if (d.log && d.lower <= 0.0) return "needs low > 0";
    if (d.quantum == 0.0) return d.from_lower ? "needs a finite step > 0" : "";
    if (!std::isfinite(d.quantum) || d.quantum < 0.0)
        return std::string("needs a finite ") + (d.from_lower ? "step" : "q") + " > 0";
    if (std::max(std::abs(d.lower), std::abs(d.upper)) / d.quantum > most_multiples)
        return too_fine(d.quantum, d.from_lower ? "step" : "q");
    if (d.from_lower) return "";
    const Multiples multiples(d.quantum);
    if (multiples.ceiling(d.lower) > multiples.floor(d.upper))
        return "has no value: no multiple of " + float_text(d.quantum) + " lies in " + bounds(d.lower, d.upper);
    return "";
}

std::string problem_of(const IntRange& d) {
    const auto text = [](std::int64_t x) { return Value(x).literal(); };
    if (d.lower > d.upper) return "needs low <= high, got " + text(d.lower) + " > " + text(d.upper);
    if (d.log && d.lower < 1) return "needs low >= 1";
    if (d.quantum < 1) return d.from_lower ? "needs step >= 1" : "needs q >= 1";
    if (const Steps s = steps(d); s.first > s.last)
        return "has no value: no multiple of " + text(d.quantum) + " lies in [" + text(d.lower) + ", " + text(d.upper) +
               "]";
    return "";
}

std::string problem_of(const Normal& d) {
    if (!std::isfinite(d.mean)) return "needs a finite mean";
    if (!std::isfinite(d.sd) || d.sd <= 0.0) return "needs a finite sd > 0";
    if (d.quantum == 0.0) return "";
    if (!std::isfinite(d.quantum) || d.quantum < 0.0) return "needs a finite q > 0";
    constexpr double farthest = 9.0; // standard deviations: beyond every sample
    if ((std::abs(d.mean) + farthest * d.sd) / d.quantum > most_multiples) return too_fine(d.quantum);
    return "";
}

bool holds_nan(const Value& value) {
    if (value.is_list()) return std::any_of(value.as_list().begin(), value.as_list().end(), holds_nan);
    return value.is_double() && std::isnan(value.as_double());
}

std::string problem_of_list(const std::vector<Value>& values) {
    if (values.empty()) return "needs at least one value";
    if (std::any_of(values.begin(), values.end(), holds_nan)) return "must not hold nan";
    return "";
}
std::string problem_of(const Choice& d) {
    if (std::string why = problem_of_list(d.values); !why.empty() || d.weights.empty()) return why;
    if (d.weights.size() != d.values.size())
        return "needs one weight for each value: " + std::to_string(d.weights.size()) + " weights, " +
               std::to_string(d.values.size()) + " values";
    const auto is_weight = [](double weight) { return std::isfinite(weight) && weight >= 0.0; };
    const double sum = std::accumulate(d.weights.begin(), d.weights.end(), 0.0);
    if (!std::ranges::all_of(d.weights, is_weight) || !(sum > 0.0) || !std::isfinite(sum))
        return "needs finite weights >= 0 that are not all 0";
    return "";
}
std::string problem_of(const Grid& d) { return problem_of_list(d.values); }
std::string problem_of(const Constant& d) { return holds_nan(d.value) ? "must not be nan" : ""; }

} // namespace

std::string full_text(const Choice& choice) {
    const std::string weights =
        choice.weights.empty()
            ? ")"
            : ", weights=" + Value(Value::List(choice.weights.begin(), choice.weights.end())).literal() + ")";
    return "choice(" + Value(choice.values).literal() + ", ordered=" + (choice.ordered ? "true" : "false") + weights;
}

std::string text(const Domain& domain) {
    return std::visit([](const auto& d) { return text_of(d); }, domain);
}

std::string problem(const Domain& domain) {
    return std::visit([](const auto& d) { return problem_of(d); }, domain);
}

} // namespace ranktune::space
