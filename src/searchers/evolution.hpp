// SPDX-License-Identifier: Apache-2.0
#pragma once
// Regularised evolution: children of the best of a sample of the newest results.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ranktune/base/rng.hpp"
#include "ranktune/searchers/stateless.hpp"
#include "searchers/coordinates/axes.hpp"
#include "searchers/results/first_results.hpp"
#include "searchers/results/reading.hpp"

namespace ranktune::searchers {

/// Regularised, or aging, evolution (Real, Aggarwal, Huang and Le, "Regularized evolution for image classifier
/// architecture search", AAAI 2019, algorithm 1), asynchronous: the population is the newest `population` results
/// (FirstResults), however good they are. A suggestion draws `sample` of them with replacement, and changes one
/// parameter of the best. The first `population` suggestions, and those made while no result is finite, are random.
///
/// The change: a category gets another of its values; a number moves by a normal step of `step` times its range,
/// reflected at the ends and doubled until the value differs. A parameter whose condition begins to hold gets a random
/// value. Only parameters that the parent has, with more than one value, change. Any space.
///
/// A function of the table, the seed and the index. Cost: O(sample + dimensions) for a suggestion, O(1) for a line of
/// the table. Not for several threads at a time.
class EvolutionSearcher final : public StatelessSearcher {
  public:
    struct Options {
        std::size_t population = 20;
        std::size_t sample = 10;
        double step = 0.1;
    };
    /// `space` must outlive it.
    EvolutionSearcher(const space::SearchSpace& space, std::uint64_t seed, const Options& options)
        : space_(space), seed_(seed), options_(options), axes_(axes_of(space)) {}

    [[nodiscard]] std::string_view name() const override { return "evolution"; }
    [[nodiscard]] bool learns() const override { return true; }
    [[nodiscard]] std::optional<space::Configuration> suggest(std::uint64_t index,
                                                              const Observations& seen) const override;
    [[nodiscard]] study::SuggestionBasis basis(std::uint64_t index, const Observations& seen) const override;

  private:
    void follow(const Observations& seen) const;
    /// The parent of suggestion `index`; nullptr: it is random.
    [[nodiscard]] const FirstResults::Result* parent_of(std::uint64_t index, const Observations& seen,
                                                        base::RngStream& random) const;
    /// The result that wins the tournament; nullptr: none is finite.
    [[nodiscard]] const FirstResults::Result* parent(base::RngStream& random) const;

    const space::SearchSpace& space_;
    std::uint64_t seed_;
    Options options_;
    std::vector<Axis> axes_;
    mutable Reading reading_;
    mutable FirstResults results_;
    mutable std::vector<FirstResults::Result> population_; ///< a ring
    mutable std::size_t count_ = 0;                        ///< results so far
};

} // namespace ranktune::searchers
