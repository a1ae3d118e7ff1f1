// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bayesian optimisation with a Gaussian process, prepared ahead.

#include <cstdint>
#include <memory>
#include <string_view>

#include "models/sobol.hpp"
#include "searchers/gp/gp_model.hpp"
#include "searchers/prepared.hpp"

namespace ranktune::searchers {

/// Suggestions of GpModel. While there is no model, a ticket gets a point of a scrambled Sobol sequence, and a stopgap
/// one of another sequence.
class GpSearcher final : public PreparedSearcher {
  public:
    /// As for PreparedSearcher. Throws base::UsageError for a space of more than models::Sobol::max_dimensions
    /// coordinates.
    GpSearcher(const space::SearchSpace& space, std::uint64_t seed, const GpOptions& options,
               std::shared_ptr<ComputedTickets> computed = std::make_shared<ComputedTickets>());

    [[nodiscard]] std::string_view name() const override { return "gp"; }
    /// A quarter of the groups: few, so that a suggestion knows most of what has been seen.
    [[nodiscard]] std::uint32_t prepares_ahead(std::uint32_t groups, const Observations& seen) const override {
        return has_model(seen) ? (groups + 3) / 4 : 0;
    }

  private:
    [[nodiscard]] space::Configuration stopgap(std::uint64_t place) const override;

    models::Sobol stopgaps_;
};

} // namespace ranktune::searchers
