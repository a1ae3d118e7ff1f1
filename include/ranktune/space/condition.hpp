// SPDX-License-Identifier: Apache-2.0
#pragma once
// Conditions: when a parameter exists, `optimizer == 'sgd' and batch_size in [32, 64]`, and what configurations keep,
// `width * depth <= 4096`.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/space/configuration.hpp"

namespace ranktune::space {

/// A parsed condition; a value type, cheap to copy. Grammar (docs/reference/study-file.md):
///
///     or         = and { "or" and }
///     and        = unary { "and" unary }
///     unary      = "not" unary | comparison | "(" or ")"
///     comparison = sum ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) sum
///                | sum [ "not" ] "in" ( "[" literal { "," literal } "]" | name )      name: of a list
///     sum        = product { ( "+" | "-" ) product }
///     product    = power { ( "*" | "/" | "%" ) power }
///     power      = [ "-" ] operand [ "**" power ]
///     operand    = name | literal | function "(" sum { "," sum } ")" | "(" sum ")"
///     function   = "abs" | "min" | "max" | "floor" | "ceil" | "sqrt" | "exp" | "log" | "log2" | "log10"
///     literal    = number | 'string' | "string" | true | false | None
///
/// A comparison with a parameter that is absent from the configuration is false (also `!=` and `not in`), as is one
/// with arithmetic on what is no number; `not` turns that false into true. Numbers compare by value, whether integer or
/// float (32 == 32.0); values of different kinds are unequal and in no order; strings are ordered by their bytes; a
/// list equals no literal. Arithmetic is that of doubles; `%` has the sign of the divisor, as in Python. A name may
/// hold `-`: a difference is written with blanks, `a - b`. Evaluation has no side effects and never fails.
class Condition {
  public:
    /// Throws base::UsageError with what was expected at which column of the text (counted from 1).
    [[nodiscard]] static Condition parse(const std::string& text);

    /// What is called, in the order of the text, with each name, and with each string that is compared with one; both
    /// may throw. `column` counts from 1.
    struct Filter {
        std::function<void(const std::string& name, std::size_t column)> on_name;
        std::function<void(const std::string& name, const std::string& word, std::size_t column)> on_word;
    };
    /// The same as people type it, `state == running and lr < 0.1`: on the right of a comparison a word is a string,
    /// and a name may hold `/`, `:` and `@`, as names of metrics do.
    [[nodiscard]] static Condition parse_filter(const std::string& text, const Filter& filter);

    /// The value of a parameter by its name; null: absent.
    using LookUp = std::function<const Value*(std::string_view name)>;

    /// The smallest and the largest value.
    struct Range {
        double low;
        double high;
    };
    using RangeOf = std::function<Range(const std::string& name)>;
    /// That of a `sum`, where `range_of` gives those of its parameters. Throws base::UsageError for another text, and
    /// where the extremes of an operation may lie between the ends: `abs`, `%`, a division by what may be 0, a power of
    /// what may be negative, and for a range that is not finite.
    [[nodiscard]] static Range range(const std::string& sum, const RangeOf& range_of);

    [[nodiscard]] bool holds(const Configuration& configuration) const;
    [[nodiscard]] bool holds(const LookUp& value_of) const;
    /// `values`: of names(), one for each.
    [[nodiscard]] bool holds(std::span<const Value* const> values) const;
    /// How far values are from where the condition is `wanted`: 0 where it is, otherwise > 0. Comparisons of numbers
    /// count by their relative difference, `and` by the sum, `or` by the smallest part.
    [[nodiscard]] double distance(std::span<const Value* const> values, bool wanted) const;
    /// Names of the parameters that the condition mentions, each once, in order of appearance.
    [[nodiscard]] const std::vector<std::string>& names() const;
    /// Those that arithmetic needs as numbers.
    [[nodiscard]] const std::vector<std::string>& numbers() const;
    [[nodiscard]] const std::string& text() const;
    /// `a` and `b`: joins the condition of a nested table with that of one of its keys.
    [[nodiscard]] static Condition both(const Condition& a, const Condition& b);

  private:
    struct Node;
    struct Parser;
    Condition() = default;
    [[nodiscard]] static Condition parsed(Parser parser, const std::string& text);
    std::shared_ptr<const Node> root_;
    std::shared_ptr<const std::vector<std::string>> names_;
    std::shared_ptr<const std::vector<std::string>> numbers_;
    std::string text_;
};

} // namespace ranktune::space
