// SPDX-License-Identifier: Apache-2.0
// The expected increase of a volume, beside samples, a closed form and differences.
#include "models/hypervolume_gain.hpp"

#include <cmath>

#include "models/log_improvement.hpp"
#include "ranktune/base/rng.hpp"
#include "support/catch.hpp"
#include "support/hypervolume.hpp"

namespace hypervolume_gain_test {

using namespace ranktune;
using models::HypervolumeGain;
using Point = std::vector<double>;

namespace {

std::vector<Point> random_front(std::size_t size, std::size_t objectives, base::RngStream& random) {
    std::vector<Point> front(size, Point(objectives));
    for (Point& point : front)
        for (double& value : point) value = random.uniform();
    return front;
}

/// The mean of the increases of so many samples.
double sampled(const std::vector<Point>& front, const Point& reference, const Point& means, const Point& deviations,
               int samples, base::RngStream& random) {
    const double before = test::hypervolume(front, reference);
    double sum = 0.0;
    for (int i = 0; i < samples; ++i) {
        std::vector<Point> with = front;
        with.emplace_back();
        for (std::size_t k = 0; k < means.size(); ++k)
            with.back().push_back(means[k] + deviations[k] * random.normal());
        sum += test::hypervolume(std::move(with), reference) - before;
    }
    return sum / samples;
}

} // namespace

TEST_CASE("the gain over one value is the expected improvement", "[models]") {
    const HypervolumeGain gain({{0.3}, {0.7}, {-1.0}});
    CHECK(gain.boxes() == 1);
    const double mean[] = {0.2};
    const double deviation[] = {0.5};
    CHECK(gain.log_expected(mean, deviation) ==
          Approx(models::log_improvement((0.2 - 0.7) / 0.5).value + std::log(0.5)));
    // Far below it, where the improvement underflows.
    const double low[] = {-50.0};
    CHECK(gain.log_expected(low, deviation) < -1000.0);
}

TEST_CASE("the gain is the mean increase of the volume", "[models]") {
    for (const std::size_t m : {1U, 2U, 3U, 4U}) {
        INFO(m);
        base::RngStream random(7, base::user_purpose(0), static_cast<std::uint32_t>(m));
        const Point reference(m, 0.1);
        auto front = random_front(6, m, random); // some cover others, some may lie below the reference
        const Point means = random_front(1, m, random).front();
        const Point deviations(m, 0.4);
        const HypervolumeGain gain(front, reference);
        const double expected = std::exp(gain.log_expected(means, deviations));
        CHECK(sampled(front, reference, means, deviations, 40000, random) == Approx(expected).epsilon(0.05));
    }
}

TEST_CASE("boxes: n + 1 with two objectives, one without a front", "[models]") {
    CHECK(HypervolumeGain({{1, 3}, {2, 2}, {3, 1}}, {0, 0}).boxes() == 4);
    CHECK(HypervolumeGain({{1, 3}, {1, 3}, {0, 9}}, {0, 0}).boxes() == 2);
    CHECK(HypervolumeGain({}, {0, 0, 0}).boxes() == 1);
    const double means[] = {1.0, 2.0, 3.0};
    const double certain[] = {1e-9, 1e-9, 1e-9};
    CHECK(HypervolumeGain({}, {0, 0, 0}).log_expected(means, certain) == Approx(std::log(6.0)));
}

TEST_CASE("the gradient of the gain agrees with differences", "[models]") {
    for (const std::size_t m : {1U, 2U, 3U}) {
        INFO(m);
        base::RngStream random(9, base::user_purpose(0), static_cast<std::uint32_t>(m));
        const HypervolumeGain gain(random_front(5, m, random), Point(m, 0.0));
        for (const double place : {0.5, -3.0}) { // -3: far below
            Point means = random_front(1, m, random).front();
            for (double& mean : means) mean += place;
            Point deviations(m, 0.3);
            Point by_means(m);
            Point by_deviations(m);
            const double value = gain.log_expected(means, deviations, by_means, by_deviations);
            CHECK(value == gain.log_expected(means, deviations));
            for (std::size_t k = 0; k < m; ++k) {
                const auto slope = [&](double& at) {
                    constexpr double step = 1e-5;
                    at += step;
                    const double above = gain.log_expected(means, deviations);
                    at -= 2.0 * step;
                    const double below = gain.log_expected(means, deviations);
                    at += step;
                    return (above - below) / (2.0 * step);
                };
                CHECK(slope(means[k]) == Approx(by_means[k]).epsilon(1e-4));
                CHECK(slope(deviations[k]) == Approx(by_deviations[k]).epsilon(1e-4));
            }
        }
    }
}

} // namespace hypervolume_gain_test
