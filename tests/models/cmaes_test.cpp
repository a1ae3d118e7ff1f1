// SPDX-License-Identifier: Apache-2.0
// CMA-ES against numbers of the program `cmaes`, and against what its author measured on functions.
#include "models/cmaes.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "models/cmaes_reference.hpp"
#include "support/catch.hpp"

namespace cmaes_test {

using namespace ranktune;
using namespace ranktune::models;
using models::testing::CmaEsState;

namespace {

using Point = std::vector<double>;
using Function = std::function<double(const Point&)>;

/// As in cmaes_reference.py.
std::vector<Point> samples(std::size_t generation, std::size_t count, std::size_t n) {
    std::vector<Point> all(count, Point(n));
    const auto g = static_cast<double>(generation);
    for (std::size_t i = 0; i < count * n; ++i)
        all[i / n][i % n] = std::fmod(0.5545497 * static_cast<double>(i + 1) * (g + 1.0) + 0.308517 * g, 1.0);
    return all;
}

double weighted_sphere(const Point& x) {
    double sum = 0.0;
    for (std::size_t j = 0; j < x.size(); ++j) sum += static_cast<double>(j + 1) * (x[j] - 0.3) * (x[j] - 0.3);
    return sum;
}

/// Tells as many generations as the script; `to_cube` places the samples.
template <class ToCube>
void tell(CmaEs& cma, std::size_t generations, std::size_t n, ToCube to_cube) {
    for (std::size_t g = 0; g < generations; ++g) {
        std::vector<CmaEsResult> results;
        for (Point& x : samples(g, cma.constants().lambda, n)) {
            for (double& each : x) each = to_cube(each);
            results.push_back({x, -weighted_sphere(x)});
        }
        cma.tell(results);
    }
}

void check_state(const CmaEs& cma, const CmaEsState& expected) {
    const std::size_t n = expected.mean.size();
    CHECK(cma.sigma() == Approx(expected.sigma).epsilon(1e-9));
    for (std::size_t i = 0; i < n; ++i) {
        const auto row = static_cast<Eigen::Index>(i);
        CHECK(cma.mean()[row] == Approx(expected.mean[i]).epsilon(1e-9));
        CHECK(cma.stretch()[row] == Approx(expected.stretch[i]).epsilon(1e-9));
        for (std::size_t j = 0; j < n; ++j)
            CHECK(cma.covariance()(row, static_cast<Eigen::Index>(j)) ==
                  Approx(expected.covariance[i * n + j]).epsilon(1e-9).margin(1e-12));
    }
}

void check_plain(std::size_t n, std::size_t generations, const CmaEsState& expected) {
    CmaEs cma(Point(n, 0.5), 0.2, std::vector<Point>(n), CmaEsConstants::usual_lambda(n));
    tell(cma, generations, n, [](double x) { return x; });
    check_state(cma, expected);
}

/// The borders of `count` equal intervals.
Point borders(std::size_t count) {
    Point all;
    for (std::size_t i = 1; i < count; ++i) all.push_back(static_cast<double>(i) / static_cast<double>(count));
    return all;
}

void check_margin(std::size_t generations, double width, const CmaEsState& expected) {
    CmaEs cma(Point(4, 0.53), 0.2 * width, {{}, borders(2), borders(5), borders(100)}, CmaEsConstants::usual_lambda(4));
    tell(cma, generations, 4, [width](double x) { return 0.53 + width * (x - 0.5); });
    check_state(cma, expected);
}

/// Evaluations until the value is below 1e-10. Large coordinates need no limits: [0, 1] is 20 wide and the start is 3
/// from the optimum at its middle, with deviation 2.
std::size_t evaluations(const Function& f, std::size_t n, double start, double deviation, std::uint64_t seed) {
    CmaEs cma(Point(n, 0.5 + start / 20.0), deviation / 20.0, std::vector<Point>(n), CmaEsConstants::usual_lambda(n));
    std::uint32_t count = 0;
    while (count < 100000 && cma.exhausted() == nullptr) {
        std::vector<CmaEsResult> results;
        for (std::size_t i = 0; i < cma.constants().lambda; ++i) {
            base::RngStream random(seed, base::Purpose::suggest, count++);
            const Point raw = cma.sample(random);
            Point x = raw;
            for (double& each : x) each = 20.0 * (each - 0.5);
            const double value = f(x);
            if (value < 1e-10) return count;
            results.push_back({raw, -value});
        }
        cma.tell(results);
    }
    return 100000;
}

std::size_t median_of_20(const Function& f, std::size_t n, double start, double deviation) {
    std::vector<std::size_t> counts;
    for (std::uint64_t seed = 0; seed < 20; ++seed) counts.push_back(evaluations(f, n, start, deviation, seed));
    std::ranges::sort(counts);
    return (counts[9] + counts[10]) / 2;
}

double ellipsoid(const Point& x) {
    double sum = 0.0;
    for (std::size_t j = 0; j < x.size(); ++j)
        sum += std::pow(1e6, static_cast<double>(j) / static_cast<double>(x.size() - 1)) * x[j] * x[j];
    return sum;
}
double sphere(const Point& x) {
    double sum = 0.0;
    for (const double each : x) sum += each * each;
    return sum;
}
double rosenbrock(const Point& x) {
    double sum = 0.0;
    for (std::size_t j = 0; j + 1 < x.size(); ++j)
        sum += 100.0 * std::pow(x[j + 1] - x[j] * x[j], 2) + std::pow(1.0 - x[j], 2);
    return sum;
}

} // namespace

TEST_CASE("CMA-ES: the constants of the tutorial", "[models][cmaes]") {
    const CmaEsConstants five(5, CmaEsConstants::usual_lambda(5));
    CHECK(five.lambda == 8);
    CHECK(five.mu == 4);
    CHECK(five.mu_eff == Approx(2.600178826));
    CHECK(five.c_1 == Approx(.047292304));
    CHECK(five.c_mu == Approx(.038169161));
    CHECK(five.c_sigma == Approx(.365088376));
    CHECK(five.d_sigma == Approx(1.365088376));
    CHECK(five.c_c == Approx(.450199558));
    CHECK(five.chi_n == Approx(2.128523756));
    const CmaEsConstants ten(10, CmaEsConstants::usual_lambda(10));
    CHECK(ten.lambda == 10);
    CHECK(ten.mu_eff == Approx(3.167299281));
    CHECK(ten.c_1 == Approx(.015283825));
    CHECK(ten.c_mu == Approx(.020154283));
    CHECK(ten.chi_n == Approx(3.084726565));
}

TEST_CASE("CMA-ES: mean, step size and covariance are those of another program", "[models][cmaes]") {
    check_plain(3, 1, testing::three_once);
    check_plain(3, 12, testing::three_often);
    check_plain(8, 12, testing::eight_often);
}

TEST_CASE("CMA-ES: the margin is that of another program", "[models][cmaes]") {
    check_margin(12, 0.9, testing::margin_wide);
    check_margin(1, 0.02, testing::margin_narrow_once);
    check_margin(12, 0.02, testing::margin_narrow);
}

TEST_CASE("CMA-ES: evaluations to 1e-10 as measured with another program", "[models][cmaes]") {
    const auto near = [](std::size_t measured, double expected) {
        return std::abs(static_cast<double>(measured) / expected - 1.0) < 0.1;
    };
    CHECK(near(median_of_20(sphere, 5, 3.0, 2.0), 896));
    CHECK(near(median_of_20(ellipsoid, 5, 3.0, 2.0), 1748));
    CHECK(near(median_of_20(rosenbrock, 5, 0.0, 0.5), 1980));
    CHECK(near(median_of_20(sphere, 2, 3.0, 2.0), 324));
}

TEST_CASE("CMA-ES: samples stay in the cube", "[models][cmaes]") {
    const CmaEs wide({0.01, 0.99}, 3.0, {{}, {0.5}}, 6);
    for (std::uint32_t i = 0; i < 200; ++i) {
        base::RngStream random(1, base::Purpose::suggest, i);
        const Point raw = wide.sample(random);
        CHECK((raw[0] >= 0.0 && raw[0] < 1.0));
        for (const double each : wide.place(raw)) CHECK((each >= 0.0 && each < 1.0));
    }
}

TEST_CASE("CMA-ES: failed samples move nothing, and a distribution that nobody improves ends", "[models][cmaes]") {
    constexpr double failed = -std::numeric_limits<double>::infinity();
    CmaEs cma({0.5, 0.5}, 0.2, {{}, {}}, 6);
    std::vector<CmaEsResult> results;
    for (const Point& x : samples(0, 6, 2)) results.push_back({x, failed});
    cma.tell(results);
    CHECK(cma.generation() == 0);
    CHECK(cma.mean() == Eigen::Vector2d(0.5, 0.5));
    // One good sample has all the positive weight.
    results[3].score = 1.0;
    cma.tell(results);
    CHECK(cma.mean()[0] == Approx(results[3].raw[0]));
    CHECK(cma.mean()[1] == Approx(results[3].raw[1]));

    for (int i = 0; i < 100 && cma.exhausted() == nullptr; ++i) {
        for (CmaEsResult& each : results) each.score = 2.0;
        cma.tell(results);
    }
    REQUIRE(cma.exhausted() != nullptr);
}

TEST_CASE("CMA-ES: a point from elsewhere moves the mean only so far", "[models][cmaes]") {
    const auto moved = [](bool injected) {
        CmaEs cma({0.5, 0.5}, 0.01, {{}, {}}, 6);
        std::vector<CmaEsResult> results(6, CmaEsResult{{0.5, 0.5}, 0.0});
        results[0] = {{0.9, 0.5}, 1.0, injected};
        cma.tell(results);
        return cma.mean()[0] - 0.5;
    };
    CHECK(moved(false) == Approx(0.4 * CmaEsConstants(2, 6).weights[0]));
    // c_y = sqrt(n) + 2 n / (n + 2) deviations.
    CHECK(moved(true) == Approx((std::sqrt(2.0) + 1.0) * 0.01 * CmaEsConstants(2, 6).weights[0]));
}

} // namespace cmaes_test
