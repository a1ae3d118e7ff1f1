// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which configurations of a finite space trials have had, so that none need come twice.

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "ranktune/base/rng.hpp"
#include "ranktune/searchers/searcher.hpp"
#include "ranktune/space/search_space.hpp"
#include "ranktune/study/algorithm.hpp"

namespace ranktune::searchers {

/// Whether all domains have finitely many values, and none is a grid.
[[nodiscard]] bool is_finite(const space::SearchSpace& space);

/// The configurations in a table of observations of a finite space; all calls have the same space. Reads a line once,
/// any other table from its beginning.
class TriedConfigurations {
  public:
    void read(const Observations& seen);
    [[nodiscard]] bool has(const space::SearchSpace& space, const space::Configuration& configuration) const;
    /// One that was not tried: the first from a random place on, in the order of the space. nullopt: all were tried,
    /// or the space has more than 65,536 configurations.
    [[nodiscard]] std::optional<space::Configuration> another(const space::SearchSpace& space,
                                                              base::RngStream& random) const;

  private:
    Observations begin_; ///< first line of the table
    std::uint64_t points_ = 0;
    std::set<std::vector<double>> known_; ///< coordinates, absent ones as -1
};

/// The option `avoid_duplicates`.
[[nodiscard]] study::AlgorithmOption avoid_duplicates_option();

/// With `avoid_duplicates` and a finite space, a searcher that takes another configuration instead of one that was
/// tried, as long as there is one; otherwise `searcher` itself. For searchers that prepare nothing ahead and do not
/// remember what they suggested. `spec` must outlive it.
[[nodiscard]] std::unique_ptr<Searcher> without_duplicates(std::unique_ptr<Searcher> searcher,
                                                           const study::StudySpec& spec);

} // namespace ranktune::searchers
