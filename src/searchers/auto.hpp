// SPDX-License-Identifier: Apache-2.0
#pragma once
// The searcher `auto`: the Gaussian process where it learns most from few trials, TPE otherwise.

#include <cstdint>
#include <optional>

#include "ranktune/searchers/searcher.hpp"
#include "ranktune/space/search_space.hpp"
#include "searchers/gp.hpp"
#include "searchers/tpe.hpp"

namespace ranktune::searchers {

/// How many trials of a study on the space `gp` suggests: `gp_trials`, where the space has 1 to 20 parameters of
/// several values; a fifth of that with conditions, or if more than a quarter of them are lists without an order: there
/// a Gaussian process finds a good region first, but often not the best (`mixcond` of tools/bench/search.py).
[[nodiscard]] std::uint64_t gp_trials_on(const space::SearchSpace& space, std::uint64_t gp_trials);

/// A ticket is prepared by `gp` if at most so many trials had been created when the ticket was opened, and otherwise
/// by `tpe`, each with its default options. Stopgaps come from `gp` where it suggests any: those of `tpe` would repeat
/// the points that `gp` begins with.
class AutoSearcher final : public Searcher {
  public:
    /// `space` must outlive it, but not the preparations.
    AutoSearcher(const space::SearchSpace& space, std::uint64_t seed, std::uint64_t gp_trials);

    [[nodiscard]] std::string_view name() const override { return "auto"; }
    [[nodiscard]] bool learns() const override { return true; }
    [[nodiscard]] std::optional<space::Configuration> suggest(std::uint64_t index,
                                                              const Observations& seen) const override {
        return gp_ ? gp_->suggest(index, seen) : tpe_.suggest(index, seen);
    }
    [[nodiscard]] std::uint32_t prepares_ahead(std::uint32_t groups) const override {
        return gp_ ? gp_->prepares_ahead(groups) : tpe_.prepares_ahead(groups);
    }
    [[nodiscard]] Preparation prepare(std::uint64_t ticket, Observations seen) const override;

    void apply(const study::Record& record) override;
    void snapshot(study::Encoder& out) const override;
    void restore(study::Decoder& in) override;

  private:
    TpeSearcher tpe_;
    std::optional<GpSearcher> gp_; ///< nullopt: suggests nothing on this space
    std::uint64_t gp_trials_;
};

} // namespace ranktune::searchers
