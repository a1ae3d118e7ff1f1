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

/// Whether a Gaussian process suits the space: no conditions, 1 to 20 parameters of several values, and at most a
/// quarter of them lists of several values without an order.
[[nodiscard]] bool suits_gp(const space::SearchSpace& space);

/// A ticket is prepared by `gp` if the space suits it and at most `gp_trials` trials had been created when the ticket
/// was opened, and otherwise by `tpe`. Both begin with points of a Sobol sequence, until max(10, 2 d) results are
/// there, where d counts the coordinates of the space. Stopgaps come from `gp` if the space
/// suits it, otherwise from `tpe`: those of `tpe` would repeat the points that `gp` begins with.
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
    std::optional<GpSearcher> gp_; ///< nullopt: does not suit the space
    std::uint64_t gp_trials_;
};

} // namespace ranktune::searchers
