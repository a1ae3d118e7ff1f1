// SPDX-License-Identifier: Apache-2.0
// Gaussian processes, expected improvement, power transformations and minimisation against numbers of scikit-learn,
// mpmath and SciPy.
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "models/gaussian_process.hpp"
#include "models/gp_reference.hpp"
#include "models/log_improvement.hpp"
#include "models/minimise.hpp"
#include "models/power_transform.hpp"
#include "support/catch.hpp"

namespace gp_test {

using namespace ranktune::models;
namespace reference = ranktune::models::testing;

namespace {

const std::vector<bool> categories{false, false, true, false};
constexpr std::size_t d = 4;

GpKernel kernel() { return {reference::gp_weights, reference::gp_scale, reference::gp_noise}; }

std::span<const double> row(const std::vector<double>& points, std::size_t i) {
    return std::span(points).subspan(i * d, d);
}

GaussianProcess process() {
    GaussianProcess made(categories, kernel());
    for (std::size_t i = 0; i < reference::gp_targets.size(); ++i) made.append(row(reference::gp_points, i));
    made.set_targets(reference::gp_targets);
    return made;
}

double log_posterior(const GpKernel& k) {
    std::vector<double> gradient(d + 2);
    double value = log_marginal_likelihood(k, categories, reference::gp_points, reference::gp_targets, gradient);
    for (const double w : k.weights) value += -0.1 / w - 0.1 * w;
    return value + std::log(k.scale) - k.scale + 0.1 * std::log(k.noise) - 100.0 * k.noise;
}

} // namespace

TEST_CASE("Gaussian process: the posterior is that of scikit-learn", "[models][gp]") {
    const GaussianProcess made = process();
    const auto together = made.posteriors(reference::gp_tests);
    REQUIRE(together.size() == reference::gp_means.size());
    for (std::size_t i = 0; i < together.size(); ++i) {
        const GpPosterior alone = made.posterior(row(reference::gp_tests, i));
        std::vector<double> unused(d);
        const GpPosterior with_gradient = made.posterior(row(reference::gp_tests, i), unused, unused);
        for (const GpPosterior& each : {together[i], alone, with_gradient}) {
            CHECK(each.mean == Approx(reference::gp_means[i]).epsilon(1e-9));
            CHECK(each.variance == Approx(reference::gp_variances[i]).epsilon(1e-9));
        }
    }
    const std::vector<double> smooth = made.smoothed();
    for (std::size_t i = 0; i < smooth.size(); ++i)
        CHECK(smooth[i] == Approx(made.posterior(row(reference::gp_points, i)).mean).epsilon(1e-9));
}

TEST_CASE("Gaussian process: the gradients of the posterior are right", "[models][gp]") {
    const GaussianProcess made = process();
    for (std::size_t i = 0; i < reference::gp_means.size(); ++i) {
        const std::span<const double> at = row(reference::gp_tests, i);
        std::vector<double> by_mean(d);
        std::vector<double> by_variance(d);
        (void)made.posterior(at, by_mean, by_variance);
        for (std::size_t j = 0; j < d; ++j) {
            if (categories[j] || std::isnan(at[j])) {
                CHECK(by_mean[j] == 0.0);
                continue;
            }
            const double h = 1e-5;
            std::vector<double> up(at.begin(), at.end());
            std::vector<double> down = up;
            up[j] += h;
            down[j] -= h;
            const GpPosterior above = made.posterior(up);
            const GpPosterior below = made.posterior(down);
            CHECK(by_mean[j] == Approx((above.mean - below.mean) / (2.0 * h)).epsilon(1e-5).margin(1e-7));
            CHECK(by_variance[j] == Approx((above.variance - below.variance) / (2.0 * h)).epsilon(1e-5).margin(1e-7));
        }
    }
}

TEST_CASE("Gaussian process: likelihood and gradient are those of scikit-learn", "[models][gp]") {
    std::vector<double> gradient(d + 2);
    CHECK(log_marginal_likelihood(kernel(), categories, reference::gp_points, reference::gp_targets, gradient) ==
          Approx(reference::gp_log_likelihood).epsilon(1e-10));
    for (std::size_t i = 0; i < gradient.size(); ++i)
        CHECK(gradient[i] == Approx(reference::gp_gradient[i]).epsilon(1e-8));
}

TEST_CASE("Gaussian process: the fitted kernel is as likely as the one that SciPy finds", "[models][gp]") {
    const GpKernel fitted = fit_kernel(categories, reference::gp_points, reference::gp_targets, 200);
    CHECK(log_posterior(fitted) == Approx(reference::gp_log_posterior).margin(2e-3));
    CHECK(log_posterior(fitted) > log_posterior(kernel()) + 1.0);
}

TEST_CASE("Gaussian process: one that grew has the bits of one made in one go", "[models][gp]") {
    const GaussianProcess whole = process();
    GaussianProcess grown(categories, kernel());
    const auto append = [&](std::size_t from, std::size_t to) {
        for (std::size_t i = from; i < to; ++i) grown.append(row(reference::gp_points, i));
    };
    append(0, 10);
    grown.set_targets(std::span(reference::gp_targets).first(10));
    grown.append(row(reference::gp_tests, 0)); // a point that is being trained
    grown.keep(7);
    append(7, reference::gp_targets.size());
    grown.set_targets(reference::gp_targets);
    for (std::size_t i = 0; i < reference::gp_means.size(); ++i) {
        CHECK(grown.posterior(row(reference::gp_tests, i)).mean == whole.posterior(row(reference::gp_tests, i)).mean);
        CHECK(grown.posterior(row(reference::gp_tests, i)).variance ==
              whole.posterior(row(reference::gp_tests, i)).variance);
    }
}

TEST_CASE("Gaussian process: a point without target lowers the variance and keeps the mean", "[models][gp]") {
    const GaussianProcess before = process();
    GaussianProcess after = process();
    after.append(row(reference::gp_tests, 0));
    after.set_targets(reference::gp_targets);
    const GpPosterior here = after.posterior(row(reference::gp_tests, 0));
    CHECK(here.mean == Approx(before.posterior(row(reference::gp_tests, 0)).mean).epsilon(1e-12));
    CHECK(here.variance < reference::gp_noise);
}

TEST_CASE("Gaussian process: equal points and equal targets do no harm", "[models][gp]") {
    GaussianProcess made({false}, {{1.0}, 1.0, 1e-6});
    for (int i = 0; i < 30; ++i) made.append(std::vector{0.5});
    made.set_targets(std::vector<double>(30, 0.0));
    const GpPosterior there = made.posterior(std::vector{0.5});
    CHECK(there.mean == 0.0);
    CHECK((there.variance >= 0.0 && there.variance < 1e-3));
    const GpKernel fitted = fit_kernel({false}, std::vector<double>(30, 0.5), std::vector<double>(30, 0.0), 40);
    CHECK((std::isfinite(fitted.weights[0]) && std::isfinite(fitted.scale) && std::isfinite(fitted.noise)));
}

TEST_CASE("the logarithm of expected improvement is accurate in the tail", "[models][gp]") {
    for (std::size_t i = 0; i < reference::improvement_at.size(); ++i) {
        INFO(reference::improvement_at[i]);
        const LogImprovement h = log_improvement(reference::improvement_at[i]);
        CHECK(h.value == Approx(reference::improvement_logs[i]).epsilon(1e-12));
        CHECK(h.slope == Approx(reference::improvement_slopes[i]).epsilon(1e-9));
    }
}

TEST_CASE("the logarithm of the normal distribution function is accurate in the tail", "[models][gp]") {
    for (std::size_t i = 0; i < reference::normal_at.size(); ++i) {
        INFO(reference::normal_at[i]);
        const LogProbability p = log_normal_probability(reference::normal_at[i]);
        CHECK(p.value == Approx(reference::normal_logs[i]).epsilon(1e-11).margin(1e-190));
        CHECK(p.slope == Approx(reference::normal_slopes[i]).epsilon(1e-9));
    }
}

TEST_CASE("the power transformation is that of SciPy", "[models][gp]") {
    const double power = most_normal_power(reference::skewed);
    CHECK(power == Approx(reference::power).margin(0.01));
    for (std::size_t i = 0; i < reference::skewed.size(); ++i)
        CHECK(yeo_johnson(reference::skewed[i], reference::power) == Approx(reference::transformed[i]).epsilon(1e-7));
    CHECK(yeo_johnson(3.0, 1.0) == Approx(3.0));
    CHECK(yeo_johnson(3.0, 0.0) == Approx(std::log(4.0)));
    CHECK(yeo_johnson(-3.0, 2.0) == Approx(-std::log(4.0)));
    CHECK(most_normal_power(std::vector{1.0, 1.0, 1.0}) == 1.0);
}

TEST_CASE("standardised values have mean 0 and variance 1, whatever their size", "[models][gp]") {
    const auto standardised = [](std::vector<double> values) {
        const Standardisation standard(values);
        for (double& each : values) each = standard(each);
        return values;
    };
    for (const double size : {1.0, 1e-300, 1e300}) {
        const auto values = standardised(std::vector{1.0 * size, 2.0 * size, 6.0 * size});
        CHECK(values[0] + values[1] + values[2] == Approx(0.0).margin(1e-12));
        CHECK(values[0] * values[0] + values[1] * values[1] + values[2] * values[2] == Approx(3.0));
    }
    CHECK(standardised(std::vector{0.1, 0.1, 0.1}) == std::vector{0.0, 0.0, 0.0});
    CHECK(standardised(std::vector{0.0, 0.0}) == std::vector{0.0, 0.0});
}

TEST_CASE("a smooth function is minimised in its box", "[models][gp]") {
    const Differentiable rosenbrock = [](std::span<const double> x, std::span<double> gradient) {
        const double across = x[1] - x[0] * x[0];
        gradient[0] = -400.0 * x[0] * across - 2.0 * (1.0 - x[0]);
        gradient[1] = 200.0 * across;
        return 100.0 * across * across + (1.0 - x[0]) * (1.0 - x[0]);
    };
    const std::vector<double> low{-2.0, -2.0};
    const Minimum free = minimise(rosenbrock, {-1.2, 1.0}, low, std::vector{2.0, 2.0}, 200, 1e-12);
    CHECK(free.point[0] == Approx(1.0).epsilon(1e-4));
    CHECK(free.point[1] == Approx(1.0).epsilon(1e-4));
    const Minimum at_border = minimise(rosenbrock, {-1.2, 0.2}, low, std::vector{0.5, 2.0}, 200, 1e-12);
    CHECK(at_border.point[0] == Approx(0.5));
    CHECK(at_border.point[1] == Approx(0.25).epsilon(1e-4));
    // The best of few evaluations.
    CHECK(minimise(rosenbrock, {-1.2, 1.0}, low, std::vector{2.0, 2.0}, 1, 0.0).value == Approx(24.2));
    const Differentiable hole = [](std::span<const double> x, std::span<double> gradient) {
        gradient[0] = 2.0 * x[0];
        return x[0] < 0.2 ? std::numeric_limits<double>::quiet_NaN() : x[0] * x[0];
    };
    const Minimum beside = minimise(hole, {0.9}, std::vector{0.0}, std::vector{1.0}, 60, 1e-9);
    CHECK((beside.point[0] >= 0.2 && beside.value < 0.81));
}

} // namespace gp_test
