// SPDX-License-Identifier: Apache-2.0
#pragma once
// The search space: named domains, in order, some with conditions.

#include <cstddef>
#include <cstdint>
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
    /// double name, a condition on an unknown name, a cycle, or `problem(domain)`.
    explicit SearchSpace(std::vector<Parameter> parameters);

    /// In the order of the study file.
    [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
    [[nodiscard]] const Parameter* find(std::string_view name) const;

    /// Random configuration of a trial: a function of (seed, trial) only. Parameter i draws from the stream (seed,
    /// sample, trial, i), whether or not other parameters are active.
    [[nodiscard]] Configuration sample(std::uint64_t seed, base::TrialId trial) const;

    /// Number of unit-cube coordinates: one per parameter that is neither Grid nor Constant, in file order.
    [[nodiscard]] std::size_t dimensions() const { return dimensions_; }
    /// The configuration at a point of the unit cube (size == dimensions(); each in [0, 1)), with grid point
    /// `grid_point`.
    [[nodiscard]] Configuration decode(std::span<const double> unit, std::uint64_t grid_point = 0) const;
    /// The inverse for the active parameters; inactive ones get 0.5. Throws base::UsageError when a value lies outside.
    [[nodiscard]] std::vector<double> encode(const Configuration& configuration) const;

    /// Size of the cross product of all Grid domains (1 without any). Saturates at 2^63.
    [[nodiscard]] std::uint64_t grid_size() const { return grid_size_; }

  private:
    std::vector<Parameter> parameters_;
    std::vector<std::size_t> order_; ///< positions in parameters_, conditions before their dependants
    std::size_t dimensions_ = 0;
    std::uint64_t grid_size_ = 1;
};

} // namespace ranktune::space
