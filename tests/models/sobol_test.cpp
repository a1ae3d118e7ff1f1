// SPDX-License-Identifier: Apache-2.0
#include "models/sobol.hpp"

#include <cmath>
#include <set>

#include "support/catch.hpp"

namespace sobol_test {

using ranktune::models::Sobol;

namespace {

using Points = std::vector<std::vector<double>>;

Points points(const Sobol& sequence, std::uint32_t from, std::uint32_t count) {
    Points all;
    for (std::uint32_t i = 0; i < count; ++i) all.push_back(sequence.point(from + i));
    return all;
}

/// Whether every interval [k/n, (k+1)/n) of the dimension holds exactly one of the n points.
bool one_per_interval(const Points& all, std::size_t dimension) {
    std::set<std::size_t> cells;
    for (const auto& point : all)
        cells.insert(static_cast<std::size_t>(point[dimension] * static_cast<double>(all.size())));
    return cells.size() == all.size() && *cells.rbegin() == all.size() - 1;
}

/// Whether every box of 2^a x 2^b equal boxes holds one point, for every a + b = m: a (0, m, 2)-net.
bool is_net(const Points& all, unsigned m) {
    for (unsigned a = 0; a <= m; ++a) {
        std::set<std::pair<int, int>> cells;
        for (const auto& point : all)
            cells.emplace(static_cast<int>(std::ldexp(point[0], static_cast<int>(a))),
                          static_cast<int>(std::ldexp(point[1], static_cast<int>(m - a))));
        if (cells.size() != all.size()) return false;
    }
    return true;
}

/// Hickernell's centred L2 discrepancy, squared.
double centred_discrepancy(const Points& x) {
    const auto n = static_cast<double>(x.size());
    const std::size_t d = x.front().size();
    double single = 0.0;
    double pairs = 0.0;
    for (const auto& a : x) {
        double product = 1.0;
        for (std::size_t k = 0; k < d; ++k) {
            const double u = std::abs(a[k] - 0.5);
            product *= 1.0 + 0.5 * u - 0.5 * u * u;
        }
        single += product;
        for (const auto& b : x) {
            product = 1.0;
            for (std::size_t k = 0; k < d; ++k)
                product *= 1.0 + 0.5 * std::abs(a[k] - 0.5) + 0.5 * std::abs(b[k] - 0.5) - 0.5 * std::abs(a[k] - b[k]);
            pairs += product;
        }
    }
    return std::pow(13.0 / 12.0, static_cast<double>(d)) - 2.0 / n * single + pairs / (n * n);
}

} // namespace

TEST_CASE("Sobol gives the published first points of new-joe-kuo-6", "[models]") {
    const Sobol sequence(10, std::nullopt);
    CHECK(sequence.point(0) == std::vector<double>(10, 0.0));
    CHECK(sequence.point(1) == std::vector<double>(10, 0.5));
    CHECK(sequence.point(2) == std::vector{.75, .25, .25, .25, .75, .75, .25, .75, .75, .75});
    CHECK(sequence.point(3) == std::vector{.25, .75, .75, .75, .25, .25, .75, .25, .25, .25});
    CHECK(sequence.point(4) == std::vector{.375, .375, .625, .875, .375, .125, .375, .875, .875, .625});
    CHECK(sequence.point(5) == std::vector{.875, .875, .125, .375, .875, .625, .875, .375, .375, .125});
    CHECK(sequence.point(6) == std::vector{.625, .125, .875, .625, .625, .875, .125, .125, .125, .375});
    CHECK(sequence.point(7) == std::vector{.125, .625, .375, .125, .125, .375, .625, .625, .625, .875});
    CHECK(sequence.point(8) == std::vector{.1875, .3125, .9375, .4375, .5625, .3125, .4375, .9375, .9375, .3125});
}

TEST_CASE("Sobol gives the published points of high dimensions", "[models]") {
    const auto fifth = Sobol(100, std::nullopt).point(5);
    CHECK(fifth[19] == .625);
    CHECK(fifth[49] == .875);
    CHECK(fifth[99] == .375);
    const auto far = Sobol(1000, std::nullopt).point(4000);
    CHECK(far[0] == .054931640625);
    CHECK(far[1] == .120849609375);
    CHECK(far[499] == .477783203125);
    CHECK(far[999] == .534912109375);
}

TEST_CASE("the centred discrepancy is the published one", "[models]") {
    CHECK(centred_discrepancy(points(Sobol(2, std::nullopt), 0, 256)) == Approx(1.663e-5).epsilon(1e-3));
    CHECK(centred_discrepancy(points(Sobol(5, std::nullopt), 0, 1024)) == Approx(2.53e-5).epsilon(1e-2));
}

TEST_CASE("every dimension of the table is a permutation of the intervals, plain and scrambled", "[models]") {
    for (const auto seed : {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(9)}) {
        const Sobol sequence(Sobol::max_dimensions, seed);
        const Points all = points(sequence, 0, 256);
        std::size_t balanced = 0;
        for (std::size_t d = 0; d < Sobol::max_dimensions; ++d) balanced += one_per_interval(all, d) ? 1 : 0;
        CHECK(balanced == Sobol::max_dimensions);
    }
}

TEST_CASE("the first 2^m points and every later block of 2^m are a net, plain and scrambled", "[models]") {
    for (const auto seed :
         {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(1), std::optional<std::uint64_t>(2)}) {
        const Sobol sequence(2, seed);
        for (const unsigned m : {1U, 3U, 6U, 10U}) {
            CHECK(is_net(points(sequence, 0, 1U << m), m));
            CHECK(is_net(points(sequence, 5U << m, 1U << m), m));
        }
        CHECK_FALSE(is_net(points(sequence, 1, 64), 6));
    }
}

TEST_CASE("scrambling depends on seed and dimension and leaves no point at the corner", "[models]") {
    const Sobol one(8, 1);
    const Sobol same(8, 1);
    const Sobol other(8, 2);
    CHECK(one.point(1000) == same.point(1000));
    CHECK(one.point(0) != other.point(0));
    const auto first = one.point(0);
    CHECK(std::set<double>(first.begin(), first.end()).size() == 8);
    for (const double x : first) CHECK((x > 0.0 && x < 1.0));
    // A sequence of fewer dimensions is the beginning of one of more.
    const auto shorter = Sobol(3, 1).point(77);
    const auto longer = one.point(77);
    CHECK(shorter == std::vector<double>(longer.begin(), longer.begin() + 3));
}

TEST_CASE("a scrambled point is uniform over seeds", "[models]") {
    constexpr int seeds = 4000;
    double sum = 0.0;
    double square = 0.0;
    double product = 0.0;
    for (int seed = 0; seed < seeds; ++seed) {
        const auto point = Sobol(2, static_cast<std::uint64_t>(seed)).point(5);
        sum += point[0];
        square += point[0] * point[0];
        product += (point[0] - 0.5) * (point[1] - 0.5);
    }
    CHECK(sum / seeds == Approx(0.5).margin(0.02));
    CHECK(square / seeds == Approx(1.0 / 3).margin(0.02));
    CHECK(product / seeds == Approx(0.0).margin(0.006));
}

TEST_CASE("scrambled points integrate a smooth function far better than random ones", "[models]") {
    // A smooth integrand over 5 dimensions with mean 1; 1,024 points; random ones err by about 0.01.
    double worst = 0.0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        double mean = 0.0;
        for (const auto& point : points(Sobol(5, seed), 0, 1024)) {
            double f = 1.0;
            for (std::size_t k = 0; k < 5; ++k) f *= 1.0 + (point[k] - 0.5) / static_cast<double>(k + 1);
            mean += f / 1024;
        }
        worst = std::max(worst, std::abs(mean - 1.0));
    }
    CHECK(worst < 2e-4);
}

TEST_CASE("a sequence may have no dimensions, and indices reach the end of 32 bits", "[models]") {
    CHECK(Sobol(0, 1).point(3).empty());
    const auto last = Sobol(3, std::nullopt).point(0xFFFFFFFFU);
    for (const double x : last) CHECK((x > 0.0 && x < 1.0));
    CHECK(last != Sobol(3, std::nullopt).point(0xFFFFFFFEU));
}

} // namespace sobol_test
