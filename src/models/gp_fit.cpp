// SPDX-License-Identifier: Apache-2.0
// The marginal likelihood of a Gaussian process, and the kernel that maximises it.

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "models/gaussian_process.hpp"
#include "models/minimise.hpp"

namespace ranktune::models {
namespace {

using Eigen::Index;

/// A density: its logarithm, without constants, and its derivative by the logarithm of x.
struct LogPrior {
    double value;
    double slope;
};
LogPrior weight_prior(double w) { return {-0.1 / w - 0.1 * w, 0.1 / w - 0.1 * w}; }
LogPrior gamma_prior(double x, double shape, double rate) {
    return {(shape - 1.0) * std::log(x) - rate * x, (shape - 1.0) - rate * x};
}

GpKernel kernel_of(std::span<const double> logarithms) {
    const std::size_t d = logarithms.size() - 2;
    GpKernel kernel{std::vector<double>(d), std::exp(logarithms[d]), std::exp(logarithms[d + 1])};
    for (std::size_t j = 0; j < d; ++j) kernel.weights[j] = std::exp(logarithms[j]);
    return kernel;
}

} // namespace

double log_marginal_likelihood(const GpKernel& kernel, const std::vector<bool>& categories,
                               std::span<const double> points, std::span<const double> targets,
                               std::span<double> gradient) {
    const std::size_t d = categories.size();
    const auto n = static_cast<Index>(targets.size());
    // Below the diagonal: the kernel, and its derivative by the squared radius.
    Eigen::MatrixXd k(n, n);
    Eigen::MatrixXd slopes(n, n);
    const double root_5 = std::sqrt(5.0);
    for (Index b = 0; b < n; ++b) {
        for (Index a = b; a < n; ++a) {
            double squared = 0.0;
            for (std::size_t j = 0; j < d; ++j)
                squared +=
                    kernel.weights[j] * squared_distance(points[static_cast<std::size_t>(a) * d + j],
                                                         points[static_cast<std::size_t>(b) * d + j], categories[j]);
            const double s = root_5 * std::sqrt(squared);
            const double decay = kernel.scale * std::exp(-s);
            k(a, b) = (1.0 + s + s * s / 3.0) * decay;
            slopes(a, b) = -5.0 / 6.0 * (1.0 + s) * decay;
        }
    }
    Eigen::MatrixXd covariance = k.array() + 1.0; // of the mean
    covariance.diagonal().array() += kernel.noise;
    const Eigen::LLT<Eigen::MatrixXd> factor(covariance);
    if (factor.info() != Eigen::Success) return -std::numeric_limits<double>::infinity();
    const Eigen::Map<const Eigen::VectorXd> y(targets.data(), n);
    const Eigen::VectorXd alpha = factor.solve(y);
    const double value = -0.5 * y.dot(alpha) - factor.matrixLLT().diagonal().array().log().sum() -
                         0.5 * static_cast<double>(n) * std::log(2.0 * std::numbers::pi);
    // d value / d p = 1/2 trace((alpha alpha^T - K^-1) dK / dp)
    Eigen::MatrixXd inner = -factor.solve(Eigen::MatrixXd::Identity(n, n));
    inner.noalias() += alpha * alpha.transpose();
    std::ranges::fill(gradient, 0.0);
    for (Index b = 0; b < n; ++b) {
        gradient[d] += 0.5 * inner(b, b) * k(b, b);
        gradient[d + 1] += 0.5 * inner(b, b) * kernel.noise;
        for (Index a = b + 1; a < n; ++a) { // each pair twice
            gradient[d] += inner(a, b) * k(a, b);
            const double change = inner(a, b) * slopes(a, b);
            for (std::size_t j = 0; j < d; ++j)
                gradient[j] += change * kernel.weights[j] *
                               squared_distance(points[static_cast<std::size_t>(a) * d + j],
                                                points[static_cast<std::size_t>(b) * d + j], categories[j]);
        }
    }
    return value;
}

GpKernel fit_kernel(const std::vector<bool>& categories, std::span<const double> points,
                    std::span<const double> targets, int evaluations) {
    const std::size_t d = categories.size();
    const auto loss = [&](std::span<const double> logarithms, std::span<double> gradient) {
        const GpKernel kernel = kernel_of(logarithms);
        double value = log_marginal_likelihood(kernel, categories, points, targets, gradient);
        const auto add = [&](std::size_t at, const LogPrior& prior) {
            value += prior.value;
            gradient[at] += prior.slope;
        };
        for (std::size_t j = 0; j < d; ++j) add(j, weight_prior(kernel.weights[j]));
        add(d, gamma_prior(kernel.scale, 2.0, 1.0));
        add(d + 1, gamma_prior(kernel.noise, 1.1, 100.0));
        for (double& each : gradient) each = -each;
        return -value;
    };
    // Points at random in many dimensions are about as far from each other as in six.
    std::vector<double> start(d + 2, std::log(std::min(1.0, 6.0 / static_cast<double>(d))));
    start[d] = 0.0;
    std::vector<double> low(d + 2, std::log(1e-4));
    std::vector<double> high(d + 2, std::log(1e4));
    low[d] = std::log(1e-3);
    high[d] = std::log(1e3);
    start[d + 1] = std::log(1e-2);
    low[d + 1] = std::log(1e-6);
    high[d + 1] = 0.0;
    return kernel_of(minimise(loss, start, low, high, evaluations, 1e-5).point);
}

} // namespace ranktune::models
