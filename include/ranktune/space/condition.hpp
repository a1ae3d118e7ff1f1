// SPDX-License-Identifier: Apache-2.0
#pragma once
// Conditions: when a parameter exists. `optimizer == 'sgd' and batch_size in [32, 64]`.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/space/configuration.hpp"

namespace ranktune::space {

/// A parsed condition; a value type, cheap to copy. Grammar (docs/reference/study-file.md):
///
///     or         = and { "or" and }
///     and        = unary { "and" unary }
///     unary      = "not" unary | "(" or ")" | comparison
///     comparison = name ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) literal
///                | name [ "not" ] "in" "[" literal { "," literal } "]"
///     literal    = number | 'string' | "string" | true | false
///
/// A comparison with a parameter that is absent from the configuration is false (also `!=` and `not in`); `not` turns
/// that false into true. Numbers compare by value, whether integer or float (32 == 32.0); values of different kinds are
/// unequal and in no order; strings are ordered by their bytes; a list equals no literal. Evaluation has no side
/// effects and never fails.
class Condition {
  public:
    /// Throws base::UsageError with what was expected at which column of the text (counted from 1).
    [[nodiscard]] static Condition parse(const std::string& text);

    /// The value of a parameter by its name; null: absent.
    using LookUp = std::function<const Value*(std::string_view name)>;

    [[nodiscard]] bool holds(const Configuration& configuration) const;
    [[nodiscard]] bool holds(const LookUp& value_of) const;
    /// Names of the parameters that the condition mentions, each once, in order of appearance.
    [[nodiscard]] const std::vector<std::string>& names() const;
    [[nodiscard]] const std::string& text() const;
    /// `a` and `b`: joins the condition of a nested table with that of one of its keys.
    [[nodiscard]] static Condition both(const Condition& a, const Condition& b);

  private:
    struct Node;
    struct Parser;
    Condition() = default;
    std::shared_ptr<const Node> root_;
    std::shared_ptr<const std::vector<std::string>> names_;
    std::string text_;
};

} // namespace ranktune::space
