// SPDX-License-Identifier: Apache-2.0
#pragma once
// Quasi-random search: configurations that cover the space more evenly than random ones.

#include "models/sobol.hpp"
#include "ranktune/searchers/stateless.hpp"

namespace ranktune::searchers {

/// Suggestion i is point i of the Sobol sequence (models::Sobol), point 0 included, so that the first 2^m trials are a
/// net: a power of two for num_trials covers the space best. One coordinate for each parameter that is neither a grid
/// nor a constant, conditional ones included. Scrambled by default; without scrambling, trial 0 is the lower corner of
/// the space. With `grid(...)` in the space, suggestion i has grid point i modulo the size of the grid.
class SobolSearcher final : public StatelessSearcher {
  public:
    /// `space` must outlive it. Throws base::UsageError for a space of more than models::Sobol::max_dimensions
    /// coordinates.
    SobolSearcher(const space::SearchSpace& space, std::uint64_t seed, bool scramble);

    [[nodiscard]] std::string_view name() const override { return "sobol"; }
    [[nodiscard]] std::optional<space::Configuration> suggest(std::uint64_t index, const Observations&) const override;

  private:
    const space::SearchSpace& space_;
    std::uint64_t seed_;
    models::Sobol sequence_;
};

} // namespace ranktune::searchers
