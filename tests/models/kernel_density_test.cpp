// SPDX-License-Identifier: Apache-2.0
// Numbers were computed with NumPy and SciPy, by the formulas of statsmodels (KDEMultivariate, gpke).
#include "models/kernel_density.hpp"

#include <array>
#include <cmath>
#include <vector>

#include "support/catch.hpp"

namespace kernel_density_test {

using namespace ranktune;
using models::KernelDensity;
using Point = std::array<double, 3>;

namespace {

/// Two numbers and a category of three levels.
const std::vector<double> mixed{0.1,  0.25, 0, 0.15, 0.6, 0, 0.3, 0.55, 0, 0.8, 0.9, 2,
                                0.45, 0.35, 0, 0.35, 0.4, 0, 0.2, 0.7,  1, 0.6, 0.1, 0};

} // namespace

TEST_CASE("kernel density: the bandwidth for n 10, d 2, standard deviation 0.2 is 0.144433919", "[models]") {
    std::vector<double> rows(10, 0.3);
    rows.resize(20, 0.7);
    const KernelDensity density(rows, {0, 0}, 1e-3);
    CHECK(density.size() == 10);
    for (const double bandwidth : density.bandwidths()) CHECK(bandwidth == Approx(0.144433919).epsilon(1e-8));
}

TEST_CASE("kernel density: numbers and categories have the density of statsmodels", "[models]") {
    const KernelDensity density(mixed, {0, 0, 3}, 1e-3);
    CHECK(density.bandwidths()[0] == Approx(0.176038759509637).epsilon(1e-12));
    CHECK(density.bandwidths()[1] == Approx(0.189814118142053).epsilon(1e-12));
    CHECK(density.bandwidths()[2] == Approx(0.548130375575698).epsilon(1e-12));
    CHECK(density.log_density(Point{0.2, 0.5, 0}) == Approx(-0.135979620244552).epsilon(1e-12));
    CHECK(density.log_density(Point{0.2, 0.5, 1}) == Approx(-0.466739024911299).epsilon(1e-12));
    CHECK(density.log_density(Point{0.2, 0.5, 2}) == Approx(-0.568609102383195).epsilon(1e-12));
    CHECK(density.log_density(Point{0.95, 0.05, 2}) == Approx(-3.78226766984056).epsilon(1e-12));
}

TEST_CASE("kernel density: equal points have the smallest bandwidth", "[models]") {
    const KernelDensity density({0.5, 0.5, 0.5, 0.5, 0.5, 0.5}, {0, 0}, 1e-3);
    CHECK(density.bandwidths()[0] == 1e-3);
    CHECK(density.log_density(std::array{0.501, 0.499}) == Approx(10.9776334915549).epsilon(1e-12));
}

TEST_CASE("kernel density: far from all points the logarithm is finite, where the density is 0", "[models]") {
    const KernelDensity density({0.2, 0.3}, {0, 0}, 1e-3);
    CHECK(density.log_density(std::array{0.9, 0.9}) == Approx(-424988.022366508).epsilon(1e-12));
}

TEST_CASE("kernel density: the bandwidth of c levels is at most (c - 1) / c, where all are alike", "[models]") {
    // The rule gives 1.6066, and statsmodels a negative kernel.
    const KernelDensity density({0, 4, 0, 4}, {5}, 1e-3);
    CHECK(density.bandwidths()[0] == 0.8);
    for (double level = 0; level < 5; ++level)
        CHECK(std::exp(density.log_density(std::array{level})) == Approx(0.2).epsilon(1e-12));
}

TEST_CASE("kernel density: a level that no point has is unlikely, not infinitely likely (HpBandSter #100)",
          "[models]") {
    const KernelDensity density({0.0098, 1, 0.049, 1, 0.186, 1}, {0, 2}, 1e-3);
    const double there = density.log_density(std::array{0.235, 1.0});
    const double absent = density.log_density(std::array{0.235, 0.0});
    CHECK(there - absent == Approx(std::log(0.999 / 0.001)).epsilon(1e-12));
}

TEST_CASE("kernel density: a category of one level changes nothing", "[models]") {
    const KernelDensity alone({0.1, 0.5, 0.7}, {0}, 1e-3);
    const KernelDensity with({0.1, 0, 0.5, 0, 0.7, 0}, {0, 1}, 1e-3);
    // One coordinate more makes the other bandwidths larger, as in statsmodels.
    CHECK(with.bandwidths()[0] == Approx(alone.bandwidths()[0] * std::pow(3.0, 1.0 / 5.0 - 1.0 / 6.0)));
    base::RngStream random(1, base::Purpose::suggest);
    for (int i = 0; i < 20; ++i) CHECK(with.draw_near(random, 3.0)[1] == 0.0);
    CHECK(std::isfinite(with.log_density(std::array{0.5, 0.0})));
}

TEST_CASE("kernel density: truncated normals have the quantiles of scipy.stats.truncnorm", "[models]") {
    CHECK(models::truncated_normal(0.5, 0.0, 0.1) == Approx(0.0674489750196082).epsilon(1e-12));
    CHECK(models::truncated_normal(0.25, 0.2, 0.3) == Approx(0.153500874754582).epsilon(1e-12));
    CHECK(models::truncated_normal(0.9, 0.2, 0.3) == Approx(0.625189032661731).epsilon(1e-12));
    CHECK(models::truncated_normal(0.5, 1.0, 0.05) == Approx(0.966275512490196).epsilon(1e-12));
    CHECK(models::truncated_normal(0.3, 0.5, 100.0) == Approx(0.300000699998358).epsilon(1e-9));
    CHECK(models::truncated_normal(0.01, 0.999, 0.003) == Approx(0.991516305890856).epsilon(1e-12));
}

TEST_CASE("kernel density: truncated normals stay in [0, 1) at their ends", "[models]") {
    for (const double mean : {0.0, 0.5, 1.0}) {
        for (const double sd : {1e-12, 1e-3, 1.0, 1e3}) {
            for (const double p : {0x1p-54, 0.5, 1.0 - 0x1p-53}) {
                const double x = models::truncated_normal(p, mean, sd);
                CHECK(x >= 0.0);
                CHECK(x < 1.0);
            }
        }
    }
}

TEST_CASE("kernel density: points are drawn near one of the points, with a wider kernel", "[models]") {
    // One point: the bandwidth is the smallest one, 0.1 here.
    const KernelDensity density({0.2, 2}, {0, 4}, 0.1);
    base::RngStream random(7, base::Purpose::suggest);
    constexpr int draws = 20'000;
    double sum = 0.0;
    double squares = 0.0;
    int kept = 0;
    for (int i = 0; i < draws; ++i) {
        const std::vector<double> point = density.draw_near(random, 3.0);
        sum += point[0];
        squares += point[0] * point[0];
        kept += point[1] == 2.0 ? 1 : 0;
        REQUIRE((point[1] >= 0.0 && point[1] < 4.0));
    }
    const double mean = sum / draws;
    CHECK(mean == Approx(0.3242684601968099).margin(0.006)); // four standard errors
    CHECK(std::sqrt(squares / draws - mean * mean) == Approx(0.21238292493991978).margin(0.005));
    CHECK(kept / double(draws) == Approx(0.9 + 0.1 / 4.0).margin(0.008));
}

} // namespace kernel_density_test
