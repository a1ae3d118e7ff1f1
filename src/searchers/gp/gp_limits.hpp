// SPDX-License-Identifier: Apache-2.0
#pragma once
// The probability that a point keeps the constraints of the study: a Gaussian process for each constraint.

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "models/gaussian_process.hpp"

namespace ranktune::searchers {

/// Absent coordinates (NaN) are equal.
[[nodiscard]] bool same_point(std::span<const double> a, std::span<const double> b);

/// A process and its points, of which those that stay are not appended again.
struct GpSurface {
    models::GaussianProcess process;
    std::vector<std::vector<double>> points = {};
    void hold(std::vector<std::vector<double>> all);
};

/// Models the distance d from each bound (study::Constraint::distance: negative where it is kept) as asinh(d / s),
/// where s is the median of |d|, standardised. Constraints count as independent (Gardner et al., ICML 2014, equation 7;
/// Gelbart et al., UAI 2014): P = product of Phi((bound - mean) / deviation).
class GpLimits {
  public:
    using Point = std::vector<double>;
    /// Points and distances of the same results; a distance per constraint.
    struct Results {
        std::vector<Point> points;
        std::vector<std::vector<double>> distances;
    };

    explicit GpLimits(std::vector<bool> categories) : categories_(std::move(categories)) {}

    [[nodiscard]] bool empty() const { return limits_.empty(); }
    /// Fits a kernel for each constraint; without results there is no model.
    void fit(const Results& results);
    /// What the processes know from now on. `others` are being trained: they lower the variance only.
    void learn(const Results& results, const std::vector<Point>& others);
    /// log P at a point.
    [[nodiscard]] double log_probability(std::span<const double> point) const;
    /// Likewise; adds its gradient by the coordinates that are numbers.
    [[nodiscard]] double log_probability(std::span<const double> point, std::span<double> gradient) const;
    /// At `count` points one after the other.
    [[nodiscard]] std::vector<double> log_probabilities(std::span<const double> points, std::size_t count) const;

  private:
    struct Limit {
        GpSurface surface;
        double bound = 0.0; ///< d = 0, as a target
    };
    std::vector<bool> categories_;
    std::vector<Limit> limits_;
};

} // namespace ranktune::searchers
