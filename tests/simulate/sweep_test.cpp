// SPDX-License-Identifier: Apache-2.0
#include "simulate/sweep.hpp"

#include <cmath>
#include <limits>

#include "ranktune/base/error.hpp"
#include "support/catch.hpp"

namespace sweep_test {

using namespace ranktune;
using namespace ranktune::simulate;

TEST_CASE("a sweep is split at commas outside brackets and quotes", "[simulate]") {
    const Axis axis = parse_axis("space.hidden=[[64], [64, 64]],\"choice(1, 2)\",3");
    CHECK(axis.key == "space.hidden");
    CHECK(axis.values == std::vector<std::string>{"[[64], [64, 64]]", "\"choice(1, 2)\"", "3"});
    CHECK_THROWS_AS(parse_axis("scheduler.eta"), base::UsageError);
    CHECK_THROWS_AS(parse_axis("scheduler.eta=2,,3"), base::UsageError);
}

TEST_CASE("several sweeps give their cross product", "[simulate]") {
    const Axis axes[] = {{"a", {"1", "2"}}, {"b", {"x", "y", "z"}}};
    const auto all = combinations(axes);
    REQUIRE(all.size() == 6);
    CHECK(all[0] == std::vector<std::string>{"1", "x"});
    CHECK(all[2] == std::vector<std::string>{"1", "z"});
    CHECK(all[3] == std::vector<std::string>{"2", "x"});
    CHECK(combinations({}).size() == 1);
}

TEST_CASE("quartiles by hand", "[simulate]") {
    const Quartiles four = quartiles({4.0, 1.0, 3.0, 2.0}); // numpy.percentile([1, 2, 3, 4], [25, 50, 75])
    CHECK(four.low == Approx(1.75));
    CHECK(four.median == Approx(2.5));
    CHECK(four.high == Approx(3.25));
    constexpr double never = std::numeric_limits<double>::infinity();
    const Quartiles some = quartiles({never, never, 5.0});
    CHECK(some.median == never);
    CHECK(some.high == never);
    CHECK(quartiles({NAN, 2.0}).median == 2.0);
    CHECK(std::isnan(quartiles({NAN}).median));
}

TEST_CASE("a row counts the seeds that came near the best", "[simulate]") {
    Figures near;
    near.best = 0.9;
    near.near_best_s = 10.0;
    Figures far;
    far.best = 0.7;
    const Figures seeds[] = {near, far};
    const SweepRow row = summarise({"asha"}, seeds);
    CHECK(row.reached == 1);
    CHECK(row.seeds == 2);
    CHECK(row.best.median == Approx(0.8));
    CHECK(std::isinf(row.near_best_s.high));
}

} // namespace sweep_test
