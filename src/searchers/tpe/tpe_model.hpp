// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tree-structured Parzen estimator over the table of observations: suggestions of the searcher `tpe`.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "models/parzen.hpp"
#include "models/sobol.hpp"
#include "ranktune/base/rng.hpp"
#include "ranktune/searchers/observations.hpp"
#include "ranktune/searchers/searcher.hpp"
#include "ranktune/space/search_space.hpp"
#include "searchers/coordinates/tried.hpp"
#include "searchers/prepared.hpp"
#include "searchers/results/largest_budget.hpp"
#include "searchers/tpe/tpe_densities.hpp"

namespace ranktune::searchers {

/// A suggestion from a table is a function of the seed, the turn and the table. What was read is kept, so that
/// a line is read once; any other table is read from its beginning. Not for several threads at a time.
///
/// - **Which results**: those at the largest iteration with `n_startup_trials` finite ones (LargestBudget); before
///   there is one, a point of a Sobol sequence. A failed trial and a value that is not finite are bad.
///   `constant_liar`: so is a trial without a result there: it runs, waits, or was stopped before; and the more of
///   them train, the fewer results are good (good_share).
/// - **The suggestion**: of `n_ei_candidates` draws from the good density the one with the largest good / bad.
/// - **Branches**: parameters that exist together under conditions. A share `branch_fraction` of the suggestions comes
///   from the densities of the trials in one branch, which is drawn as in random search, so that a branch that looks
///   worse at first is searched on. In a branch with less than `least_results` results the random point is taken.
/// - **Finite spaces**: what was tried (TriedConfigurations) is not suggested while there is another configuration.
///
/// Cost of a suggestion: O(n_ei_candidates x points x parameters), with a small factor.
class TpeModel final : public SuggestingModel {
  public:
    static constexpr std::size_t least_results = 4;

    /// Keeps a copy of the space.
    TpeModel(space::SearchSpace space, std::uint64_t seed, const TpeOptions& options);

    /// `others`: suggestions that no trial has taken yet; in a finite space none of them is suggested again.
    [[nodiscard]] Suggestion suggest(Turn turn, const Observations& seen,
                                     std::span<const space::Configuration> others) override;

  private:
    using Point = std::vector<double>; ///< a coordinate for each parameter that has one, NaN: absent
    struct Entry {
        std::uint64_t asked = 0;             ///< number of its newest point
        std::optional<std::uint64_t> number; ///< the point that the densities have
        std::optional<double> score;
    };

    struct Asked {
        std::uint64_t place = 0;
        std::span<const space::Configuration> others;
    };
    struct Pick {
        Point point; ///< empty: none
        study::SuggestionBasis basis;
    };

    void read(const Observations& seen);
    void update(base::TrialId trial, const Observations& seen);
    void set(base::TrialId trial, const Observations& seen, std::optional<std::uint64_t> number,
             std::optional<double> score);
    [[nodiscard]] Pick pick(const Asked& asked, base::RngStream& random);
    [[nodiscard]] Pick from_densities(const TpeDensities& densities, const std::string& branch, const Asked& asked,
                                      base::RngStream& random) const;
    [[nodiscard]] Pick from_branch(const Asked& asked, base::RngStream& random);
    [[nodiscard]] Pick best_candidate(std::vector<Point> candidates, const TpeDensities& densities,
                                      const Asked& asked) const;
    [[nodiscard]] Point startup(std::uint64_t place, base::RngStream& random) const;
    [[nodiscard]] Point random_point(std::uint64_t place, base::RngStream& random) const;
    /// Coordinates of what has no column get 0.5, and those that do not exist NaN.
    [[nodiscard]] Point whole(std::span<const double> columns, std::uint64_t place) const;
    [[nodiscard]] Point columns_of(std::span<const double> whole) const;
    /// The branch of a point among those of depth `level` and less; level 0: one branch.
    [[nodiscard]] std::string branch_of(std::span<const double> point, std::size_t level) const;
    [[nodiscard]] bool is_new(const Point& point, const Asked& asked) const;
    [[nodiscard]] double gamma() const {
        return good_share(options_.gamma, options_.constant_liar ? pending_.size() : 0);
    }

    space::SearchSpace space_;
    std::uint64_t seed_;
    TpeOptions options_;
    std::vector<models::ParzenColumn> columns_;
    std::vector<std::size_t> coordinate_of_; ///< of each column
    std::vector<std::size_t> depth_;         ///< of each coordinate: how many conditions lie above it
    std::size_t levels_ = 0;                 ///< largest depth
    bool uneven_ = false;                    ///< has weights or rules: first points by SearchSpace::spread
    std::optional<models::Sobol> sequence_;

    // What was read of the table.
    Observations begin_; ///< its first line
    std::size_t lines_ = 0;
    LargestBudget results_;
    std::map<base::TrialId, Entry> entries_;
    std::set<base::TrialId> running_;              ///< neither paused nor over
    std::set<base::TrialId> pending_;              ///< those of them without a result
    std::map<std::string, TpeDensities> branches_; ///< by branch_of; the whole space under its name at level 0
    TriedConfigurations tried_;
};

} // namespace ranktune::searchers
