// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which configurations of a finite space trials have had, so that none need come twice.

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "ranktune/base/rng.hpp"
#include "ranktune/searchers/searcher.hpp"
#include "ranktune/space/enumeration.hpp"
#include "ranktune/space/search_space.hpp"
#include "ranktune/study/algorithm.hpp"

namespace ranktune::searchers {

/// Whether all domains have finitely many values: lists, grids, integers, quantised ranges, constants.
[[nodiscard]] bool is_finite(const space::SearchSpace& space);

/// The rule of all searchers that avoid duplicates: a configuration that a trial of this study has had (one that runs,
/// failed, or came from elsewhere, too) is not suggested while there is another one. Those of earlier studies
/// (searcher.warm_start) do not count: this study has no trained model of them. In a space that is not finite,
/// duplicates are no accident only where a searcher looks for an optimum, which may lie in a corner: then
/// `of_any_space`.
///
/// Follows a table of observations, of which it reads a line once; any other table it reads from its beginning. What it
/// answers is a function of the table. Keeps a copy of the space.
class TriedConfigurations {
  public:
    explicit TriedConfigurations(const space::SearchSpace& space, bool of_any_space = false);

    /// Whether duplicates are to be expected of any searcher.
    [[nodiscard]] bool is_needed() const { return finite_; }
    void read(const Observations& seen);
    [[nodiscard]] bool has(const space::Configuration& configuration) const;
    /// `wish`, or if it was tried, or is in `others`, another one: if possible of the same grid point, the first from a
    /// random place on. In a space that is not small a few random ones are tried. Gives `wish` where there is no other.
    [[nodiscard]] space::Configuration or_another(space::Configuration wish, base::RngStream& random,
                                                  std::span<const space::Configuration> others = {}) const;

  private:
    [[nodiscard]] std::vector<double> key_of(std::vector<double> coordinates, std::uint64_t grid_point) const;
    [[nodiscard]] std::optional<space::Configuration> free_one(std::uint64_t grid_point, base::RngStream& random,
                                                               std::span<const space::Configuration> others) const;

    [[nodiscard]] std::uint64_t grid_point_of(std::uint64_t number) const {
        return grid_points_.empty() ? 0 : grid_points_[number];
    }

    space::SearchSpace space_;
    bool finite_;
    bool reads_;                             ///< the space is finite, or `of_any_space`
    std::optional<space::Enumeration> all_;  ///< of a small finite space
    std::vector<bool> taken_;                ///< of each configuration of `all_`
    std::vector<std::uint16_t> grid_points_; ///< too; empty: there is one
    Observations begin_;                     ///< first line of the table
    std::uint64_t points_ = 0;
    std::set<std::vector<double>>
        known_; ///< of a space that is not small: coordinates, absent ones as -1, and the grid point
};

/// For TriedConfigurations::or_another, of suggestion `index` that nobody prepares.
[[nodiscard]] base::RngStream draws_for_another(std::uint64_t seed, std::uint64_t index);

/// The option `avoid_duplicates`.
[[nodiscard]] study::AlgorithmOption avoid_duplicates_option();

/// With `avoid_duplicates` and a finite space, a searcher that takes another configuration instead of one that was
/// tried, as long as there is one; otherwise `searcher` itself. For searchers that prepare nothing ahead. `spec` must
/// outlive it.
[[nodiscard]] std::unique_ptr<Searcher> without_duplicates(std::unique_ptr<Searcher> searcher,
                                                           const study::StudySpec& spec);

} // namespace ranktune::searchers
