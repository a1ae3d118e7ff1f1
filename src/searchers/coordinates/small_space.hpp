// SPDX-License-Identifier: Apache-2.0
#pragma once
// The configurations of a small finite space by number, and which of them are free.

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ranktune/space/search_space.hpp"

namespace ranktune::searchers {

/// The cross product of the domains; the configurations of one grid point (SearchSpace::grid_point) are neighbours.
/// Numbers that make the same configuration as a lower one are never free: they differ in an absent parameter, or in
/// two equal values of a list.
class SmallSpace {
  public:
    static constexpr std::uint64_t most = std::uint64_t{1} << 16U;

    /// Whether the cross product has at most `most` points. Requires a finite space.
    [[nodiscard]] static bool is_small(const space::SearchSpace& space);

    /// All are free. Keeps a copy of the space. With conditions it visits the whole cross product: some milliseconds.
    explicit SmallSpace(const space::SearchSpace& space);

    [[nodiscard]] std::uint64_t size() const { return next_.size() - 1; }
    /// How many numbers each grid point has.
    [[nodiscard]] std::uint64_t per_grid_point() const { return size() / space_.grid_size(); }
    /// Coordinates as in a table of observations: NaN for absent parameters.
    [[nodiscard]] std::uint64_t number_of(std::span<const double> coordinates, std::uint64_t grid_point) const;
    [[nodiscard]] space::Configuration at(std::uint64_t number) const;

    [[nodiscard]] bool is_free(std::uint64_t number) const { return next_[number] == number; }
    void take(std::uint64_t number) {
        if (is_free(number)) next_[number] = static_cast<std::uint32_t>(number) + 1;
    }
    /// The first free number in [begin, end), or else in [low, begin). Requires low <= begin < end <= size(). Cost:
    /// that of finding a set in a union-find structure, which is almost O(1) on average.
    [[nodiscard]] std::optional<std::uint64_t> first_free(std::uint64_t low, std::uint64_t begin, std::uint64_t end);

  private:
    using Places = std::vector<std::pair<double, std::uint32_t>>; ///< coordinate and position of each value, sorted

    [[nodiscard]] std::vector<std::uint32_t> positions(std::uint64_t number) const;
    [[nodiscard]] std::uint32_t first_free_from(std::uint32_t number);
    void take_copies();

    space::SearchSpace space_;
    std::vector<std::size_t> order_;    ///< of the parameters: grids, then the others
    std::vector<std::uint32_t> counts_; ///< values of each parameter
    std::vector<Places> places_;        ///< of each parameter that has a coordinate
    std::vector<std::uint32_t> next_;   ///< of n: n, if it is free; otherwise n to next_[n] - 1 are taken
};

} // namespace ranktune::searchers
