// SPDX-License-Identifier: Apache-2.0
#pragma once
// Grid search: every configuration of a finite space, once.

#include "ranktune/space/enumeration.hpp"
#include "searchers/stateless.hpp"

namespace ranktune::searchers {

/// Trial i takes configuration i of the `Enumeration`: all domains crossed in file order, the last fastest; lists,
/// grids, integer ranges and quantised floats count. After the last one the search is over, however many trials the
/// study asks for (Ray Tune repeats its whole grid instead).
class GridSearcher final : public StatelessSearcher {
  public:
    /// `space` must outlive it. Throws base::UsageError naming the continuous parameters.
    explicit GridSearcher(const space::SearchSpace& space) : points_(space) {}

    [[nodiscard]] std::string_view name() const override { return "grid"; }
    [[nodiscard]] std::optional<space::Configuration> suggest(base::TrialId trial) const override {
        if (exhausted(trial)) return std::nullopt;
        return points_.at(trial.value());
    }
    [[nodiscard]] bool exhausted(base::TrialId trial) const override { return trial.value() >= points_.size(); }

  private:
    space::Enumeration points_;
};

} // namespace ranktune::searchers
