// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bayesian optimisation with a Gaussian process, prepared ahead.

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "models/sobol.hpp"
#include "ranktune/searchers/searcher.hpp"
#include "searchers/coordinates/tried.hpp"
#include "searchers/gp/gp_model.hpp"
#include "searchers/results/startup.hpp"
#include "searchers/suggested_tickets.hpp"

namespace ranktune::searchers {

/// Suggestions of GpModel, prepared ahead. While there is no model, a ticket gets a point of a scrambled Sobol
/// sequence, and a stopgap one of another sequence.
///
/// Its state are the tickets that no trial has taken, with those that were open when each was opened: a prepared
/// suggestion keeps away from the earlier ones, also after a restart.
class GpSearcher final : public Searcher {
  public:
    /// `space` must outlive it, but not the preparations. `computed`: shared by searchers that suggest for one study.
    /// Throws base::UsageError for a space of more than models::Sobol::max_dimensions coordinates.
    GpSearcher(const space::SearchSpace& space, std::uint64_t seed, const GpOptions& options,
               std::shared_ptr<ComputedTickets> computed = std::make_shared<ComputedTickets>());

    [[nodiscard]] std::string_view name() const override { return "gp"; }
    [[nodiscard]] bool learns() const override { return true; }
    [[nodiscard]] std::optional<space::Configuration> suggest(std::uint64_t index,
                                                              const Observations& seen) const override;
    [[nodiscard]] study::SuggestionBasis basis(std::uint64_t /*index*/, const Observations& seen) const override {
        return startup_.basis(seen);
    }
    /// A quarter of the groups: few, so that a suggestion knows most of what has been seen.
    [[nodiscard]] std::uint32_t prepares_ahead(std::uint32_t groups, const Observations& seen) const override {
        return startup_.is_over(seen) ? (groups + 3) / 4 : 0;
    }
    [[nodiscard]] Preparation prepare(std::uint64_t ticket, Observations seen) const override;
    void apply(const study::Record& record) override;
    void snapshot(study::Encoder& out) const override;
    void restore(study::Decoder& in) override;

  private:
    /// What preparations share; they run one at a time.
    struct Shared;

    const space::SearchSpace& space_;
    models::Sobol stopgaps_;
    std::shared_ptr<Shared> shared_;
    SuggestedTickets tickets_;
    mutable TriedConfigurations tried_; ///< for stopgaps; follows from the table
    std::uint64_t seed_;
    mutable Startup startup_; ///< follows from the table
};

} // namespace ranktune::searchers
