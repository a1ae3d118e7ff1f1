// SPDX-License-Identifier: Apache-2.0
#pragma once
// All configurations of a finite search space, in a fixed order, each reachable by its number: grid search.

#include <cstdint>
#include <optional>
#include <vector>

#include "ranktune/space/search_space.hpp"

namespace ranktune::space {

/// The cross product of all domains in file order, the last parameter fastest. Values of lists come in their order, of
/// integers and quantised floats ascending. With conditions, configurations that differ in absent parameters only are
/// listed once; those that break a rule are left out.
///
///   a in [1, 2], b in ['x', 'y']  ->  {1, x} {1, y} {2, x} {2, y}
class Enumeration {
  public:
    /// The largest cross product allowed for a space with conditions or rules: the constructor visits every point.
    static constexpr std::uint64_t most_points_with_conditions = std::uint64_t{1} << 18;

    /// Throws base::UsageError naming every continuous parameter (uniform, loguniform, randn, qrandn: give them a
    /// quantum, a list or a grid), or for a space with conditions or rules that has too many points. Keeps a
    /// copy of the space.
    explicit Enumeration(const SearchSpace& space);

    /// Number of configurations. Saturates at 2^63.
    [[nodiscard]] std::uint64_t size() const { return size_; }
    /// Requires index < size().
    [[nodiscard]] Configuration at(std::uint64_t index) const;
    /// Its number; nullopt: it has a value that the enumeration does not have.
    [[nodiscard]] std::optional<std::uint64_t> find(const Configuration& configuration) const;

  private:
    /// Position of each parameter in its domain at a point of the cross product.
    [[nodiscard]] std::vector<std::uint64_t> positions(std::uint64_t point) const;
    /// Collects the points at which every absent parameter is at its first position: one for each configuration.
    void collect_distinct();

    SearchSpace space_;
    std::vector<std::uint64_t> counts_; ///< values of each parameter
    std::uint64_t size_ = 1;
    std::vector<std::uint64_t> distinct_; ///< empty: every point of the cross product is a configuration of its own
};

} // namespace ranktune::space
