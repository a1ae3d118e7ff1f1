// SPDX-License-Identifier: Apache-2.0
// Median stopping against the cases of Ray's own tests (python/ray/tune/tests/test_trial_scheduler.py), and by hand.
#include <algorithm>
#include <limits>
#include <vector>

#include "ranktune/base/rng.hpp"
#include "schedulers/driver.hpp"
#include "schedulers/median_set.hpp"
#include "support/catch.hpp"

namespace median_test {

using namespace ranktune;
using namespace ranktune::schedulers;

namespace {

constexpr Verb CONTINUE = Verb::go_on;
constexpr Verb STOP = Verb::stop;
constexpr Verb PAUSE = Verb::pause;

study::StudySpec median(double grace, std::uint32_t min_samples, bool hard_stop = true,
                        study::Mode mode = study::Mode::max) {
    return spec_of(
        chosen("median", {{"grace", grace}, {"min_samples", static_cast<int>(min_samples)}, {"hard_stop", hard_stop}}),
        1000, mode);
}

} // namespace

TEST_CASE("median: a constant trial falls behind (testMedianStoppingConstantPerf)", "[schedulers]") {
    for (const auto mode : {study::Mode::max, study::Mode::min}) {
        const double sign = mode == study::Mode::max ? 1.0 : -1.0;
        TwoTrials d(median(0, 1, true, mode), sign);
        d.complete(d.a, 10, sign * 1000);
        CHECK(d.result(d.b, 5, sign * 450) == CONTINUE);
        CHECK(d.result(d.b, 6, sign * 0) == CONTINUE);
        const Verdict verdict = d.ask(d.b, 10, sign * 450);
        CHECK(verdict == Verdict{STOP, Reason::below_median, sign * 450, sign * 500});
    }
}

TEST_CASE("median: only trials that got so far count (testMedianStoppingOnCompleteOnly)", "[schedulers]") {
    TwoTrials d(median(0, 1));
    CHECK(d.result(d.b, 100, 0) == CONTINUE);
    d.complete(d.a, 101, 1000);
    CHECK(d.result(d.b, 101, 0) == STOP);
}

TEST_CASE("median: nothing is judged before the grace period (testMedianStoppingGracePeriod)", "[schedulers]") {
    TwoTrials d(median(2.5, 1));
    d.complete(d.a, 10, 1000);
    d.complete(d.b, 10, 1000);
    const TrialId c = d.add();
    CHECK(d.scheduler().next_decision_point(c, 0) == 3);
    CHECK(d.scheduler().next_decision_point(c, 3) == 4);
    CHECK(d.result(c, 1, 10) == CONTINUE);
    CHECK(d.result(c, 2, 10) == CONTINUE);
    CHECK(d.result(c, 3, 10) == STOP);
}

TEST_CASE("median: not without min_samples others (testMedianStoppingMinSamples)", "[schedulers]") {
    TwoTrials d(median(0, 2));
    d.complete(d.a, 10, 1000);
    const TrialId c = d.add();
    CHECK(d.result(c, 5, 10) == CONTINUE);
    d.complete(d.b, 5, 1000);
    CHECK(d.result(c, 5, 10) == STOP); // the same iteration again: its own mean is left out
}

TEST_CASE("median: of two it is the mean (testMedianStoppingUsesMedian)", "[schedulers]") {
    TwoTrials d(median(0, 1));
    d.complete(d.a, 10, 1000);
    d.complete(d.b, 10, 1000);
    const TrialId c = d.add();
    CHECK(d.result(c, 1, 260) == CONTINUE); // {50, 450}: 250
    CHECK(d.result(c, 2, 260) == STOP);     // {100, 450}: 275
}

TEST_CASE("median: with hard_stop = false trials pause and go on when nothing is left (testMedianStoppingSoftStop)",
          "[schedulers]") {
    TwoTrials d(median(0, 1, false));
    d.complete(d.a, 10, 1000);
    d.complete(d.b, 10, 1000);
    const TrialId e = d.add();
    const TrialId c = d.add();
    CHECK(d.result(c, 1, 260) == CONTINUE); // {50, 450}: 250
    CHECK(d.result(c, 2, 260) == PAUSE);    // {100, 450}: 275
    CHECK(d.ask(c, 3, 260).verb == PAUSE);  // until it obeys
    CHECK(d.result(e, 1, 200) == PAUSE);    // {50, 260, 450}: 260
    CHECK(!d.next({.can_create = true, .active = false}));
    const Pool rest{.can_create = false, .active = true};
    REQUIRE(d.next(rest));
    CHECK(*d.next(rest) == Promotion{e, 1, 1000, Reason::promoted}); // the lower id, although it paused later
    d.promote(*d.next(rest));
    REQUIRE(d.next(rest));
    CHECK(d.next(rest)->trial == c);
    // From here on it is not judged any more.
    CHECK(d.scheduler().next_decision_point(e, 2) == 1000);
    const auto before = d.snapshot();
    CHECK(d.result(e, 3, -1e9) == CONTINUE);
    CHECK(d.snapshot() == before); // and not counted
    CHECK(d.result(e, 1000, 1) == STOP);
    d.close(c, study::TrialPhase::stopped, Reason::not_promoted);
    CHECK(!d.next(rest));
}

TEST_CASE("median: trials of NaN and infinities run and complete (testMedianStoppingNanInf)", "[schedulers]") {
    const double inf = std::numeric_limits<double>::infinity();
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const auto mode : {study::Mode::max, study::Mode::min}) {
        Driver d(median(0, 1, true, mode));
        for (const double value : {nan, inf, -inf}) {
            const TrialId trial = d.add();
            for (base::Iteration t = 1; t <= 10; ++t) CHECK(d.result(trial, t, value) == CONTINUE); // all equally bad
            d.complete(trial, 11, value);
        }
        const TrialId finite = d.add();
        CHECK(d.result(finite, 1, 3.0) == CONTINUE);
        for (int i = 0; i < 3; ++i) CHECK(d.result(d.add(), 1, 3.0) == CONTINUE);
        CHECK(d.result(d.add(), 1, nan) == STOP); // the median of {-inf x3, 3 x4} is 3
    }
}

TEST_CASE("median: one non-finite value makes a mean worst, the best value stays", "[schedulers]") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    Driver d(median(1, 1));
    const TrialId a = d.add();
    const TrialId b = d.add();
    CHECK(d.result(a, 1, 5.0) == CONTINUE);
    CHECK(d.result(a, 2, nan) == CONTINUE);
    CHECK(d.result(a, 3, 5.0) == CONTINUE);
    CHECK(d.result(b, 1, 4.0) == STOP); // asked only: it goes on here
    CHECK(d.result(b, 2, 4.0) == CONTINUE);
    CHECK(d.result(b, 3, 4.0) == CONTINUE);
    CHECK(d.result(a, 4, nan) == CONTINUE);
}

TEST_CASE("median: sums beyond the range of numbers do not become NaN", "[schedulers]") {
    Driver d(median(1, 1));
    const TrialId a = d.add();
    base::Iteration t = 1;
    for (const double value : {1.7e308, 1.7e308, -1.7e308, -1.7e308, -1.7e308}) d.result(a, t++, value);
    const TrialId b = d.add();
    for (base::Iteration i = 1; i <= 5; ++i) CHECK(d.ask(b, i, 1.7e308).verb == CONTINUE);
    CHECK(d.ask(b, 1, 1.0).verb == STOP);
    CHECK(d.ask(b, 5, 1.0).verb == CONTINUE);
}

TEST_CASE("median: repeated iterations after a loss are neither judged nor counted again", "[schedulers]") {
    Driver d(median(1, 1));
    const TrialId a = d.add();
    const TrialId b = d.add();
    for (base::Iteration t = 1; t <= 4; ++t) CHECK(d.result(b, t, 1.0) == CONTINUE);
    for (base::Iteration t = 1; t <= 4; ++t) CHECK(d.result(a, t, 3.0) == CONTINUE);
    const auto before = d.snapshot();
    d.ended(b, study::AttemptOutcome::lost, true);
    for (base::Iteration t = 2; t <= 3; ++t) CHECK(d.result(b, t, 1.0) == CONTINUE);
    CHECK(d.snapshot() == before);
    CHECK(d.result(b, 5, 1.0) == CONTINUE); // a has not got there
    CHECK(d.result(a, 5, 3.0) == CONTINUE);
    CHECK(d.result(b, 6, 1.0) == CONTINUE);
    CHECK(d.result(a, 6, 3.0) == CONTINUE);
    CHECK(d.result(b, 6, 1.0) == STOP); // last iteration again: judged as it stands now
}

TEST_CASE("median: agrees with the rule computed anew from all reports", "[schedulers]") {
    struct Result {
        base::Iteration t;
        double value;
    };
    base::RngStream random(23, base::Purpose::fault);
    std::size_t stops = 0;
    for (const double grace : {0.0, 2.5, 4.0}) {
        Driver d(median(grace, 3), false);
        std::vector<std::vector<Result>> results(40);
        for (std::size_t i = 0; i < results.size(); ++i) d.add();
        for (int step = 0; step < 500; ++step) {
            const auto i = static_cast<std::uint32_t>(random.below(results.size()));
            auto& own = results[i];
            // One in five skips iterations.
            const base::Iteration t =
                (own.empty() ? 0 : own.back().t) + 1 + (random.below(5) == 0 ? random.below(4) : 0);
            const double value = 0.1 * i + random.uniform();
            std::vector<double> means;
            for (std::size_t k = 0; k < results.size(); ++k) {
                if (k == i || results[k].empty() || results[k].back().t < t) continue;
                double sum = 0.0;
                double count = 0.0;
                for (const Result& r : results[k]) {
                    if (static_cast<double>(r.t) < grace || r.t > t) continue;
                    sum += r.value;
                    count += 1.0;
                }
                if (count > 0.0) means.push_back(sum / count);
            }
            double best = value;
            for (const Result& r : own) best = std::max(best, r.value);
            Verb expected = CONTINUE;
            if (static_cast<double>(t) >= grace && means.size() >= 3) {
                std::sort(means.begin(), means.end());
                const std::size_t half = means.size() / 2;
                const double middle = means.size() % 2 == 1 ? means[half] : 0.5 * means[half - 1] + 0.5 * means[half];
                if (best < middle) expected = STOP;
            }
            REQUIRE(d.result(base::TrialId(i), t, value) == expected);
            own.push_back({t, value});
            if (expected == STOP) ++stops;
        }
        CHECK_NOTHROW(d.scheduler().check_invariants());
    }
    CHECK(stops > 100);
}

TEST_CASE("median: a trial is not one of the others", "[schedulers]") {
    Driver d(median(1, 2));
    const TrialId a = d.add();
    const TrialId b = d.add();
    CHECK(d.result(a, 1, 3.0) == CONTINUE);
    CHECK(d.result(b, 1, 1.0) == CONTINUE);
    CHECK(d.result(b, 1, 1.0) == CONTINUE); // again: still one other, of two that are needed
}

TEST_CASE("a set knows its median, with and without a member", "[schedulers]") {
    base::RngStream random(7, base::Purpose::fault);
    MedianSet set;
    std::vector<double> values;
    for (int i = 0; i < 300; ++i) {
        const double value = static_cast<double>(random.below(40)); // many ties
        set.insert(value);
        values.push_back(value);
        REQUIRE(set.valid());
        const auto median_of = [](std::vector<double> v) {
            std::sort(v.begin(), v.end());
            const std::size_t half = v.size() / 2;
            return v.size() % 2 == 1 ? v[half] : (v[half - 1] + v[half]) / 2;
        };
        REQUIRE(set.median() == median_of(values));
        if (values.size() < 2) continue;
        for (const std::size_t member : {std::size_t{0}, values.size() / 2, values.size() - 1}) {
            auto others = values;
            others.erase(others.begin() + static_cast<std::ptrdiff_t>(member));
            REQUIRE(set.median_without(values[member]) == median_of(others));
        }
    }
}

TEST_CASE("median: impossible settings are refused", "[schedulers]") {
    CHECK_THROWS_AS(median(-1, 1), base::UsageError);
    CHECK_THROWS_AS(median(0, 0), base::UsageError);
}

} // namespace median_test
