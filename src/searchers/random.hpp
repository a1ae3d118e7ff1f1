// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random search: every suggestion is an independent sample of the space.

#include "ranktune/searchers/stateless.hpp"

namespace ranktune::searchers {

/// Independent samples (`SearchSpace::sample`), a function of (seed, trial). Never exhausted. With `grid(...)` in the
/// space, suggestion i has grid point i modulo the size of the grid.
class RandomSearcher final : public StatelessSearcher {
  public:
    /// `space` must outlive it.
    RandomSearcher(const space::SearchSpace& space, std::uint64_t seed) : space_(space), seed_(seed) {}

    [[nodiscard]] std::string_view name() const override { return "random"; }
    [[nodiscard]] std::optional<space::Configuration> suggest(std::uint64_t index, const Observations&) const override {
        return space_.sample(seed_, base::TrialId{static_cast<std::uint32_t>(index)});
    }

  private:
    const space::SearchSpace& space_;
    std::uint64_t seed_;
};

} // namespace ranktune::searchers
