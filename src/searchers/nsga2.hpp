// SPDX-License-Identifier: Apache-2.0
#pragma once
// NSGA-II: children of results that few others beat, for studies with several objectives.

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

/// NSGA-II (Deb, Pratap, Agarwal and Meyarivan, "A fast and elitist multiobjective genetic algorithm: NSGA-II", IEEE
/// TEVC 6, 2002), without generations, so that trials may end in any order: each result (FirstResults) joins the
/// population at once, and the worst of population + 1 leaves it (Durillo, Nebro, Luna and Alba, "On the effect of the
/// steady-state selection scheme in multi-objective genetic algorithms", EMO 2009). Better is the smaller non-dominated
/// rank, then the larger crowding distance; a smaller violation of constraints comes before both.
///
/// Each parent of a suggestion is the better of two members drawn at random. With probability `crossover` their numbers
/// are crossed (variation.hpp), half of them on average, and categories are taken from either; otherwise the child has
/// the values of one of them. A parameter that one parent lacks is the other's. Then each parameter changes with
/// probability `mutation`: a number by polynomial mutation, or to a neighbouring value where that would change nothing;
/// a category to another value. A child that equals one of its parents gets one more change. A parameter whose
/// condition begins to hold gets a random value. The first `population` suggestions, and those made while fewer than
/// two results are valid, are random. Any space.
///
/// The defaults are for hundreds of results: a small population, and larger steps than those of the paper, which had
/// 25,000.
///
/// A function of the table, the seed and the index. Cost: O(population^2) at worst for a result, O(dimensions) for a
/// suggestion. Not for several threads at a time.
class Nsga2Searcher final : public StatelessSearcher {
  public:
    struct Options {
        std::size_t population = 20; ///< >= 2
        double crossover = 0.9;
        double crossover_index = 5.0;
        double mutation = 0.0; ///< 0: 2 / the number of parameters that can change
        double mutation_index = 5.0;
    };
    /// `space` must outlive it.
    Nsga2Searcher(const space::SearchSpace& space, std::uint64_t seed, const Options& options)
        : space_(space), seed_(seed), options_(options), axes_(axes_of(space)) {}

    [[nodiscard]] std::string_view name() const override { return "nsga2"; }
    [[nodiscard]] bool learns() const override { return true; }
    [[nodiscard]] std::optional<space::Configuration> suggest(std::uint64_t index,
                                                              const Observations& seen) const override;
    [[nodiscard]] study::SuggestionBasis basis(std::uint64_t index, const Observations& seen) const override;

  private:
    using Result = FirstResults::Result;

    void follow(const Observations& seen) const;
    void join(const Result& result) const;
    /// There are not enough parents yet for suggestion `index`.
    [[nodiscard]] bool is_random(std::uint64_t index, const Observations& seen) const;
    /// The winner of a tournament.
    [[nodiscard]] const Result& parent(base::RngStream& random) const;
    void cross(std::vector<double>& child, const std::vector<double>& other, base::RngStream& random) const;
    /// Positions of the parameters that the child has, with more than one value.
    [[nodiscard]] std::vector<std::size_t> changeable(const std::vector<double>& child) const;
    void mutate(std::vector<double>& child, base::RngStream& random) const;
    [[nodiscard]] bool is_same(const std::vector<double>& child, const std::vector<double>& parent) const;
    /// NaN where the configuration of these coordinates lacks the parameter.
    [[nodiscard]] std::vector<double> present(std::vector<double> child, std::uint64_t index) const;
    [[nodiscard]] double changed(const Axis& axis, double unit, base::RngStream& random) const;

    const space::SearchSpace& space_;
    std::uint64_t seed_;
    Options options_;
    std::vector<Axis> axes_;
    mutable Reading reading_;
    mutable FirstResults results_;
    mutable std::vector<Result> population_; ///< best first
};

} // namespace ranktune::searchers
