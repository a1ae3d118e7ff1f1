// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kernel density estimation over numbers and categories, with a product kernel.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ranktune/base/rng.hpp"

namespace ranktune::models {

/// The density of a set of points: the mean of one product kernel per point, Gaussian in numbers and Aitchison-Aitken
/// in categories, with a bandwidth for each coordinate by the normal-reference rule. The same as KDEMultivariate of
/// statsmodels with bw = "normal_reference" (Racine, "Nonparametric econometrics: a primer", 2008), but for two points
/// where its categories go wrong: a category that is absent from the points counts among the levels, and the bandwidth
/// of c levels is at most (c - 1) / c, where the kernel is uniform.
class KernelDensity {
  public:
    /// `rows`: one point after the other, each of levels.size() coordinates; at least one point. `levels[j]` is 0 if
    /// coordinate j is a number in [0, 1], and the number c of its levels if it is a category 0, 1, ..., c - 1.
    /// `min_bandwidth` > 0 is the smallest bandwidth.
    KernelDensity(const std::vector<double>& rows, std::vector<std::uint32_t> levels, double min_bandwidth);

    /// Number of points.
    [[nodiscard]] std::size_t size() const { return size_; }
    /// One for each coordinate.
    [[nodiscard]] std::span<const double> bandwidths() const { return bandwidths_; }
    /// Natural logarithm of the density at a point of levels.size() coordinates. O(points x coordinates).
    [[nodiscard]] double log_density(std::span<const double> point) const;
    /// A random point near one of the points, which is drawn first (Falkner et al., ICML 2018): numbers from a normal
    /// distribution truncated to [0, 1), with `widening` times the bandwidth; a category is kept with probability
    /// 1 - bandwidth, and otherwise any of its levels.
    [[nodiscard]] std::vector<double> draw_near(base::RngStream& random, double widening) const;

  private:
    /// Logarithms of the kernels from `begin` on at the point, without log_scale_.
    void exponents(std::span<const double> point, std::size_t begin, std::span<double> result) const;

    std::vector<std::uint32_t> levels_;
    std::size_t size_;
    std::vector<double> bandwidths_;
    double log_scale_ = 0.0; ///< logarithm of what all kernels are multiplied by
    /// What a coordinate adds to the logarithm of a kernel. Number: -(distance x inverse)^2 / 2. Category: `same` or
    /// `other`.
    struct Coordinate {
        std::vector<double> values; ///< of the points
        double inverse = 0.0;
        double same = 0.0;
        double other = 0.0;
    };
    std::vector<Coordinate> coordinates_;
};

/// The value below which a normal variable with this mean and standard deviation, truncated to [0, 1), lies with
/// probability `p`. Requires 0 <= mean <= 1, sd > 0, 0 < p < 1.
[[nodiscard]] double truncated_normal(double p, double mean, double sd);

} // namespace ranktune::models
