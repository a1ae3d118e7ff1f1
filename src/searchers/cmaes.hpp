// SPDX-License-Identifier: Apache-2.0
#pragma once
// CMA-ES with margin and restarts, for trials that end in any order.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "models/cmaes.hpp"
#include "ranktune/searchers/searcher.hpp"
#include "ranktune/space/search_space.hpp"
#include "searchers/results/first_results.hpp"
#include "searchers/results/reading.hpp"

namespace ranktune::searchers {

/// CMA-ES (models::CmaEs) over the coordinates of a space that have more than one value. No parameter may be a category
/// or have a condition (`only_numbers`).
///
/// - A suggestion is a sample of the present distribution. As soon as `population` results have come in, of whatever
/// trials,
///   they are a generation, and the distribution moves. Nothing waits: trials that run, or never end, are missing in no
///   generation. The result of a trial is that of FirstResults.
/// - A result of an older generation, or of a point from elsewhere (a starting point, a user), is told as an injected
/// point.
/// - When samples of a distribution no longer find anything better, another one begins at a random mean, with twice the
///   population (IPOP: Auger and Hansen, "A restart CMA evolution strategy with increasing population size", CEC 2005).
///   Results of samples of the earlier one do not count for it.
///
/// A function of the table, the seed, and which trial took which suggestion: the last is its state, one number for each
/// trial. The distribution follows from reading the table in order. Cost: O(d^2) for a suggestion and O(d^3) for a
/// generation. Not for several threads at a time.
class CmaEsSearcher final : public Searcher {
  public:
    struct Options {
        std::size_t population = 0; ///< 0: 4 + floor(3 ln d)
        double sigma = 1.0 / 6.0;   ///< of the first distribution of each start
        bool restarts = true;
        bool avoid_duplicates = false; ///< a trial may have another configuration than the suggestion that it took
    };
    /// `space` must outlive it.
    CmaEsSearcher(const space::SearchSpace& space, std::uint64_t seed, const Options& options);

    [[nodiscard]] std::string_view name() const override { return "cmaes"; }
    [[nodiscard]] bool learns() const override { return true; }
    [[nodiscard]] std::optional<space::Configuration> suggest(std::uint64_t index,
                                                              const Observations& seen) const override;
    [[nodiscard]] study::SuggestionBasis basis(std::uint64_t index, const Observations& seen) const override;
    void apply(const study::Record& record) override;
    void snapshot(study::Encoder& out) const override;
    void restore(study::Decoder& in) override;

  private:
    /// What follows from the lines that were read.
    struct Run {
        struct Asked {
            std::vector<double> raw; ///< empty: a point from elsewhere
            std::size_t start = 0;
            std::size_t generation = 0;
        };
        FirstResults results;
        std::optional<models::CmaEs> distribution;
        std::size_t starts = 0;
        std::vector<Asked> asked;                    ///< of each trial; emptied when it has its result
        std::vector<models::CmaEsResult> generation; ///< so far
    };
    /// Reads the lines that have come.
    void follow(const Observations& seen) const;
    void read(const Observation& line, const Observations& seen) const;
    /// Requires active coordinates.
    [[nodiscard]] space::Configuration configuration_of(const std::vector<double>& raw, std::uint64_t index) const;
    void tell(const FirstResults::Result& result, const Observations& seen) const;
    [[nodiscard]] std::vector<double> earlier_mean(const Observations& seen) const;
    void start(std::vector<double> mean) const;
    [[nodiscard]] std::vector<double> sample(std::uint64_t index) const;

    const space::SearchSpace& space_;
    std::uint64_t seed_;
    Options options_;
    std::vector<std::size_t> active_;         ///< coordinates with more than one value
    std::vector<std::vector<double>> limits_; ///< of these
    std::vector<std::uint64_t> taken_;        ///< by each trial: number of the suggestion + 1; 0: none
    mutable Reading reading_;
    mutable Run run_;
};

} // namespace ranktune::searchers
