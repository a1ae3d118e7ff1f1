// SPDX-License-Identifier: Apache-2.0
// Parzen estimators against numbers from Optuna where both agree, and against the plain formulas.
#include "models/parzen.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>
#include <vector>

#include "models/parzen_reference.hpp"
#include "ranktune/base/rng.hpp"
#include "support/catch.hpp"

namespace parzen_test {

using namespace ranktune;
using models::ParzenColumn;
using models::ParzenEstimator;
using models::testing::Reference;

namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();
using Points = std::vector<std::vector<double>>;

ParzenColumn cells(std::size_t count) {
    ParzenColumn column;
    for (std::size_t i = 0; i <= count; ++i)
        column.borders.push_back(static_cast<double>(i) / static_cast<double>(count));
    for (std::size_t i = 0; i < count; ++i)
        column.middles.push_back((static_cast<double>(i) + 0.5) / static_cast<double>(count));
    return column;
}

/// A number, a number of 10 values, a category of 4.
std::vector<ParzenColumn> mixed() { return {ParzenColumn{}, cells(10), ParzenColumn{4, {}, {}}}; }

ParzenEstimator estimator_of(std::span<const ParzenColumn> columns, const Points& points, double prior = 1.0,
                             double narrowing = 1.0) {
    ParzenEstimator result(columns, prior, narrowing);
    for (std::size_t i = 0; i < points.size(); ++i) result.insert(i, points[i]);
    result.settle();
    return result;
}

double log_density(const ParzenEstimator& estimator, const std::vector<double>& point) {
    std::vector<double> result(1);
    estimator.log_density(point, result);
    return result[0];
}

double unit_of_integer(double k) { return (k - 0.5) / 10.0; }
double unit_of_level(double k) { return (k + 0.5) / 4.0; }

/// Some points lack coordinates.
Points random_points(std::size_t count, std::uint64_t seed, bool gaps) {
    base::RngStream random(seed, base::user_purpose(1));
    Points points;
    for (std::size_t i = 0; i < count; ++i) {
        std::vector<double> point = {random.uniform(), unit_of_integer(1.0 + static_cast<double>(random.below(10))),
                                     unit_of_level(static_cast<double>(random.below(4)))};
        if (random.below(3) == 0) point[0] = points.empty() ? 0.5 : points[random.below(i)][0]; // equal numbers
        for (double& x : point)
            if (gaps && random.below(4) == 0) x = none;
        points.push_back(std::move(point));
    }
    return points;
}

// ---- the formulas, written down plainly

double below(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

double normal_in(double from, double to, double mean, double width) {
    return (below((to - mean) / width) - below((from - mean) / width)) /
           (below((1.0 - mean) / width) - below((0.0 - mean) / width));
}

/// The kernel of a number at `at`; `cell`: half the width of the cell that is meant, 0: the density.
double kernel(double at, double mean, double width, double cell) {
    if (cell > 0.0) return normal_in(at - cell, at + cell, mean, width);
    const double z = (at - mean) / width;
    return std::exp(-0.5 * z * z) / (std::sqrt(2.0 * std::numbers::pi) * width) /
           (below((1.0 - mean) / width) - below((0.0 - mean) / width));
}

double width_of(const Points& points, std::size_t i, std::size_t column, double prior, double narrowing) {
    std::vector<double> others;
    double left = -1.0;
    double right = 2.0;
    std::size_t with = 0;
    bool twin_left = false; // of equal numbers, the earlier point is the left one
    bool twin_right = false;
    for (std::size_t k = 0; k < points.size(); ++k) {
        const double x = points[k][column];
        if (std::isnan(x)) continue;
        ++with;
        if (k == i) continue;
        if (x < points[i][column]) left = std::max(left, x);
        if (x > points[i][column]) right = std::min(right, x);
        if (x == points[i][column]) (k < i ? twin_left : twin_right) = true;
    }
    const double at = points[i][column];
    if (twin_left) left = at;
    if (twin_right) right = at;
    double width = std::max(left < 0.0 ? 0.0 : at - left, right > 1.0 ? 0.0 : right - at);
    if (with == 1) width = std::max(at, 1.0 - at);
    const double kernels = static_cast<double>(with) + (prior > 0.0 ? 1.0 : 0.0);
    return std::clamp(width, 1.0 / std::min(100.0, 1.0 + narrowing * kernels), 1.0);
}

double plain_density(const Points& points, const std::vector<double>& at, double prior, double narrowing) {
    const std::size_t n = points.size();
    double sum = prior;
    double total = prior;
    for (std::size_t j = 0; j < 3; ++j)
        if (!std::isnan(at[j])) sum *= j == 2 ? 0.25 : kernel(at[j], 0.5, 1.0, j == 1 ? 0.05 : 0.0);
    for (std::size_t i = 0; i < n; ++i) {
        double weight = 1.0;
        if (n > 26 && i + 25 < n)
            weight = 1.0 / static_cast<double>(n) +
                     static_cast<double>(i) / static_cast<double>(n - 26) * (1.0 - 1.0 / static_cast<double>(n));
        double product = 1.0;
        for (std::size_t j = 0; j < 3; ++j) {
            const double x = points[i][j];
            if (std::isnan(at[j])) continue;
            if (j == 2) {
                const double p = prior / static_cast<double>(n + 1);
                product *= std::isnan(x) ? 0.25 : ((x == at[j] ? 1.0 : 0.0) + p) / (1.0 + 4.0 * p);
                continue;
            }
            const double width = std::isnan(x) ? 1.0 : width_of(points, i, j, prior, j == 1 ? 1.0 : narrowing);
            product *= kernel(at[j], std::isnan(x) ? 0.5 : x, width, j == 1 ? 0.05 : 0.0);
        }
        total += weight;
        sum += weight * product;
    }
    return std::log(sum / total);
}

} // namespace

TEST_CASE("Parzen: numbers and categories have the density of Optuna 3.1", "[models]") {
    const std::vector<ParzenColumn> columns = mixed();
    for (const Reference& expected : models::testing::references) {
        INFO(expected.x.size() << " points");
        Points x;
        Points k;
        Points both;
        Points c;
        for (std::size_t i = 0; i < expected.x.size(); ++i) {
            x.push_back({expected.x[i]});
            k.push_back({unit_of_integer(expected.k[i])});
            both.push_back({expected.x[i], unit_of_integer(expected.k[i])});
            c.push_back({unit_of_level(expected.c[i])});
        }
        const std::span<const ParzenColumn> all = columns;
        for (std::size_t i = 0; i < expected.asked_x.size(); ++i) {
            const double at_x = expected.asked_x[i];
            const double at_k = unit_of_integer(expected.asked_k[i]);
            const double at_c = unit_of_level(expected.asked_c[i]);
            const auto of_x = estimator_of(all.first(1), x, 0.0);
            CHECK(log_density(of_x, {at_x}) == Approx(expected.of_x[i]).epsilon(1e-9));
            CHECK(log_density(estimator_of(all.last(1), c), {at_c}) == Approx(expected.of_c[i]).epsilon(1e-9));
            if (expected.of_k.empty()) continue;
            const auto of_k = estimator_of(all.subspan(1, 1), k, 0.0);
            const auto of_both = estimator_of(all.first(2), both, 0.0);
            CHECK(log_density(of_k, {at_k}) == Approx(expected.of_k[i]).epsilon(1e-9));
            CHECK(log_density(of_both, {at_x, at_k}) == Approx(expected.of_both[i]).epsilon(1e-9));
        }
    }
}

TEST_CASE("Parzen: the joint density is that of the plain formulas, also where points lack coordinates", "[models]") {
    const std::vector<ParzenColumn> columns = mixed();
    for (const std::size_t count : {0U, 1U, 2U, 3U, 24U, 27U, 127U, 128U, 129U, 300U}) {
        for (const bool gaps : {false, true}) {
            INFO(count << " points" << (gaps ? ", some without coordinates" : ""));
            const Points points = random_points(count, count + 1, gaps);
            const ParzenEstimator estimator = estimator_of(columns, points, 0.7, 2.0);
            for (const auto& at : random_points(8, 1000 + count, gaps))
                CHECK(log_density(estimator, at) == Approx(plain_density(points, at, 0.7, 2.0)).epsilon(1e-9));
        }
    }
}

TEST_CASE("Parzen: without points, or without coordinates, there is the prior", "[models]") {
    const std::vector<ParzenColumn> columns = mixed();
    for (const double prior : {0.0, 1.0}) {
        const ParzenEstimator empty = estimator_of(columns, {}, prior);
        CHECK(log_density(empty, {0.5, none, none}) == Approx(std::log(1.0418290)).epsilon(1e-6));
        CHECK(log_density(empty, {none, none, unit_of_level(1)}) == Approx(std::log(0.25)));
        CHECK(log_density(empty, {none, none, none}) == Approx(0.0).margin(1e-12));
    }
    const ParzenEstimator lacking = estimator_of(columns, {{none, none, none}, {none, none, none}}, 0.0);
    CHECK(log_density(lacking, {0.5, none, unit_of_level(3)}) == Approx(std::log(1.0418290 / 4)).epsilon(1e-6));
}

TEST_CASE("Parzen: widths reach to the farther neighbour, within their limits", "[models]") {
    const std::vector<ParzenColumn> columns = {ParzenColumn{}};
    // 0.2 0.5 0.5 0.6 and, at the ends, 0.1 and 0.95
    const ParzenEstimator few = estimator_of(columns, {{0.5}, {0.2}, {0.95}, {0.5}, {0.6}, {0.1}});
    CHECK(few.width(0, 0) == Approx(0.3));       // left neighbour 0.2
    CHECK(few.width(1, 0) == Approx(0.3));       // right neighbour 0.5
    CHECK(few.width(2, 0) == Approx(0.35));      // the last: its only neighbour
    CHECK(few.width(3, 0) == Approx(1.0 / 8.0)); // 0.1 to 0.6, but not less than 1 / (1 + 7)
    CHECK(few.width(5, 0) == Approx(1.0 / 8.0)); // the first
    CHECK(estimator_of(columns, {{0.2}}).width(0, 0) == Approx(0.8));
    CHECK(estimator_of(columns, {{0.3}, {0.3}}).width(1, 0) == Approx(1.0 / 4.0));
    CHECK(estimator_of(columns, {{0.3}, {0.3}}, 1.0, 2.0).width(1, 0) == Approx(1.0 / 7.0));
    CHECK(estimator_of(columns, Points(200, {0.3})).width(7, 0) == Approx(0.01));
}

TEST_CASE("Parzen: the newest 25 points have weight 1, older ones fall to 1 / n", "[models]") {
    CHECK(models::parzen_weight(0, 1) == 1.0);
    CHECK(models::parzen_weight(0, 25) == 1.0);
    CHECK(models::parzen_weight(0, 26) == 1.0 / 26);
    CHECK(models::parzen_weight(1, 26) == 1.0);
    CHECK(models::parzen_weight(0, 30) == Approx(1.0 / 30));
    CHECK(models::parzen_weight(2, 30) == Approx(0.5 + 0.5 / 30));
    CHECK(models::parzen_weight(4, 30) == Approx(1.0));
    CHECK(models::parzen_weight(5, 30) == 1.0);
}

TEST_CASE("Parzen: points that come and go in any order leave what points that stay make", "[models]") {
    const std::vector<ParzenColumn> columns = mixed();
    const Points points = random_points(260, 5, true);
    ParzenEstimator changing(columns, 1.0, 2.0);
    base::RngStream random(3, base::user_purpose(2));
    std::vector<bool> is_in(points.size(), false);
    for (int change = 0; change < 3000; ++change) {
        const std::size_t key = random.below(points.size());
        if (is_in[key])
            changing.erase(key);
        else
            changing.insert(key, points[key]);
        is_in[key] = !is_in[key];
        if (change % 7 == 0) changing.settle();
        if (change % 250 != 249) continue;
        changing.settle();
        ParzenEstimator anew(columns, 1.0, 2.0);
        for (std::size_t i = points.size(); i-- > 0;)
            if (is_in[i]) anew.insert(i, points[i]);
        anew.settle();
        REQUIRE(anew.size() == changing.size());
        for (const auto& at : random_points(10, 77, true)) CHECK(log_density(changing, at) == log_density(anew, at));
        base::RngStream one(change, base::user_purpose(3));
        base::RngStream other = one;
        CHECK(changing.draw(one) == anew.draw(other));
    }
}

TEST_CASE("Parzen: draws have the density", "[models]") {
    const std::vector<ParzenColumn> columns = mixed();
    const Points points = {{0.1, unit_of_integer(2), unit_of_level(0)},
                           {0.9, unit_of_integer(9), unit_of_level(0)},
                           {0.85, unit_of_integer(9), unit_of_level(3)}};
    const ParzenEstimator estimator = estimator_of(columns, points, 1.0, 2.0);
    constexpr int draws = 40000;
    std::vector<double> level(4), integer(10), tenth(10);
    base::RngStream random(1, base::user_purpose(4));
    for (int i = 0; i < draws; ++i) {
        const std::vector<double> point = estimator.draw(random);
        REQUIRE((point[0] >= 0.0 && point[0] < 1.0));
        tenth[static_cast<std::size_t>(point[0] * 10)] += 1.0 / draws;
        const auto cell = static_cast<std::size_t>(point[1] * 10);
        integer[cell] += 1.0 / draws;
        CHECK(point[1] == columns[1].middles[cell]);
        level[static_cast<std::size_t>(point[2] * 4)] += 1.0 / draws;
    }
    // 0.01 is four standard deviations of such a share.
    for (std::size_t k = 0; k < 4; ++k) {
        const double expected = std::exp(log_density(estimator, {none, none, unit_of_level(static_cast<double>(k))}));
        CHECK(level[k] == Approx(expected).margin(0.01));
    }
    for (std::size_t k = 0; k < 10; ++k) {
        CHECK(integer[k] == Approx(std::exp(log_density(estimator, {none, columns[1].middles[k], none}))).margin(0.01));
        double sum = 0.0;
        for (int i = 0; i < 100; ++i)
            sum +=
                std::exp(log_density(estimator, {static_cast<double>(k) / 10 + (i + 0.5) / 1000, none, none})) / 1000;
        CHECK(tenth[k] == Approx(sum).margin(0.01));
    }
}

TEST_CASE("Parzen: normal masses are accurate in both tails", "[models]") {
    CHECK(models::normal_mass(0.9, 1.0, 0.0, 0.1) == Approx(1.1285122312e-19).epsilon(1e-6));
    CHECK(models::normal_mass(0.0, 0.1, 1.0, 0.1) == Approx(1.1285122312e-19).epsilon(1e-6));
    CHECK(models::normal_mass(0.0, 1.0, 0.5, 1.0) == Approx(0.3829249225).epsilon(1e-9));
}

} // namespace parzen_test
