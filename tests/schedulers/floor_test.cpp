// SPDX-License-Identifier: Apache-2.0
// ASHA that stops, rule "floor", worked by hand.
#include <limits>
#include <vector>

#include "schedulers/driver.hpp"
#include "support/catch.hpp"

namespace floor_test {

using namespace ranktune;
using namespace ranktune::schedulers;

namespace {

study::StudySpec floor_rule(base::Iteration ceiling = 27) {
    return spec_of(chosen("asha", {{"variant", "stop"}}), ceiling);
}

std::vector<std::uint64_t> entries(const Driver& d) {
    std::vector<std::uint64_t> all;
    for (const auto& rung : d.scheduler().rungs()) all.push_back(rung.entries);
    return all;
}

} // namespace

TEST_CASE("floor: the rungs of all brackets are shown together", "[schedulers]") {
    auto spec = floor_rule(9);
    set_option(spec.scheduler, {"brackets", 2}); // 1 3 9, and 3 9
    Driver d(spec);
    d.report(d.add_in(0), 1, 5.0);
    d.report(d.add_in(1), 3, 5.0);
    CHECK(entries(d) == std::vector<std::uint64_t>{1, 1, 0});
}

TEST_CASE("floor: a trial goes on iff it is among the max(floor(m/3), 1) best, itself included", "[schedulers]") {
    Driver d(floor_rule());
    const auto arrive = [&d](double value) { return d.report(d.add(), 1, value); };
    CHECK(arrive(0.5) == Verdict{Verb::go_on, Reason::first_arrival});
    CHECK(arrive(0.4) == Verdict{Verb::stop, Reason::not_in_top, 1, 2});
    CHECK(arrive(0.6) == Verdict{Verb::go_on, Reason::in_top, 1, 3});
    CHECK(arrive(0.5) == Verdict{Verb::stop, Reason::not_in_top, 1, 4});
    CHECK(arrive(0.6) == Verdict{Verb::stop, Reason::not_in_top, 1, 5});  // a tie goes to the lower id
    CHECK(arrive(0.55) == Verdict{Verb::stop, Reason::not_in_top, 1, 6}); // 0.6 and 0.6 are the best two
    CHECK(arrive(0.7) == Verdict{Verb::go_on, Reason::in_top, 2, 7});
    CHECK(arrive(std::numeric_limits<double>::quiet_NaN()) == Verdict{Verb::stop, Reason::not_in_top, 1, 8});
    CHECK(arrive(0.6) == Verdict{Verb::stop, Reason::not_in_top, 1, 9}); // the third of the 0.6 after one 0.7
    const auto rung = d.scheduler().rungs().front();
    CHECK(rung.entries == 9);
    CHECK(rung.promoted == 3);
}

TEST_CASE("floor: rungs end with the ceiling, where a trial stops and is entered", "[schedulers]") {
    Driver d(floor_rule(20));
    const TrialId trial = d.add();
    CHECK(d.scheduler().next_decision_point(trial, 0) == 1);
    for (base::Iteration t = 1; t < 20; ++t) {
        const Verdict verdict = d.report(trial, t, 1.0);
        CHECK(verdict.verb == Verb::go_on);
        CHECK((verdict.reason == Reason::first_arrival) == (t == 1 || t == 3 || t == 9));
    }
    CHECK(d.scheduler().next_decision_point(trial, 9) == 20);
    CHECK(d.report(trial, 20, 1.0) == Verdict{Verb::stop, Reason::max_iterations, 20});
    CHECK(entries(d) == std::vector<std::uint64_t>{1, 1, 1, 1});
}

TEST_CASE("floor: a failed trial is entered as worst where it was heading, a stopped one is not", "[schedulers]") {
    Driver d(floor_rule());
    const TrialId failed = d.add();
    const TrialId stopped = d.add();
    const TrialId later = d.add();
    d.report(failed, 1, 1.0);
    d.fail(failed);
    CHECK(entries(d) == std::vector<std::uint64_t>{1, 1, 0, 0});
    d.close(stopped, study::TrialPhase::stopped, Reason::trial_time);
    CHECK(entries(d) == std::vector<std::uint64_t>{1, 1, 0, 0});
    CHECK(d.report(later, 1, 2.0).verb == Verb::go_on);
    CHECK(d.report(later, 3, 0.0).reason == Reason::in_top); // better than the failure
}

TEST_CASE("floor: repeated iterations are not entered twice, skipped rungs count as passed", "[schedulers]") {
    Driver d(floor_rule());
    const TrialId trial = d.add();
    d.report(trial, 1, 1.0);
    d.ended(trial, study::AttemptOutcome::lost, true);
    CHECK(d.report(trial, 1, 0.0).reason == Reason::below_rung);
    CHECK(d.report(trial, 10, 0.0).reason == Reason::first_arrival);
    CHECK(d.report(trial, 11, 0.0).reason == Reason::below_rung);
    CHECK(entries(d) == std::vector<std::uint64_t>{1, 0, 1, 0});
}

} // namespace floor_test
