// SPDX-License-Identifier: Apache-2.0
#pragma once
// Learning curves by power laws, as functions of (seed, point of the configuration in the unit cube, iteration).

#include <cstdint>
#include <memory>
#include <vector>

#include "ranktune/space/search_space.hpp"
#include "ranktune/study/objective.hpp"
#include "ranktune/study/spec.hpp"
#include "simulate/curves.hpp"
#include "simulate/model.hpp"

namespace ranktune::simulate {

/// quality(t) = limit - gap * t^-speed.
struct PowerLaw {
    double limit = 0.0;
    double gap = 0.0;
    double speed = 1.0;
    double slowness = 1.0; ///< factor of the time of its iterations
    std::uint32_t key = 0; ///< of its noise

    /// Requires progress.iterations > 0.
    [[nodiscard]] double quality(const Progress& progress) const;
    /// Inverse of `quality`. A state above the limit has a lead.
    [[nodiscard]] Progress progress_at(double quality) const;
};

class PowerLaws final : public Curves {
  public:
    /// The models are copied; `spec` may go.
    PowerLaws(const CurveModel& curves, const TimeModel& time, const study::StudySpec& spec);

    [[nodiscard]] std::shared_ptr<const Curve> curve(const space::Configuration& configuration) override;
    /// The quality itself, or 1 - quality where smaller is better.
    [[nodiscard]] double metric(double quality) const override {
        return mode_ == study::Mode::max ? quality : 1.0 - quality;
    }
    /// The best quality, without noise, that 4,096 random configurations have after study.max_iterations.
    [[nodiscard]] double best_reachable() const override { return reachable_; }

    [[nodiscard]] PowerLaw law(const space::Configuration& configuration) const;
    /// Noise and time of an iteration.
    [[nodiscard]] Step step(const PowerLaw& law, base::Iteration iteration) const;
    /// One coordinate in [0, 1] per parameter that can vary, in the order of the study file; of a grid, the position in
    /// its list. 0.5 for a parameter that the configuration lacks.
    [[nodiscard]] std::vector<double> point(const space::Configuration& configuration) const;

  private:
    [[nodiscard]] double badness(const std::vector<double>& point) const;
    [[nodiscard]] double better_share(double badness) const;
    void look_around(base::Iteration ceiling);

    CurveModel model_;
    TimeModel time_;
    space::SearchSpace space_;
    study::Mode mode_;
    std::uint64_t seed_;
    std::vector<double> optimum_; ///< where the limit is highest
    std::vector<double> weight_;  ///< of each coordinate, sum 1
    std::vector<double> badness_; ///< of random configurations, ascending
    double reachable_ = 0.0;
};

} // namespace ranktune::simulate
