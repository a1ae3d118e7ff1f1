// SPDX-License-Identifier: Apache-2.0
#pragma once
// The two densities of the tree-structured Parzen estimator: of good and of bad configurations.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "models/parzen.hpp"
#include "ranktune/base/ids.hpp"
#include "ranktune/searchers/observations.hpp"
#include "ranktune/study/objective.hpp"

namespace ranktune::searchers {

/// Options of the searcher `tpe`; `describe_tpe` has the words for users.
struct TpeOptions {
    std::uint32_t n_startup_trials = 10;
    std::uint32_t n_ei_candidates = 24;
    double gamma = 0.1;
    double prior_weight = 1.0;
    bool multivariate = true;
    bool constant_liar = true;
    double branch_fraction = 0.5;
};

/// How many of `results` finite results are good: ceil(gamma results), at most 25; at least 1 if there are any.
[[nodiscard]] std::size_t good_results(std::size_t results, double gamma);

/// The share of good results while `pending` trials have none yet: gamma / sqrt(1 + (pending - 1) / 5). With many
/// trials at a time, so many suggestions come from the same results that the weaker good ones would hold them up;
/// measured in docs/developer/decisions.md.
[[nodiscard]] double good_share(double gamma, std::size_t pending);

/// Trials with their points, of which the best are good and all others bad. Follows changes; a function of what it
/// holds.
class TpeDensities {
  public:
    /// `columns` of a point; must outlive it. `multivariate`: one density over all columns, otherwise one for each.
    TpeDensities(std::span<const models::ParzenColumn> columns, const TpeOptions& options);

    /// Adds a trial, or gives it another score. nullopt: it has none yet and counts as bad. Its point may not change.
    void put(base::TrialId trial, std::span<const double> point, std::optional<double> score);
    void remove(base::TrialId trial);
    /// Divides the trials, good_results(results(), gamma) of them good, and settles the densities. To be called after
    /// changes, before the questions below.
    void settle(double gamma);

    /// Trials with a finite score.
    [[nodiscard]] std::size_t results() const { return ranking_.size(); }
    [[nodiscard]] bool empty() const { return members_.empty(); }
    /// The best trials, in the order of their numbers.
    [[nodiscard]] const std::vector<base::TrialId>& good() const { return good_; }

    /// A point near good ones.
    [[nodiscard]] std::vector<double> draw(base::RngStream& random) const;
    /// For independent densities: each coordinate is the best of `candidates` draws.
    [[nodiscard]] std::vector<double> draw_best(std::uint32_t candidates, base::RngStream& random) const;
    /// log(good / bad) of points, one after the other.
    [[nodiscard]] std::vector<double> gains(std::span<const double> points) const;

  private:
    struct Member {
        std::vector<double> point;
        std::optional<double> score;
    };
    /// Columns with a joint density.
    struct Group {
        std::size_t begin = 0;
        std::size_t size = 0;
        models::ParzenEstimator good;
        models::ParzenEstimator bad;
    };
    struct Better {
        bool operator()(const study::Ranked& a, const study::Ranked& b) const { return study::better(a, b); }
    };
    void enter(base::TrialId trial, const Member& member, bool good);
    void leave(base::TrialId trial, const Member& member, bool good);
    [[nodiscard]] bool is_good(base::TrialId trial) const;

    std::vector<Group> groups_;
    std::map<base::TrialId, Member> members_;
    std::set<study::Ranked, Better> ranking_; ///< finite scores
    std::vector<base::TrialId> good_;         ///< ascending
};

} // namespace ranktune::searchers
