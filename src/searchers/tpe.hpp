// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tree-structured Parzen estimator.

#include <memory>

#include "models/sobol.hpp"
#include "ranktune/searchers/stateless.hpp"
#include "searchers/coordinates/tried.hpp"
#include "searchers/results/startup.hpp"
#include "searchers/suggested_tickets.hpp"
#include "searchers/tpe/tpe_model.hpp"

namespace ranktune::searchers {

/// Suggestions of TpeModel, prepared ahead. A stopgap is a point of a Sobol sequence. Its state, in a finite space: the
/// tickets that no trial has taken, so that no suggestion comes twice.
class TpeSearcher final : public Searcher {
  public:
    /// `space` must outlive it, but not the preparations. `computed`: shared by searchers that suggest for one study.
    TpeSearcher(const space::SearchSpace& space, std::uint64_t seed, const TpeOptions& options,
                std::shared_ptr<ComputedTickets> computed = std::make_shared<ComputedTickets>());

    [[nodiscard]] std::string_view name() const override { return "tpe"; }
    [[nodiscard]] bool learns() const override { return true; }
    [[nodiscard]] std::optional<space::Configuration> suggest(std::uint64_t index,
                                                              const Observations& seen) const override;
    [[nodiscard]] study::SuggestionBasis basis(std::uint64_t /*index*/, const Observations& seen) const override {
        return startup_.basis(seen);
    }
    /// An eighth of the groups, so that a suggestion knows most of what has been seen: a few are enough, since it takes
    /// a thread about a millisecond to make another one.
    [[nodiscard]] std::uint32_t prepares_ahead(std::uint32_t groups, const Observations& seen) const override;
    [[nodiscard]] Preparation prepare(std::uint64_t ticket, Observations seen) const override;
    void apply(const study::Record& record) override;
    void snapshot(study::Encoder& out) const override;
    void restore(study::Decoder& in) override;

  private:
    /// What preparations share; they run one at a time.
    struct Shared;

    const space::SearchSpace& space_;
    std::uint64_t seed_;
    std::optional<models::Sobol> sequence_;
    std::shared_ptr<Shared> shared_;
    SuggestedTickets tickets_;
    mutable TriedConfigurations tried_; ///< for stopgaps; follows from the table
    mutable Startup startup_;           ///< the same
};

} // namespace ranktune::searchers
