// SPDX-License-Identifier: Apache-2.0
#include "models/welch.hpp"

#include <limits>
#include <vector>

#include "support/catch.hpp"

using ranktune::models::welch_test;

TEST_CASE("Welch's test gives the values of scipy.stats.ttest_ind(equal_var=False)", "[models]") {
    const std::vector<double> a{27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1,
                                21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4};
    const std::vector<double> b{27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0,
                                24.8, 20.2, 21.9, 22.1, 22.9, 30.5, 23.0};
    CHECK(welch_test(a, b).p_value == Approx(0.010081417804092205).epsilon(1e-9));
    CHECK(welch_test(b, a).p_value == welch_test(a, b).p_value);
    CHECK(welch_test(a, b).difference == Approx(-2.74).epsilon(1e-9));
    CHECK(welch_test(b, a).difference == Approx(2.74).epsilon(1e-9));
    CHECK(welch_test(std::vector<double>{1, 2, 3}, std::vector<double>{1, 2, 3, 4, 10}).p_value ==
          Approx(0.288510830028776).epsilon(1e-9));
}

TEST_CASE("Welch's test of samples that say nothing, or everything", "[models]") {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    CHECK(welch_test(std::vector<double>{1.0}, std::vector<double>{2.0, 3.0}).p_value == 1.0);
    CHECK(welch_test(std::vector<double>{2.0, 2.0}, std::vector<double>{2.0, 2.0}).p_value == 1.0);
    CHECK(welch_test(std::vector<double>{1.0, 1.0}, std::vector<double>{2.0, 2.0}).p_value == 0.0);
    CHECK(welch_test(std::vector<double>{1.0, -infinity}, std::vector<double>{2.0, 3.0}).p_value == 1.0);
}
