// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/space/domain.hpp"
#include "space/scanner.hpp"

namespace ranktune::space {
namespace {

/// One domain call. Names and the order of arguments are Ray Tune's, but for step..., which Ray Tune does not have. The
/// first `required` must be given.
struct Signature {
    std::string_view name;
    std::array<std::string_view, 4> arguments;
    std::size_t required;
    std::string_view shown; ///< the argument list for people

    [[nodiscard]] std::size_t most() const {
        return static_cast<std::size_t>(std::find(arguments.begin(), arguments.end(), std::string_view()) -
                                        arguments.begin());
    }
};

// `base` is part of Ray Tune's signatures and has no effect on a log-uniform distribution.
constexpr std::array<Signature, 14> signatures = {{
    {"uniform", {"lower", "upper"}, 2, "lower, upper"},
    {"quniform", {"lower", "upper", "q"}, 3, "lower, upper, q"},
    {"loguniform", {"lower", "upper", "base"}, 2, "lower, upper, base=10"},
    {"qloguniform", {"lower", "upper", "q", "base"}, 3, "lower, upper, q, base=10"},
    {"randn", {"mean", "sd"}, 0, "mean=0, sd=1"},
    {"qrandn", {"mean", "sd", "q"}, 3, "mean, sd, q"},
    {"randint", {"lower", "upper"}, 2, "lower, upper"},
    {"qrandint", {"lower", "upper", "q"}, 2, "lower, upper, q=1"},
    {"lograndint", {"lower", "upper", "base"}, 2, "lower, upper, base=10"},
    {"qlograndint", {"lower", "upper", "q", "base"}, 3, "lower, upper, q, base=10"},
    {"stepuniform", {"lower", "upper", "step"}, 3, "lower, upper, step"},
    {"steprandint", {"lower", "upper", "step"}, 3, "lower, upper, step"},
    {"choice", {"categories", "ordered", "weights"}, 1, "list, ordered=..., weights=[...]"},
    {"grid", {"values"}, 1, "list"},
}};

const Signature* find_signature(std::string_view name) {
    const auto at =
        std::find_if(signatures.begin(), signatures.end(), [&](const Signature& s) { return s.name == name; });
    return at == signatures.end() ? nullptr : &*at;
}

[[noreturn]] void unknown_name(std::string_view name) {
    const std::string shown = "unknown domain '" + std::string(name) + "'";
    if (name == "grid_search" || name == "tune.grid_search")
        throw base::UsageError(shown + ": it is Ray Tune's name; here: grid");
    if (name == "sample_from" || name == "tune.sample_from")
        throw base::UsageError(
            shown +
            ": a study file holds no functions; a bound may depend on other parameters, and a parameter can have a "
            "condition");
    std::array<std::string_view, signatures.size()> names;
    std::transform(signatures.begin(), signatures.end(), names.begin(), [](const Signature& s) { return s.name; });
    // `tune.uniform`, `ray.tune.uniform`: the part after the last dot was meant.
    const std::string_view bare = name.substr(name.rfind('.') + 1);
    std::string hint = base::suggestion(bare, names);
    if (hint.empty()) hint = "; known: " + base::join(names);
    throw base::UsageError(shown + hint);
}

/// The arguments of one call, by position in the signature.
class Arguments {
  public:
    /// `dependent`: bounds may be arithmetic.
    Arguments(const Signature& signature, bool dependent) : signature_(signature), dependent_(dependent) {}

    void read(Scanner& in) {
        std::size_t given = 0;
        bool named = false;
        while (!in.take(")")) {
            if (const std::string_view name = argument_name(in); !name.empty()) {
                named = true;
                put(name, value_of(in, name));
            } else {
                if (named) in.fail("a named argument after a named one");
                const bool known = given < signature_.most();
                Value value = value_of(in, known ? signature_.arguments[given] : std::string_view());
                if (given < signature_.most()) values_[given] = std::move(value);
                ++given;
            }
            if (in.sees(")")) continue;
            if (!in.take(",")) in.fail("',' or ')'");
        }
        check_count(given);
    }

    [[nodiscard]] double number(std::size_t position, double otherwise = 0.0) const {
        const std::optional<Value>& value = values_[position];
        if (!value) return otherwise;
        if (!value->is_number()) wrong_kind(position, "a number");
        return value->as_double();
    }

    [[nodiscard]] std::int64_t integer(std::size_t position, std::int64_t otherwise = 0) const {
        const std::optional<Value>& value = values_[position];
        if (!value) return otherwise;
        if (value->is_int()) return value->as_int();
        // 1e5 is a float in TOML but means an integer.
        constexpr double exact = 0x1p53;
        if (!value->is_double() || std::trunc(value->as_double()) != value->as_double() ||
            std::abs(value->as_double()) > exact)
            wrong_kind(position, "a 64-bit integer");
        return static_cast<std::int64_t>(value->as_double());
    }

    [[nodiscard]] const Value::List& list(std::size_t position) const {
        if (!values_[position]->is_list()) wrong_kind(position, "one list, as in [1, 2, 3]");
        return values_[position]->as_list();
    }

    /// Empty: not given.
    [[nodiscard]] std::vector<double> numbers(std::size_t position) const {
        std::vector<double> numbers;
        if (!values_[position]) return numbers;
        for (const Value& value : list(position)) {
            if (!value.is_number()) wrong_kind(position, "a list of numbers");
            numbers.push_back(value.as_double());
        }
        if (numbers.empty()) wrong_kind(position, "one number for each value");
        return numbers;
    }

    [[nodiscard]] bool boolean(std::size_t position, bool otherwise) const {
        if (!values_[position]) return otherwise;
        if (!values_[position]->is_bool()) wrong_kind(position, "true or false");
        return values_[position]->as_bool();
    }

    /// What stands for a bound, and its arithmetic.
    struct Bound {
        std::string_view argument;
        std::string sum;
    };
    [[nodiscard]] const std::vector<Bound>& bounds() const { return bounds_; }
    void set_bound(const Bound& bound, Value value) {
        const auto at = std::ranges::find(signature_.arguments, bound.argument);
        values_[static_cast<std::size_t>(at - signature_.arguments.begin())] = std::move(value);
    }

  private:
    /// A literal, or, where the argument is a bound, arithmetic, for which `set_bound` is to give a value.
    Value value_of(Scanner& in, std::string_view argument) {
        if (!dependent_ || (argument != "lower" && argument != "upper")) return in.literal(true);
        Scanner ahead = in;
        const std::string sum(base::trimmed(ahead.argument()));
        Scanner alone(sum);
        try {
            Value value = alone.literal(true);
            if (alone.at_end()) {
                in = ahead;
                return value;
            }
        } catch (const SyntaxError&) {
            if (sum.empty()) return in.literal(true);
        }
        in = ahead;
        bounds_.push_back({argument, sum});
        return 0;
    }

    /// Consumes a name with its sign, `q=`; empty if a value comes next.
    [[nodiscard]] std::string_view argument_name(Scanner& in) const {
        const std::string_view word = in.peek_name();
        if (word.empty() || word == "true" || word == "false" || word == "inf" || word == "nan") return {};
        Scanner ahead = in;
        (void)ahead.name();
        if (!ahead.take("=")) return {};
        in = ahead;
        return word;
    }

    void put(std::string_view name, Value value) {
        const auto end = signature_.arguments.begin() + static_cast<std::ptrdiff_t>(signature_.most());
        const auto at = std::find(signature_.arguments.begin(), end, name);
        const std::string who(signature_.name);
        if (at == end)
            throw base::UsageError(who + " has no argument '" + std::string(name) + "'; it takes (" +
                                   std::string(signature_.shown) + ")");
        std::optional<Value>& slot = values_[static_cast<std::size_t>(at - signature_.arguments.begin())];
        if (slot) throw base::UsageError(who + ": argument '" + std::string(name) + "' is given twice");
        slot = std::move(value);
    }

    void check_count(std::size_t positional) const {
        const std::size_t most = signature_.most();
        std::size_t total = positional;
        for (std::size_t i = positional; i < most; ++i) total += values_[i] ? 1 : 0;
        bool missing = false;
        for (std::size_t i = 0; i < signature_.required; ++i) missing = missing || !values_[i];
        if (positional <= most && !missing) return;
        const std::string range = signature_.required == most
                                      ? std::to_string(most)
                                      : std::to_string(signature_.required) + " to " + std::to_string(most);
        throw base::UsageError(std::string(signature_.name) + " takes " + range +
                               (most == 1 ? " argument (" : " arguments (") + std::string(signature_.shown) +
                               "), got " + std::to_string(total));
    }

    [[noreturn]] void wrong_kind(std::size_t position, std::string_view wanted) const {
        const Value& value = *values_[position];
        throw base::UsageError(std::string(signature_.name) + ": " + std::string(signature_.arguments[position]) +
                               " must be " + std::string(wanted) + ", got the " + std::string(value.kind()) + " " +
                               value.literal());
    }

    const Signature& signature_;
    bool dependent_;
    std::array<std::optional<Value>, 4> values_;
    std::vector<Bound> bounds_;
};

/// 0 stands for "no quantum" in FloatRange and Normal, so an explicit 0 must be refused here.
double quantum(const Signature& signature, const Arguments& arguments, std::size_t position) {
    const double q = arguments.number(position);
    if (!std::isfinite(q) || q <= 0.0)
        throw base::UsageError(std::string(signature.name) + " needs a finite " +
                               std::string(signature.arguments[position]) + " > 0");
    return q;
}

Domain float_range(const Signature& signature, const Arguments& arguments, bool log, bool quantised) {
    FloatRange range{.lower = arguments.number(0), .upper = arguments.number(1), .log = log};
    if (quantised) range.quantum = quantum(signature, arguments, 2);
    return range;
}

Domain int_range(const Signature& signature, const Arguments& arguments, bool log, bool quantised) {
    IntRange range{.lower = arguments.integer(0), .upper = arguments.integer(1), .log = log};
    if (quantised) {
        range.quantum = arguments.integer(2, 1);
        return range;
    }
    if (range.lower >= range.upper)
        throw base::UsageError(std::string(signature.name) + " needs low < high (the upper bound is exclusive), got " +
                               std::to_string(range.lower) + " and " + std::to_string(range.upper));
    --range.upper;
    return range;
}

Domain normal(const Signature& signature, const Arguments& arguments, bool quantised) {
    Normal domain{.mean = arguments.number(0, 0.0), .sd = arguments.number(1, 1.0)};
    if (quantised) domain.quantum = quantum(signature, arguments, 2);
    return domain;
}

void check_base(const Signature& signature, const Arguments& arguments) {
    for (std::size_t i = 0; i < signature.most(); ++i) {
        if (signature.arguments[i] != "base") continue;
        const double base = arguments.number(i, 10.0);
        if (!std::isfinite(base) || base <= 0.0 || base == 1.0)
            throw base::UsageError(std::string(signature.name) + " needs a base > 0 other than 1");
    }
}

/// lower, lower + step, ... up to upper.
Domain stepped_range(const Signature& signature, const Arguments& arguments) {
    if (signature.name == "stepuniform")
        return FloatRange{.lower = arguments.number(0),
                          .upper = arguments.number(1),
                          .quantum = quantum(signature, arguments, 2),
                          .from_lower = true};
    return IntRange{.lower = arguments.integer(0),
                    .upper = arguments.integer(1),
                    .quantum = arguments.integer(2),
                    .from_lower = true};
}

Domain build(const Signature& signature, const Arguments& arguments) {
    const std::string_view name = signature.name;
    check_base(signature, arguments);
    if (name == "choice")
        return Choice{arguments.list(0), arguments.boolean(1, in_order(arguments.list(0))), arguments.numbers(2)};
    if (name == "grid") return Grid{arguments.list(0)};
    if (name.starts_with("step")) return stepped_range(signature, arguments);
    const bool quantised = name.starts_with('q');
    const bool log = name.find("log") != std::string_view::npos;
    if (name.ends_with("uniform")) return float_range(signature, arguments, log, quantised);
    if (name.ends_with("randint")) return int_range(signature, arguments, log, quantised);
    return normal(signature, arguments, quantised);
}

} // namespace

namespace {

bool is_of_integers(const Signature& signature) { return signature.name.ends_with("randint"); }

/// Ranges without a quantum end before their upper bound.
bool ends_before(const Signature& signature) {
    return signature.name == "uniform" || signature.name == "loguniform" || signature.name == "randint" ||
           signature.name == "lograndint";
}

/// The widest bounds.
void widen(const Signature& signature, Arguments& arguments, const Condition::RangeOf& range_of) {
    for (const Arguments::Bound& bound : arguments.bounds()) {
        const Condition::Range range = Condition::range(bound.sum, range_of);
        const bool lower = bound.argument == "lower";
        if (is_of_integers(signature))
            arguments.set_bound(bound, lower
                                           ? std::ceil(range.low)
                                           : (ends_before(signature) ? std::ceil(range.high) : std::floor(range.high)));
        else
            arguments.set_bound(bound, lower ? range.low : range.high);
    }
}

DependentDomain parsed(const std::string& call, const std::string& own, const Condition::RangeOf* range_of) {
    Scanner in(call);
    const std::string_view name = in.name();
    if (name.empty()) in.fail("the name of a domain");
    const Signature* const signature = find_signature(name);
    if (signature == nullptr) unknown_name(name);
    in.expect("(");
    Arguments arguments(*signature, range_of != nullptr);
    arguments.read(in);
    if (!in.at_end()) in.fail("nothing more");
    if (range_of != nullptr) widen(*signature, arguments, *range_of);
    DependentDomain dependent{build(*signature, arguments), {}};
    if (const std::string why = problem(dependent.domain); !why.empty())
        throw base::UsageError(std::string(signature->name) + " " + why);
    for (const Arguments::Bound& bound : arguments.bounds())
        dependent.requirements.push_back(own +
                                         (bound.argument == "lower" ? " >= ("
                                          : ends_before(*signature) ? " < ("
                                                                    : " <= (") +
                                         bound.sum + ")");
    return dependent;
}

} // namespace

Domain parse_domain(const std::string& call) { return parsed(call, "", nullptr).domain; }

DependentDomain parse_domain(const std::string& call, const std::string& name, const Condition::RangeOf& range_of) {
    return parsed(call, name, &range_of);
}

bool looks_like_call(const std::string& text) {
    Scanner in(text);
    const std::string_view name = in.peek_name();
    if (name.empty()) return false;
    (void)in.name();
    if (!in.sees("(")) return false;
    if (find_signature(name) != nullptr) return true;
    // An unknown name counts only if the bracket follows directly and is closed at the end: "left (of 2)" is a string.
    const std::size_t after = text.find(name) + name.size();
    const std::size_t last = text.find_last_not_of(" \t\n\r");
    return text[after] == '(' && text[last] == ')';
}

} // namespace ranktune::space
