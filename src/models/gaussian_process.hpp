// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gaussian process regression over numbers and categories.

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace ranktune::models {

/// The kernel scale * M(r) + 1: a function around a constant mean, which has itself a standard normal prior. M(r) = (1
/// + s + s^2 / 3) exp(-s), s = sqrt(5) r (Matern 5/2; Rasmussen and Williams, equation 4.17), and r^2 the sum of
/// weights[j] d_j^2 over the coordinates. d_j^2 is (x_j - x'_j)^2 for numbers, and 0 or 1 for categories that are equal
/// or not. A coordinate may be absent (NaN): two absent ones are equal; between an absent and a present number, d_j^2 =
/// (x_j - 1/2)^2 + 3/4, which is the distance to a point beside the middle of the range; an absent category is another
/// category.
struct GpKernel {
    std::vector<double> weights; ///< inverse squared length scales, > 0
    double scale = 1.0;          ///< variance of the function around its mean
    double noise = 1e-2;         ///< variance of the noise of a target
};

/// d_j^2, above.
[[nodiscard]] double squared_distance(double a, double b, bool category);

struct GpPosterior {
    double mean = 0.0;
    double variance = 0.0; ///< of the function, without noise; >= 0
    static constexpr double least_variance = 1e-20;
    /// Of the function; at least the root of `least_variance`, so that one may divide by it.
    [[nodiscard]] double deviation() const { return std::sqrt(std::max(variance, least_variance)); }
};

/// Points are appended one by one (a row of the Cholesky factor each, O(n^2)), so that a process made in one go and one
/// that grew have the same bits.
class GaussianProcess {
  public:
    /// `categories[j]`: coordinate j is a category, else a number in [0, 1].
    GaussianProcess(std::vector<bool> categories, GpKernel kernel);

    [[nodiscard]] std::size_t size() const { return points_.size() / categories_.size(); }
    [[nodiscard]] std::size_t dimensions() const { return categories_.size(); }
    [[nodiscard]] const GpKernel& kernel() const { return kernel_; }
    /// A point of dimensions() coordinates. O(n^2).
    void append(std::span<const double> point);
    /// Forgets all points but the first `size`.
    void keep(std::size_t size);
    /// Targets of the first points. The others lower the variance only, as if the mean were observed there (Kriging
    /// believer). O(n^2).
    void set_targets(std::span<const double> targets);

    /// Means at the points of the targets.
    [[nodiscard]] std::vector<double> smoothed() const;
    [[nodiscard]] GpPosterior posterior(std::span<const double> point) const;
    /// The same for points one after the other. O(n^2) for each, with matrix products.
    [[nodiscard]] std::vector<GpPosterior> posteriors(std::span<const double> points) const;
    /// Also the gradients of mean and variance by the coordinates that are numbers; others get 0.
    GpPosterior posterior(std::span<const double> point, std::span<double> mean_gradient,
                          std::span<double> variance_gradient) const;

  private:
    [[nodiscard]] std::span<const double> point(std::size_t i) const {
        return std::span(points_).subspan(i * categories_.size(), categories_.size());
    }
    [[nodiscard]] double squared_radius(std::span<const double> a, std::span<const double> b) const;
    [[nodiscard]] Eigen::VectorXd covariances(std::span<const double> point) const;

    using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    /// The Cholesky factor of the first `size` points.
    [[nodiscard]] auto factor(std::size_t size) const {
        const auto n = static_cast<Eigen::Index>(size);
        return factor_.topLeftCorner(n, n).triangularView<Eigen::Lower>();
    }

    std::vector<bool> categories_;
    std::vector<unsigned char> is_number_; ///< the opposite, quicker to read
    GpKernel kernel_;
    std::vector<double> points_;
    Rows factor_; ///< lower triangle; has room for more points
    Eigen::VectorXd targets_;
    Eigen::VectorXd alpha_; ///< K^-1 targets
};

/// Logarithm of the marginal likelihood of targets for points one after the other, and its gradient by the logarithms
/// of weights, scale and noise, in this order (Rasmussen and Williams, equations 2.30 and 5.9). -infinity if the
/// covariance is singular.
[[nodiscard]] double log_marginal_likelihood(const GpKernel& kernel, const std::vector<bool>& categories,
                                             std::span<const double> points, std::span<const double> targets,
                                             std::span<double> gradient);

/// The kernel of maximum posterior probability, for targets of mean 0 and variance 1. Densities over the parameters
/// themselves: exp(-0.1 / w - 0.1 w) of each weight and Gamma(2, 1) of the scale, as in Optuna's GPSampler, and
/// Gamma(1.1, 100) of the noise, less than there (1.1, 30): else the model of a function with many local optima calls
/// them noise. Bounds: 1e-4 to 1e4, 1e-3 to 1e3, 1e-6 to 1. By L-BFGS from w = min(1, 6 / dimensions), scale = 1 and
/// noise = 0.01, with at most `evaluations` evaluations, each O(n^3).
[[nodiscard]] GpKernel fit_kernel(const std::vector<bool>& categories, std::span<const double> points,
                                  std::span<const double> targets, int evaluations);

} // namespace ranktune::models
