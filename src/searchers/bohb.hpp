// SPDX-License-Identifier: Apache-2.0
#pragma once
// BOHB's model: kernel densities of good and of bad configurations, at the largest iteration with enough results.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ranktune/base/rng.hpp"
#include "searchers/prepared.hpp"
#include "searchers/results/largest_budget.hpp"

namespace ranktune::searchers {

/// How many of the best points make the density of good ones, and how many of the next that of bad ones.
struct GoodAndBad {
    std::size_t good = 0;
    std::size_t bad = 0;
    friend bool operator==(const GoodAndBad&, const GoodAndBad&) = default;
};

/// How many of `points`, of which `finite` have a finite score, are good and bad: max(m, floor(N p / 100)) and
/// max(m, floor(N (100 - p) / 100)), of what is left, with m = `min_points` and p = `top_n_percent`; but no more than
/// max(m, finite) are good. nullopt: too few for a model: fewer than m are finite, or one of the densities would have
/// no more points than `dimensions`.
[[nodiscard]] std::optional<GoodAndBad> split(std::size_t points, std::size_t finite, std::size_t min_points,
                                              std::size_t dimensions, std::uint32_t top_n_percent);

/// Replaces what is absent (NaN) in the rows, as HpBandSter does: a row takes all it lacks from a random row that has
/// the first of it; where no row has it, a uniform random value. `levels` as for models::KernelDensity.
void impute(std::vector<double>& rows, std::span<const std::uint32_t> levels, base::RngStream& random);

/// The searcher of BOHB (Falkner, Klein and Hutter, "BOHB: robust and efficient hyperparameter optimization at scale",
/// ICML 2018, algorithm 2), with the details and defaults of HpBandSter. Any scheduler: HyperBand makes it BOHB.
///
/// A suggestion is random with probability `random_fraction`, or while there is no model: then it is that of random
/// search with this seed. Otherwise `num_samples` points are drawn near good points, and the one with the largest
/// quotient of the densities of good and of bad points, each at least 1e-32, is suggested.
///
/// Cost: O(num_samples x points x dimensions), and O(log points) for each line of the table.
class BohbModel final : public SuggestingModel {
  public:
    struct Options {
        std::size_t min_points_in_model = 0; ///< at least dimensions + 1 are taken
        std::uint32_t top_n_percent = 15;
        std::uint32_t num_samples = 64;
        double random_fraction = 1.0 / 3.0;
        double bandwidth_factor = 3.0;
        double min_bandwidth = 1e-3;
        bool avoid_duplicates = false;
    };
    /// Keeps a copy of the space.
    BohbModel(space::SearchSpace space, std::uint64_t seed, const Options& options);

    [[nodiscard]] Suggestion suggest(Turn turn, const Observations& seen,
                                     std::span<const space::Configuration> others) override;

  private:
    struct Drawn {
        std::vector<double> point; ///< of the unit cube; empty: a random configuration is suggested
        study::SuggestionBasis basis;
    };
    [[nodiscard]] Drawn drawn(const Observations& seen, base::RngStream& random);
    /// Rows of a density: categories as numbers of their levels.
    [[nodiscard]] std::vector<double> rows(std::span<const LargestBudget::Point> points, const Observations& seen,
                                           base::RngStream& random) const;

    space::SearchSpace space_;
    std::uint64_t seed_;
    Options options_;
    std::vector<std::uint32_t> levels_; ///< of each coordinate; 0: a number
    LargestBudget results_;
    TriedConfigurations tried_;
};

/// Suggestions of BohbModel. A stopgap is that of random search.
class BohbSearcher final : public PreparedSearcher {
  public:
    /// As for PreparedSearcher.
    BohbSearcher(const space::SearchSpace& space, std::uint64_t seed, const BohbModel::Options& options);

    [[nodiscard]] std::string_view name() const override { return "bohb"; }

  private:
    [[nodiscard]] space::Configuration stopgap(std::uint64_t place) const override;
};

} // namespace ranktune::searchers
