// SPDX-License-Identifier: Apache-2.0
#pragma once
// The search space: named domains, in order, some with conditions.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/base/ids.hpp"
#include "ranktune/space/condition.hpp"
#include "ranktune/space/configuration.hpp"
#include "ranktune/space/domain.hpp"

namespace ranktune::space {

struct Parameter {
    std::string name; ///< nested tables joined by dots
    Domain domain;
    std::optional<Condition> condition; ///< absent: always active
};

class SearchSpace {
  public:
    SearchSpace() = default;
    /// Orders the parameters so that each comes after those its condition mentions. Throws base::UsageError for a
    /// duplicate name, a condition on an unknown name, a cycle, or `problem(domain)`.
    explicit SearchSpace(std::vector<Parameter> parameters);

    /// In the order of the study file.
    [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
    [[nodiscard]] const Parameter* find(std::string_view name) const;

    /// Random configuration of a trial: a function of (seed, trial) only. Parameter i (in file order, counting grids
    /// and constants) is `decode` of the first `uniform()` of the stream (seed, sample, trial, i), whichever others are
    /// active; a range of more than 2^53 integers uses `below` instead. The grid point is trial modulo grid_size().
    [[nodiscard]] Configuration sample(std::uint64_t seed, base::TrialId trial) const;

    /// Number of unit-cube coordinates: one per parameter that is neither Grid nor Constant, in file order.
    [[nodiscard]] std::size_t dimensions() const { return dimensions_; }
    /// The configuration at a point of the unit cube (size == dimensions(); each in [0, 1)), with grid point
    /// `grid_point` (taken modulo grid_size()). A parameter whose condition does not hold is absent; its coordinate has
    /// no effect.
    [[nodiscard]] Configuration decode(std::span<const double> unit, std::uint64_t grid_point = 0) const;
    /// The inverse for the parameters that the configuration has; others get 0.5. Throws base::UsageError for a value
    /// outside its domain, or a name that is not in the space.
    [[nodiscard]] std::vector<double> encode(const Configuration& configuration) const;

    /// Size of the cross product of all Grid domains (1 without any). Saturates at 2^63.
    [[nodiscard]] std::uint64_t grid_size() const { return grid_size_; }
    /// The grid point of a configuration: that of `decode`, below grid_size(). An absent grid counts as its first
    /// value.
    [[nodiscard]] std::uint64_t grid_point(const Configuration& configuration) const;

    /// The configuration whose parameter i has the value `value(i)`, where its condition holds. `value` is called for
    /// active parameters only, each after those that its condition mentions.
    template <class ValueOf>
    [[nodiscard]] Configuration assemble(ValueOf value) const;

  private:
    /// Position i: the value of parameter i, if it has one.
    [[nodiscard]] Configuration of_present(std::vector<std::optional<Value>> values) const;
    /// Whether the condition of parameter i holds for the values found so far.
    [[nodiscard]] bool exists(std::size_t i, const std::vector<std::optional<Value>>& values) const;

    std::vector<Parameter> parameters_;
    std::shared_ptr<const Configuration::Names> names_; ///< of all parameters, for the configurations to share
    bool conditional_ = false;                          ///< some parameter has a condition
    std::vector<std::size_t> order_; ///< positions in parameters_, each after those that its condition mentions
    std::size_t dimensions_ = 0;
    std::uint64_t grid_size_ = 1;
};

template <class ValueOf>
Configuration SearchSpace::assemble(ValueOf value) const {
    if (!conditional_) {
        auto values = Configuration::make_values(parameters_.size());
        for (std::size_t i = 0; i < parameters_.size(); ++i) values.get()[i] = value(i);
        return Configuration(names_, std::move(values));
    }
    std::vector<std::optional<Value>> values(parameters_.size());
    for (const std::size_t i : order_)
        if (exists(i, values)) values[i] = value(i);
    return of_present(std::move(values));
}

} // namespace ranktune::space
