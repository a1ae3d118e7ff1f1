// SPDX-License-Identifier: Apache-2.0
// Rule "ray" against the cases of Ray's own tests (python/ray/tune/tests/test_trial_scheduler.py); each test names its
// case.
#include <limits>
#include <vector>

#include "schedulers/driver.hpp"
#include "support/catch.hpp"

namespace ray_test {

using namespace ranktune;
using namespace ranktune::schedulers;

namespace {

constexpr Verb CONTINUE = Verb::go_on;
constexpr Verb STOP = Verb::stop;

study::StudySpec ray(double grace, base::Iteration max_t, double eta, std::uint32_t brackets = 1,
                     study::Mode mode = study::Mode::max) {
    return spec_of(chosen("asha", {{"variant", "stop"},
                                   {"rule", "ray"},
                                   {"first_rung", grace},
                                   {"eta", eta},
                                   {"brackets", static_cast<int>(brackets)}}),
                   max_t, mode);
}

} // namespace

TEST_CASE("ray: the cut-off is a quantile of earlier entries (testAsyncHBUsesPercentile)", "[schedulers]") {
    TwoTrials d(ray(1, 10, 2));
    d.complete(d.a, 10, 1000);
    d.complete(d.b, 10, 1000);
    const TrialId c = d.add();
    CHECK(d.result(c, 1, 260) == STOP); // median of {100, 450} = 275
    CHECK(d.result(c, 2, 260) == STOP); // median of {200, 450} = 325
}

TEST_CASE("ray: nothing is compared before the grace period, which may be fractional (testAsyncHBGracePeriod)",
          "[schedulers]") {
    TwoTrials d(ray(2.5, 100, 3));
    d.complete(d.a, 10, 1000);
    d.complete(d.b, 10, 1000);
    const TrialId c = d.add();
    CHECK(d.result(c, 1, 10) == CONTINUE);
    CHECK(d.result(c, 2, 10) == CONTINUE);
    CHECK(d.result(c, 3, 10) == STOP); // 2/3 quantile of {300, 450} = 400
    std::vector<base::Iteration> levels;
    for (const auto& rung : d.scheduler().rungs()) levels.push_back(rung.iteration);
    CHECK(levels == std::vector<base::Iteration>{3, 8, 23, 68}); // 2.5, 7.5, 22.5, 67.5
}

TEST_CASE("ray: the ceiling stops whatever the value (testAsyncHBOnComplete)", "[schedulers]") {
    TwoTrials d(ray(1, 10, 4));
    const TrialId c = d.add();
    d.complete(c, 10, 1000);
    CHECK(d.result(d.b, 101, 0) == STOP);
    CHECK(d.scheduler().rungs().back().entries == 3); // at rung 4: a, b, and c, which completed beyond it
}

TEST_CASE("ray: more brackets than rungs, all trials end (testAsyncHBAllCompletes)", "[schedulers]") {
    Driver d(ray(1, 10, 4, 10));
    for (int i = 0; i < 10; ++i) CHECK(d.result(d.add(), 10, -2) == STOP);
    // The tenth bracket starts at 4^9: it has no rung at all, and its trials run to the ceiling.
    const TrialId lone = d.add_in(9);
    for (base::Iteration t = 1; t < 10; ++t) CHECK(d.result(lone, t, -1e9) == CONTINUE);
    CHECK(d.result(lone, 10, 1e9) == STOP);
    CHECK(d.scheduler().next_decision_point(lone, 3) == 10);
}

TEST_CASE("ray: NaN neither stops a trial nor counts in the quantile (testAsyncHBNanPercentile)", "[schedulers]") {
    Driver d(ray(1, 10, 2));
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const TrialId a = d.add();
    const TrialId b = d.add();
    for (base::Iteration t = 0; t < 10; ++t) CHECK(d.result(a, t, 450) == CONTINUE);
    for (base::Iteration t = 0; t < 10; ++t) CHECK(d.result(b, t, nan) == CONTINUE);
    d.complete(a, 10, 450);
    d.complete(b, 10, nan);
    const TrialId c = d.add();
    CHECK(d.result(c, 1, 260) == STOP);
    CHECK(d.result(c, 2, 260) == STOP);
}

TEST_CASE("ray: with stop_last_trials = false trials go on beyond the ceiling (testAsyncHBNonStopTrials)",
          "[schedulers]") {
    auto s = ray(1, 3, 2);
    set_option(s.scheduler, {"stop_last_trials", false});
    Driver d(s);
    std::vector<TrialId> t;
    for (int i = 0; i < 4; ++i) t.push_back(d.add());
    CHECK(d.result(t[0], 2, 10) == CONTINUE);
    CHECK(d.result(t[1], 2, 8) == STOP);
    CHECK(d.result(t[2], 2, 6) == STOP);
    CHECK(d.result(t[3], 2, 4) == STOP);
    CHECK(d.result(t[0], 4, 10) == CONTINUE);
    CHECK(d.result(t[0], 8, 10) == CONTINUE);
    CHECK(d.result(t[0], 14, 1) == CONTINUE);
}

TEST_CASE("ray: saved and loaded into a new scheduler, it decides as before (testAsyncHBSaveRestore)", "[schedulers]") {
    Driver d(ray(1, 10, 2));
    for (int i = 0; i < 5; ++i) CHECK(d.result(d.add(), 1, 10) != STOP);
    CHECK(d.result(d.add(), 1, 5) == STOP);
    const TrialId seventh = d.add();
    d.replace_by_restored();
    CHECK(d.result(seventh, 1, 4) == STOP);
    CHECK(d.result(d.add(), 1, 2) == STOP);
}

TEST_CASE("ray: either mode (_test_metrics)", "[schedulers]") {
    for (const auto mode : {study::Mode::max, study::Mode::min}) {
        const double sign = mode == study::Mode::max ? 1.0 : -1.0;
        TwoTrials d(ray(1, 100, 4, 1, mode), sign);
        d.complete(d.a, 10, sign * 1000);
        CHECK(d.result(d.b, 5, sign * 450) == CONTINUE);
        CHECK(d.result(d.b, 6, sign * 0) == CONTINUE);
    }
}

TEST_CASE("ray: trials of NaN and infinities run and complete (testAsyncHBNanInf)", "[schedulers]") {
    const double inf = std::numeric_limits<double>::infinity();
    for (const auto mode : {study::Mode::max, study::Mode::min}) {
        Driver d(ray(1, 100, 4, 1, mode));
        for (const double value : {std::numeric_limits<double>::quiet_NaN(), inf, -inf}) {
            const TrialId trial = d.add();
            for (base::Iteration t = 1; t <= 10; ++t) CHECK(d.result(trial, t, value) == CONTINUE);
            d.complete(trial, 11, value);
        }
        for (int i = 0; i < 3; ++i) CHECK(d.result(d.add(), 1, 0.5) == CONTINUE);
        CHECK(d.result(d.add(), 1, inf) == STOP); // either infinity is worst, in either mode: cut-off 0.5
    }
}

TEST_CASE("ray: rungs of grace 1, max_t 100, eta 4; equality with the cut-off continues", "[schedulers]") {
    Driver d(ray(1, 100, 4));
    std::vector<base::Iteration> levels;
    for (const auto& rung : d.scheduler().rungs()) levels.push_back(rung.iteration);
    CHECK(levels == std::vector<base::Iteration>{1, 4, 16, 64});
    for (int i = 0; i < 7; ++i) CHECK(d.result(d.add(), 1, 0.1) == CONTINUE);
    CHECK(d.result(d.add(), 1, std::nextafter(0.1, 0.0)) == STOP);
}

TEST_CASE("ray: a skipped rung is compared by the next report, one rung per report", "[schedulers]") {
    Driver d(ray(1, 100, 4)); // 1, 4, 16, 64
    const TrialId first = d.add();
    for (base::Iteration t = 1; t < 20; ++t) CHECK(d.result(first, t, 1.0) == CONTINUE);
    const TrialId jumper = d.add();
    CHECK(d.result(jumper, 16, 2.0) == CONTINUE); // entered at 16 alone
    CHECK(d.scheduler().rungs()[2].entries == 2);
    CHECK(d.scheduler().rungs()[1].entries == 1);
    CHECK(d.result(jumper, 17, 0.0) == STOP); // compared at 4, where 1.0 stands
    CHECK(d.scheduler().rungs()[1].entries == 2);

    auto s = ray(1, 100, 4);
    set_option(s.scheduler, {"stop_last_trials", false});
    Driver other(s);
    const TrialId one = other.add();
    for (base::Iteration t = 1; t < 20; ++t) CHECK(other.result(one, t, 1.0) == CONTINUE);
    const TrialId two = other.add();
    CHECK(other.result(two, 16, 2.0) == CONTINUE);
    CHECK(other.result(two, 17, 0.0) == CONTINUE); // the search ends at rung 16
}

TEST_CASE("ray: fractional eta is accepted", "[schedulers]") {
    Driver d(ray(1, 20, 1.5)); // 1 1.5 2.25 3.375 5.06 7.59 11.39 17.09
    std::vector<base::Iteration> levels;
    for (const auto& rung : d.scheduler().rungs()) levels.push_back(rung.iteration);
    CHECK(levels == std::vector<base::Iteration>{1, 2, 3, 4, 6, 8, 12, 18});
    CHECK(d.result(d.add(), 1, 3.0) == CONTINUE);
    CHECK(d.result(d.add(), 1, 6.0) == CONTINUE);
    // 1/3 quantile of {3, 6} = 4
    CHECK(d.ask(d.add(), 1, 3.9).verb == STOP);
    CHECK(d.ask(d.add(), 1, 4.1).verb == CONTINUE);
}

TEST_CASE("ray: an eta with more rungs than can be kept is refused", "[schedulers]") {
    CHECK_THROWS_AS(make_scheduler(ray(1, 1000, 1.01)), base::UsageError);
}

} // namespace ray_test
