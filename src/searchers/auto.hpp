// SPDX-License-Identifier: Apache-2.0
#pragma once
// The searcher `auto`: the Gaussian process where it learns most from few trials, TPE otherwise, or both in turns.

#include <cstdint>
#include <memory>
#include <optional>

#include "ranktune/searchers/searcher.hpp"
#include "ranktune/space/search_space.hpp"
#include "searchers/gp.hpp"
#include "searchers/nsga2.hpp"
#include "searchers/tpe.hpp"

namespace ranktune::searchers {

/// Who suggests the first trials of a study.
enum class Beginner {
    tpe,   ///< more than 200 parameters of several values, or none
    turns, ///< parameters with conditions, more than a quarter are lists without an order, or all have at most 16
           ///< values: there a Gaussian process finds the optimum of a region quickly, but seldom another region, and
           ///< TPE the other way round; or more than 60 parameters, with at least a quarter as many results: in so
           ///< wide a space a Gaussian process learns less than TPE from fewer
    gp,
};
[[nodiscard]] Beginner beginner_on(const space::SearchSpace& space);

/// A ticket is prepared by `gp` if at most `gp_trials` trials had been created when the ticket was opened, and
/// otherwise by `tpe`, each with its default options; in turns, the even tickets are those of `tpe`. Each keeps away
/// from what the other one has suggested. Stopgaps come from `gp` where it suggests any: those of `tpe` would repeat
/// the points that `gp` begins with.
///
/// With several objectives it is `gp` for as many trials, in any space of at most 200 parameters, and then `nsga2`,
/// which prepares nothing ahead.
class AutoSearcher final : public Searcher {
  public:
    /// `space` must outlive it, but not the preparations.
    AutoSearcher(const space::SearchSpace& space, std::uint64_t seed, std::uint64_t gp_trials,
                 std::size_t objectives = 1);

    [[nodiscard]] std::string_view name() const override { return "auto"; }
    [[nodiscard]] bool learns() const override { return true; }
    [[nodiscard]] std::optional<space::Configuration> suggest(std::uint64_t index,
                                                              const Observations& seen) const override;
    [[nodiscard]] study::SuggestionBasis basis(std::uint64_t index, const Observations& seen) const override;
    [[nodiscard]] std::uint32_t prepares_ahead(std::uint32_t groups, const Observations& seen) const override;
    [[nodiscard]] bool takes_stopgaps() const override { return tpe_.takes_stopgaps(); }
    [[nodiscard]] Preparation prepare(std::uint64_t ticket, Observations seen) const override;

    void apply(const study::Record& record) override;
    void snapshot(study::Encoder& out) const override;
    void restore(study::Decoder& in) override;

  private:
    /// nsga2's turn has come.
    [[nodiscard]] bool is_over(const Observations& seen) const {
        return front_ && (!gp_ || seen.points() > gp_trials_);
    }

    /// nsga2's number of suggestion `index`. Its first ones are random, but where gp began, its trials are the
    /// population.
    [[nodiscard]] std::uint64_t of_front(std::uint64_t index) const { return gp_ ? index + gp_trials_ : index; }

    std::shared_ptr<ComputedTickets> computed_ = std::make_shared<ComputedTickets>(); ///< by both
    TpeSearcher tpe_;
    std::optional<GpSearcher> gp_;       ///< nullopt: suggests nothing on this space
    std::optional<Nsga2Searcher> front_; ///< with several objectives
    std::uint64_t gp_from_;              ///< results without which gp takes no turn
    std::uint64_t gp_trials_;
    Beginner beginner_;
};

} // namespace ranktune::searchers
