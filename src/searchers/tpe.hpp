// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tree-structured Parzen estimator.

#include <memory>

#include "models/sobol.hpp"
#include "searchers/prepared.hpp"
#include "searchers/tpe/tpe_model.hpp"

namespace ranktune::searchers {

/// Suggestions of TpeModel. A stopgap is a point of a Sobol sequence.
class TpeSearcher final : public PreparedSearcher {
  public:
    /// As for PreparedSearcher.
    TpeSearcher(const space::SearchSpace& space, std::uint64_t seed, const TpeOptions& options,
                std::shared_ptr<ComputedTickets> computed = std::make_shared<ComputedTickets>());

    [[nodiscard]] std::string_view name() const override { return "tpe"; }

  private:
    [[nodiscard]] space::Configuration stopgap(std::uint64_t place) const override;

    std::optional<models::Sobol> sequence_;
};

} // namespace ranktune::searchers
