// SPDX-License-Identifier: Apache-2.0
#pragma once
// Learning curves: power laws, as functions of (seed, point of the configuration in the unit cube, iteration).

#include <cstdint>
#include <vector>

#include "ranktune/space/search_space.hpp"
#include "ranktune/study/objective.hpp"
#include "ranktune/study/spec.hpp"
#include "simulate/model.hpp"

namespace ranktune::simulate {

/// How far the state of a trial is, measured in iterations of the configuration in force.
struct Progress {
    double iterations = 0.0; ///< 0: untrained
    double lead = 0.0;       ///< quality above the configuration's limit, left over from another configuration
};

/// How one configuration learns: quality(t) = limit - gap * t^-speed.
struct Curve {
    double limit = 0.0;
    double gap = 0.0;
    double speed = 1.0;
    double slowness = 1.0; ///< factor of the time of its iterations
    std::uint32_t key = 0; ///< of its noise

    /// Without noise. Requires progress.iterations > 0.
    [[nodiscard]] double quality(const Progress& progress) const;
    /// The progress of a state of this quality. Inverse of `quality`: a state keeps its quality when the configuration
    /// changes, and moves on from there towards the new limit.
    [[nodiscard]] Progress progress_at(double quality) const;
};

/// What happens by chance in one iteration.
struct Chance {
    double noise = 0.0; ///< of the quality
    double time = 1.0;  ///< factor
};

class Curves {
  public:
    /// The model is copied; `spec` may go.
    Curves(const CurveModel& curves, const TimeModel& time, const study::StudySpec& spec);

    [[nodiscard]] Curve curve(const space::Configuration& configuration) const;
    /// One iteration of training.
    void advance(Progress& progress) const;
    [[nodiscard]] Chance chance(const Curve& curve, base::Iteration iteration) const;
    /// The study's metric for a quality: the quality itself, or 1 - quality where smaller is better.
    [[nodiscard]] double metric(double quality) const { return mode_ == study::Mode::max ? quality : 1.0 - quality; }
    /// The best quality, without noise, that 4,096 random configurations have after study.max_iterations.
    [[nodiscard]] double best_reachable() const;
    [[nodiscard]] std::uint64_t seed() const { return seed_; }

    /// One coordinate in [0, 1] per parameter that can vary, in the order of the study file; of a grid, the position in
    /// its list. 0.5 for a parameter that the configuration lacks.
    [[nodiscard]] std::vector<double> point(const space::Configuration& configuration) const;

  private:
    CurveModel model_;
    TimeModel time_;
    space::SearchSpace space_;
    study::Mode mode_;
    base::Iteration ceiling_;
    std::uint64_t seed_;
    std::vector<double> optimum_; ///< where the limit is highest
    std::vector<double> weight_;  ///< of each coordinate, sum 1
};

} // namespace ranktune::simulate
