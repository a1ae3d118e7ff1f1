// SPDX-License-Identifier: Apache-2.0
#pragma once
// Suggestions by expected improvement under a Gaussian process.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/gaussian_process.hpp"
#include "models/hypervolume_gain.hpp"
#include "models/power_transform.hpp"
#include "ranktune/base/rng.hpp"
#include "ranktune/searchers/observations.hpp"
#include "ranktune/searchers/searcher.hpp"
#include "ranktune/space/search_space.hpp"
#include "searchers/coordinates/axes.hpp"
#include "searchers/coordinates/tried.hpp"
#include "searchers/gp/gp_data.hpp"
#include "searchers/gp/gp_limits.hpp"
#include "searchers/suggested_tickets.hpp"

namespace ranktune::searchers {

struct GpOptions {
    std::size_t startup = 10;      ///< finite results at an iteration that make a model
    std::size_t max_results = 500; ///< that the model holds
    /// 0: one iteration. Otherwise the iteration at which a result was seen is an input, and this is the largest one.
    base::Iteration max_iterations = 0;
    std::size_t objectives = 1;
};

/// The work of the searcher `gp`: the configuration with the largest expected improvement of a Gaussian process over
/// the results at the largest iteration with enough of them (GpData).
///
/// - Coordinates are those of SearchSpace::encode with more than one value, absent ones absent (models::GpKernel).
/// - With `max_iterations` R, results at other iterations at which trials stopped count, too, and log i / log R is one
///   more coordinate, at which suggestions have that of the largest iteration with enough results (Klein et al.,
///   "Model-based asynchronous hyperparameter and neural architecture search", 2020, with a joint Matern kernel).
/// - Scores are turned into a normal shape by a power (Yeo and Johnson, Biometrika 2000), then standardised. Failed
/// trials have
///   the worst finite score.
/// - The kernel is fitted anew when the results have grown by a tenth since the last time, and stays in between, while
///   results are appended. It is fitted to at most `most_fitted` results: the best half, and the others evenly.
/// - At most `max_results` are in the process. When it is full, the next fit keeps nine tenths: the best half, and the
///   newest others.
/// - Points that are being trained count as if their predicted means had been observed: they lower the variance, and
///   may be the best result (Kriging believer; Ginsbourger et al., "Kriging is well-suited to parallelize
///   optimization", 2010).
/// - With constraints, log EI is that over the best result that keeps them, plus the logarithm of the probability that
///   the point keeps them (GpLimits); while no result keeps them, that probability alone.
/// - With several objectives there is a process for each, and instead of EI the expected increase of the volume that
///   the front of smoothed and predicted results covers (models::HypervolumeGain), above the worst values of all
///   results less a tenth of their range. (With the front's worst values, as in BoTorch, hardly anything is gained
///   beyond its ends: on ZDT1 to ZDT3 ten times as much stayed uncovered.)
/// - log EI over the best smoothed or predicted result is searched among random points and points near the best
///   results, then from the best of these by L-BFGS along numbers, and by trying all values of short lists.
/// - Neither what was tried (TriedConfigurations) nor `others` are suggested while there is another configuration:
///   where the optimum is in a corner, the best candidate is the same again and again. But where results are noisy
///   (are_noisy), the best ones are candidates, too, and may come again unless they are being trained.
///
/// A suggestion is a function of turn, table and `others`. Keeps what it computed for the last one. One at a time.
class GpModel {
  public:
    static constexpr std::size_t most_fitted = 250;
    /// With more parameters of several values a suggestion takes seconds.
    static constexpr std::size_t most_parameters = 200;

    GpModel(const space::SearchSpace& space, std::uint64_t seed, const GpOptions& options);
    // Points into its space.
    GpModel(const GpModel&) = delete;
    GpModel& operator=(const GpModel&) = delete;

    /// `others`: suggestions that no trial has taken yet. nullopt: too few results for a model.
    [[nodiscard]] std::optional<Suggestion> suggest(Turn turn, const Observations& seen,
                                                    std::span<const space::Configuration> others);
    /// The best result by the model's mean.
    struct Best {
        std::size_t line = 0; ///< of the table
        double mean = 0.0;    ///< score
        double deviation = 0.0;
        std::size_t results = 0; ///< that the model holds
        bool noisy = false;      ///< false: the highest value may be trusted
    };
    /// Of a table with one objective. nullopt: too few results for a model, or none that keeps the constraints.
    [[nodiscard]] std::optional<Best> best(const Observations& seen);
    /// After a call of `suggest` that gave none.
    [[nodiscard]] study::SuggestionBasis why_none() const;
    /// What that call has read.
    [[nodiscard]] const TriedConfigurations& tried() const { return tried_; }

  private:
    using Point = std::vector<double>; ///< of all coordinates of the space
    struct Candidate {
        Point point;
        double acquisition = 0.0;
    };
    struct Chosen {
        space::Configuration configuration;
        bool repeats = false; ///< what was tried before, because results are noisy
    };

    /// Scores of mean 0 and variance 1, for the process: standardised, transformed by a power, standardised again.
    struct Targets {
        std::vector<double> values;
        models::Standardisation of_scores;
        models::Standardisation of_powers;
    };
    /// The process of an objective.
    struct Outcome {
        GpSurface surface; ///< points with the coordinates that vary
        double power = 1.0;
        Targets targets = {}; ///< of the results in the surface
        /// The score that has this target; may be infinite, or NaN.
        [[nodiscard]] double score(double target) const;
    };

    void fit(const Observations& seen);
    void learn(const Observations& seen, std::span<const space::Configuration> others);
    /// Smoothed targets of results that keep the constraints, and where they are.
    [[nodiscard]] std::vector<Point> take_best(const Observations& seen, std::span<const GpData::Result> held);
    /// Means of what is going to be found anyway.
    [[nodiscard]] std::vector<Point> expected_of(std::span<const Point> trained) const;
    [[nodiscard]] models::HypervolumeGain gain_over(std::vector<Point> found, std::span<const Point> expected) const;
    /// In one of the objectives.
    [[nodiscard]] bool is_noisy(const Observations& seen, std::span<const GpData::Result> held) const;
    /// Those of the results whose distances from the constraints are known.
    [[nodiscard]] GpLimits::Results limited(const Observations& seen, std::span<const GpData::Result> results) const;
    /// Of objective `k`; larger is better.
    [[nodiscard]] static std::vector<double> scores(const Observations& seen, std::span<const GpData::Result> results,
                                                    std::size_t k);
    [[nodiscard]] static Targets targets(std::vector<double> scores, double power);
    /// As in a table of observations.
    [[nodiscard]] Point coordinates(const space::Configuration& configuration) const;
    /// Only the coordinates that vary, at an iteration.
    [[nodiscard]] std::vector<double> varying(const Point& point, base::Iteration at) const;
    /// At the iteration of suggestions.
    [[nodiscard]] std::vector<double> varying(const Point& point) const { return varying(point, data_.iteration()); }
    [[nodiscard]] std::vector<bool> categories() const;
    /// `count` of the results: those at the iteration of suggestions first, of these the best half, and others, which
    /// `pick(others, how many)` chooses; in their order.
    template <class Pick>
    [[nodiscard]] std::vector<GpData::Result> best_and_others(const Observations& seen,
                                                              std::span<const GpData::Result> all, std::size_t count,
                                                              Pick pick) const;
    /// How good each result is among all.
    [[nodiscard]] std::vector<double> worth(const Observations& seen, std::span<const GpData::Result> all) const;
    /// The point that the configuration of `point` has: values in the middle of their intervals, absent parameters
    /// absent.
    [[nodiscard]] Point canonical(Point point, std::uint64_t place) const;
    [[nodiscard]] Point near(const Point& point, double width, base::RngStream& random) const;
    /// Logarithm of the expected improvement, from the posteriors of all objectives; -infinity where nothing is
    /// unknown.
    [[nodiscard]] double gain(std::span<const models::GpPosterior> posteriors) const;
    /// At a point of coordinates that vary; adds its gradient.
    double gain(std::span<const double> point, std::span<double> slopes) const;
    [[nodiscard]] double acquisition(const Point& point) const;
    void evaluate(std::vector<Candidate>& candidates) const;
    [[nodiscard]] std::vector<Candidate> candidates(std::uint64_t place, base::RngStream& random) const;
    [[nodiscard]] Candidate climbed(Candidate from, std::uint64_t place) const;
    [[nodiscard]] Candidate along_numbers(const Candidate& from, std::uint64_t place) const;
    [[nodiscard]] Candidate along_lists(Candidate from, std::uint64_t place) const;
    [[nodiscard]] Chosen chosen(std::vector<Candidate> all, std::uint64_t place,
                                std::span<const space::Configuration> others, base::RngStream& random) const;
    /// Results are noisy, and none of this point is to come.
    [[nodiscard]] bool may_repeat(const Point& point) const;
    [[nodiscard]] study::SuggestionBasis basis_of(const Chosen& best) const;

    space::SearchSpace space_;
    std::uint64_t seed_;
    GpOptions options_;
    std::vector<Axis> axes_;
    std::vector<std::size_t> active_; ///< coordinates with more than one value
    bool plain_ = true;               ///< every point is canonical: all continuous, without conditions
    bool finite_ = true;              ///< no continuous coordinate

    GpData data_;
    std::vector<GpData::Result> fitted_; ///< what the kernel was fitted for
    TriedConfigurations tried_;
    std::vector<Outcome> outcomes_; ///< empty: nothing fitted yet
    GpLimits limits_;
    bool any_feasible_ = true;
    bool noisy_ = false;
    std::vector<Point> training_;         ///< where results are to come
    std::vector<Point> best_points_;      ///< of the best smoothed results that keep the constraints
    std::vector<std::size_t> best_lines_; ///< of these, in the table
    std::optional<models::HypervolumeGain> gain_;
};

} // namespace ranktune::searchers
