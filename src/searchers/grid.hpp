// SPDX-License-Identifier: Apache-2.0
#pragma once
// Grid search: every configuration of a finite space, once.

#include "ranktune/searchers/stateless.hpp"
#include "ranktune/space/enumeration.hpp"

namespace ranktune::searchers {

/// Suggestion i is configuration i of the `Enumeration`: all domains crossed in file order, the last fastest; lists,
/// grids, integer ranges and quantised floats count. After the last one the search ends, however many trials the study
/// asks for (Ray Tune repeats the whole grid instead).
class GridSearcher final : public StatelessSearcher {
  public:
    /// `space` must outlive it. Throws base::UsageError naming the continuous parameters.
    explicit GridSearcher(const space::SearchSpace& space) : points_(space) {}

    [[nodiscard]] std::string_view name() const override { return "grid"; }
    [[nodiscard]] std::optional<space::Configuration> suggest(std::uint64_t index, const Observations&) const override {
        if (exhausted(index)) return std::nullopt;
        return points_.at(index);
    }
    [[nodiscard]] bool exhausted(std::uint64_t index) const override { return index >= points_.size(); }

  private:
    space::Enumeration points_;
};

} // namespace ranktune::searchers
