// SPDX-License-Identifier: Apache-2.0
// Results with several objectives: fronts, crowding, hypervolumes.
#include "models/pareto.hpp"

#include <cmath>
#include <limits>

#include "models/pareto_reference.hpp"
#include "ranktune/base/rng.hpp"
#include "support/catch.hpp"
#include "support/hypervolume.hpp"

namespace pareto_test {

using namespace ranktune;
using namespace ranktune::models;
using ranktune::test::hypervolume;

namespace {

using Values = std::vector<std::vector<double>>;
constexpr double unbounded = std::numeric_limits<double>::infinity();

std::vector<ParetoPoint> as_points(const Values& values) {
    std::vector<ParetoPoint> points;
    for (const auto& each : values) points.push_back({each, 0.0});
    return points;
}

/// Smaller is better in the literature.
Values negated(Values values) {
    for (auto& point : values)
        for (double& each : point) each = -each;
    return values;
}

/// By the definition: a front is what no point of the rest beats.
std::vector<std::uint32_t> ranks_by_definition(const std::vector<ParetoPoint>& points) {
    std::vector<std::uint32_t> ranks(points.size(), 0);
    for (std::size_t round = 0; round < points.size(); ++round)
        for (std::size_t i = 0; i < points.size(); ++i)
            for (std::size_t j = 0; j < points.size(); ++j)
                if (dominates(points[j], points[i])) ranks[i] = std::max(ranks[i], ranks[j] + 1);
    return ranks;
}

/// The points of pareto_reference.py.
Values reference_points(int count, int objectives) {
    Values points;
    for (int i = 0; i < count; ++i) {
        std::vector<double> point;
        for (int k = 0; k < objectives; ++k) {
            double x = std::fmod(0.618034 * (i + 1) * (k + 1) + 0.3819 * k * k, 1.0);
            if (i % 5 == 0) x = std::nearbyint(x * 10.0) / 10.0;
            point.push_back(i % 3 == 0 ? x * 1.2 : x);
        }
        points.push_back(point);
    }
    return points;
}

} // namespace

TEST_CASE("a result beats another one that is nowhere better and somewhere worse", "[models]") {
    const std::vector<double> a{1.0, 2.0};
    const std::vector<double> b{1.0, 1.0};
    const std::vector<double> c{2.0, 0.0};
    CHECK(dominates({a, 0.0}, {b, 0.0}));
    CHECK_FALSE(dominates({b, 0.0}, {a, 0.0}));
    CHECK_FALSE(dominates({a, 0.0}, {a, 0.0}));
    CHECK_FALSE(dominates({a, 0.0}, {c, 0.0}));
    CHECK_FALSE(dominates({c, 0.0}, {a, 0.0}));
    // What keeps the constraints beats what does not; among those the violation alone counts.
    CHECK(dominates({b, 0.0}, {a, 0.5}));
    CHECK(dominates({b, 0.5}, {a, 0.7}));
    CHECK_FALSE(dominates({a, 0.5}, {b, 0.5}));
    CHECK(dominates({b, 1e9}, {{}, unbounded}));
    CHECK_FALSE(dominates({{}, unbounded}, {{}, unbounded}));
}

TEST_CASE("ranks of non-dominated fronts, worked by hand", "[models]") {
    const Values values = negated({{1, 5}, {2, 3}, {4, 1}, {3, 4}, {5, 2}, {4, 4}, {6, 6}, {2, 3}});
    CHECK(nondominated_ranks(as_points(values)) == std::vector<std::uint32_t>{0, 0, 0, 1, 1, 2, 3, 0});
    CHECK(nondominated_ranks({}).empty());
    std::vector<ParetoPoint> limited = as_points(values);
    limited[0].trouble = 2.0;
    limited[2].trouble = 1.0;
    limited[4] = {{}, unbounded};
    CHECK(nondominated_ranks(limited) == std::vector<std::uint32_t>{5, 0, 4, 1, 6, 2, 3, 0});
}

TEST_CASE("ranks of random points are those of the definition", "[models]") {
    for (std::uint32_t round = 0; round < 60; ++round) {
        base::RngStream random(3, base::user_purpose(0), round);
        const std::size_t objectives = 2 + round % 3;
        Values values;
        for (std::size_t i = 0; i < 5 + round; ++i) {
            std::vector<double> point;
            for (std::size_t k = 0; k < objectives; ++k) // few values, so that many are equal
                point.push_back(static_cast<double>(random.below(round % 2 == 0 ? 5 : 1000)));
            values.push_back(point);
        }
        auto points = as_points(values);
        for (std::size_t i = 0; i < points.size(); i += 7) points[i].trouble = static_cast<double>(random.below(3));
        CHECK(nondominated_ranks(points) == ranks_by_definition(points));
    }
}

TEST_CASE("crowding distances, worked by hand", "[models]") {
    const Values values = negated({{0, 10}, {1, 7}, {2, 5}, {5, 2}, {9, 1}, {10, 0}});
    const auto points = as_points(values);
    const auto distances = crowding_distances(points, nondominated_ranks(points));
    const std::vector<double> expected{unbounded, 0.7, 0.9, 1.1, 0.7, unbounded};
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (std::isinf(expected[i]))
            CHECK(std::isinf(distances[i]));
        else
            CHECK(distances[i] == Approx(expected[i]));
    }
    // The order: both ends, then by room; of equal ones the first that was given.
    CHECK(pareto_order(points) == std::vector<std::size_t>{0, 5, 3, 2, 1, 4});
    const Values alike{{1, 1}, {1, 1}, {1, 1}};
    CHECK(pareto_order(as_points(alike)) == std::vector<std::size_t>{0, 2, 1});
}

TEST_CASE("hypervolumes, worked by hand", "[models]") {
    const std::vector<double> origin{0.0, 0.0};
    CHECK(hypervolume({}, origin) == 0.0);
    CHECK(hypervolume({{2, 3}}, origin) == 6.0);
    CHECK(hypervolume({{1, 3}, {2, 2}, {3, 1}}, origin) == 6.0);
    CHECK(hypervolume({{1, 3}, {2, 2}, {3, 1}, {1, 1}, {2, 2}}, origin) == 6.0);
    CHECK(hypervolume({{5, 0}, {-1, 4}}, origin) == 0.0); // not above the reference everywhere
    CHECK(hypervolume({{1, 1, 3}, {2, 2, 1}}, std::vector{0.0, 0.0, 0.0}) == Approx(3.0 + 4.0 - 1.0));
    CHECK(hypervolume({{4}, {7}}, std::vector{1.0}) == 6.0);
}

TEST_CASE("hypervolumes agree with Optuna's", "[models]") {
    for (const testing::Volume& expected : testing::volumes) {
        const auto points = negated(reference_points(expected.points, expected.objectives));
        const std::vector<double> reference(static_cast<std::size_t>(expected.objectives), -1.1);
        CAPTURE(expected.points, expected.objectives);
        CHECK(hypervolume(points, reference) == Approx(expected.value).epsilon(1e-9).margin(1e-12));
    }
}

} // namespace pareto_test
