// SPDX-License-Identifier: Apache-2.0
// [stop.study]: the study stops once it has done enough, says why, and goes on with another limit.
#include "tuner/rules/limits.hpp"
#include "tuner/small_core.hpp"

namespace ranktune::tuner::limits_test {
namespace {

using testing::small_study;
using testing::SmallCore;

/// Trials end by themselves after a report.
SmallCore study_with(const std::string& limits, const std::string& more = "") {
    SmallCore core(small_study("num_trials = 20\nmax_iterations = 9\n" + more,
                               "[stop.study]\n" + limits + "[failure]\ntolerate = 1\n"));
    core.began({"n0", "n1"});
    return core;
}

void ends(SmallCore& core, std::uint32_t trial, double value) {
    core.report(trial, 1, value);
    if (core.trial(trial).attempt.live) core.over(trial, AttemptOutcome::finished);
}

/// Trials that run save and pause; then the study is over.
void wind_down(SmallCore& core) {
    for (std::uint32_t id = 0; id < core.state().trials.size(); ++id)
        if (core.trial(id).attempt.live) core.over(id, AttemptOutcome::stopped);
    REQUIRE(core.state().ended);
    CHECK(core.state().outcome == StudyOutcome::ok);
    CHECK(is_over(core.state()));
}

} // namespace

TEST_CASE("a study that has reached its target stops, and running trials end", "[tuner]") {
    SmallCore core = study_with("target = 0.9\n");
    core.report(0, 1, 0.5);
    core.report(1, 1, 0.89);
    CHECK_FALSE(core.state().draining);
    core.report(1, 2, 0.9);
    REQUIRE(core.state().draining);
    const study::DrainBegan drain = *core.record<study::DrainBegan>();
    CHECK(drain.reason == Reason::target_reached);
    CHECK(drain.why == "the target is reached (stop.study.target): trial #1 has 0.9 at iteration 2");
    CHECK(core.commands().size() == 2); // both groups are told to end
    wind_down(core);
    CHECK(core.state().end_reason == Reason::target_reached);
    CHECK(core.state().end_message == drain.why);
    CHECK(core.trial(0).phase == TrialPhase::stopped);
    CHECK(core.trial(0).closed_by == Reason::target_reached);
}

TEST_CASE("a study stops when so many trials have brought nothing better", "[tuner]") {
    SmallCore core = study_with("no_better_in = 3\n");
    ends(core, 0, 0.5);
    ends(core, 1, 0.4);
    ends(core, 2, 0.6); // better
    CHECK(core.state().since_better == 0);
    ends(core, 3, 0.6); // as good
    core.over(4, AttemptOutcome::failed, {"broken"});
    ends(core, 5, 0.1);
    CHECK(core.state().since_better == 2);
    CHECK_FALSE(core.state().draining);
    ends(core, 6, 0.2);
    REQUIRE(core.state().draining);
    CHECK(core.state().drain_reason == Reason::no_better);
    wind_down(core);
    CHECK(core.state().end_message == "nothing better in the last 3 trials (stop.study.no_better_in)");
}

TEST_CASE("a study stops after so many iterations, or trials that ended well", "[tuner]") {
    SmallCore iterations = study_with("iterations = 3\n");
    iterations.report(0, 1, 0.1);
    iterations.report(1, 1, 0.1);
    CHECK_FALSE(iterations.state().draining);
    iterations.report(0, 2, 0.1);
    CHECK(iterations.state().drain_reason == Reason::iterations_used);
    wind_down(iterations);

    SmallCore trials = study_with("trials_ok = 2\n");
    trials.over(0, AttemptOutcome::failed, {"broken"});
    ends(trials, 1, 0.1);
    CHECK_FALSE(trials.state().draining);
    ends(trials, 2, 0.1);
    CHECK(trials.state().drain_reason == Reason::enough_trials);
    wind_down(trials);
}

TEST_CASE("a head that comes after the limit stops at once", "[tuner]") {
    SmallCore core = study_with("trials_ok = 1\n");
    ends(core, 0, 0.1);
    REQUIRE(core.state().draining);
    core.began({"n0", "n1"}); // the head before was killed
    CHECK(core.state().ended);
    CHECK(core.state().end_reason == Reason::enough_trials);
    CHECK(core.record<study::TrialStarted>() == nullptr);
}

TEST_CASE("a head that comes after the time budget starts nothing", "[tuner]") {
    SmallCore core(small_study("num_trials = 20\nmax_iterations = 9\ntime_budget = \"60s\"\n", ""));
    core.began({"n0"});
    core.report(0, 1, 0.1);
    const bool was_draining = GENERATE(true, false); // or it was killed before its timer
    if (was_draining) core.step_at(StudyTime{std::chrono::seconds(60)}, study::TimerFired{});
    CHECK(core.state().draining == was_draining);
    core.step_at(StudyTime{std::chrono::seconds(61)}, study::DeadlineKnown{});
    core.began({"n0", "n1"});
    CHECK(core.record<study::TrialStarted>() == nullptr);
    CHECK(core.record<study::TrialCreated>() == nullptr);
    CHECK(core.commands().size() == 1); // the end
    REQUIRE(core.state().ended);
    CHECK(core.state().end_reason == Reason::study_time);
    CHECK(core.trial(0).closed_by == Reason::study_time);
}

TEST_CASE("no trial starts between a report after the time budget and the timer", "[tuner]") {
    SmallCore core(small_study("num_trials = 20\nmax_iterations = 1\ntime_budget = \"60s\"\n", ""));
    core.began({"n0"});
    core.step_at(StudyTime{std::chrono::seconds(59)}, study::TimerFired{});
    core.report(0, 1, 0.1); // at 60 s
    CHECK(core.state().drain_reason == Reason::study_time);
    core.over(0, AttemptOutcome::stopped);
    CHECK(core.record<study::TrialStarted>() == nullptr);
    CHECK(core.state().end_reason == Reason::study_time);
}

TEST_CASE("a limit that is set below what the study has done stops it at once", "[tuner]") {
    const std::string setting = GENERATE("stop.study.iterations=1", "study.time_budget=1s");
    SmallCore core = study_with("iterations = 30\n", "time_budget = \"1h\"\n");
    core.report(0, 1, 0.1);
    core.report(1, 1, 0.1);
    core.gone(2); // trial #1 waits for its rank's host
    study::Steering ask;
    ask.verb = study::SteerVerb::set;
    ask.settings = {setting};
    core.step(study::SteerAsked{"ada@login1", ask});
    CHECK(core.state().draining);
    CHECK(core.record<study::TrialStarted>() == nullptr);
    wind_down(core);
    CHECK(is_limit(core.state().end_reason));
}

TEST_CASE("in a deterministic study nothing counts after the report that reached the limit", "[tuner]") {
    SmallCore core = study_with("target = 0.9\n", "deterministic = true\nmax_concurrent = 2\n");
    const bool late = GENERATE(true, false); // the report of the other trial
    if (!late) core.report(1, 1, 0.99);
    core.report(0, 1, 0.95); // its turn
    REQUIRE(core.state().draining);
    if (late) core.report(1, 1, 0.99);
    CHECK(core.state().best == TrialId{0});
    wind_down(core);
    CHECK(core.state().best == TrialId{0});
    CHECK(core.state().reports == 1);
    CHECK_FALSE(core.state().deterministic_until);
}

TEST_CASE("what the end of the study closes does not count", "[tuner]") {
    SmallCore core(small_study("num_trials = 20\nmax_iterations = 9\n",
                               "[scheduler]\ntype = \"asha\"\nfirst_rung = 1\n[stop.study]\ntrials_ok = 1\n"));
    core.began({"n0"});
    for (std::uint32_t id = 0; id < 3; ++id) { // they wait at the first rung; the best of three is promoted
        core.report(id, 1, 0.1 * (id + 1));
        core.saved(id, 1);
        core.over(id, AttemptOutcome::paused);
    }
    for (int turn = 0; turn < 20 && !core.state().ended; ++turn)
        for (std::uint32_t id = 0; id < core.state().trials.size(); ++id)
            if (core.trial(id).attempt.live) core.over(id, AttemptOutcome::finished);
    REQUIRE(core.state().ended);
    CHECK(core.state().end_reason == Reason::enough_trials);
    CHECK(core.state().in(TrialPhase::stopped) >= 2);
    CHECK(core.state().ended_well == 1);
}

TEST_CASE("a study of predictions without all of its ranges has not ended well", "[tuner]") {
    const auto study_of = [](const std::string& more) {
        return SmallCore(study::parse_study(
            "[study]\nname = \"y\"\nmetric = \"samples\"\nmode = \"max\"\nmax_iterations = 1\n" + more +
                "[trainable]\nbuiltin = \"predict\"\n[space]\nrange = \"randint(0, 3)\"\n"
                "[searcher]\ntype = \"grid\"\n[failure]\ntolerate = 0.0\n",
            "y.toml", {}, ranktune::testing::known({ranktune::testing::any_trainable("predict")})));
    };
    const auto predicted = [](SmallCore& core, std::uint32_t range) {
        core.step(
            study::ReportArrived{TrialId{range}, core.attempt(range), core.incarnation(), 1, 1.0, {{"samples", 9}}});
        core.over(range, AttemptOutcome::stopped);
    };
    SECTION("one that a user has cancelled has failed, and may be tried again") {
        SmallCore core = study_of("");
        core.began({"n0"});
        study::Steering ask;
        ask.verb = study::SteerVerb::cancel;
        ask.trial = TrialId{0};
        core.step(study::SteerAsked{"ada@login1", ask});
        CHECK(core.trial(0).phase == TrialPhase::failed);
        CHECK(core.trial(0).closed_by == Reason::cancelled);
        CHECK(core.state().blame.in_a_row().empty());
        CHECK(core.state().blame.early_failures() == 0);
        core.over(0, AttemptOutcome::stopped);
        predicted(core, 1);
        predicted(core, 2);
        CHECK(core.state().outcome == StudyOutcome::too_many_failures);
        CHECK(core.state().end_message == "1 of 3 trials failed; failure.tolerate = 0.0 allows 0");
    }
    SECTION("ranges that a limit has left out are counted") {
        SmallCore core = study_of("time_budget = \"60s\"\n");
        core.began({"n0"});
        core.step_at(StudyTime{std::chrono::seconds(59)}, study::TimerFired{});
        predicted(core, 0); // at 60 s
        CHECK(core.state().end_reason == Reason::study_time);
        CHECK(core.state().outcome == StudyOutcome::too_many_failures);
        CHECK(core.state().end_message == "the study's time budget of 60 s is used up; 2 ranges of samples not begun");
    }
    SECTION("all of them are the end") {
        SmallCore core = study_of("");
        core.began({"n0"});
        for (std::uint32_t range = 0; range < 3; ++range) predicted(core, range);
        CHECK(core.state().outcome == StudyOutcome::ok);
    }
}

TEST_CASE("with another limit there is more to do", "[tuner]") {
    SmallCore core = study_with("trials_ok = 2\n");
    ends(core, 0, 0.1);
    ends(core, 1, 0.1);
    wind_down(core);
    study::StudySpec later = core.core().spec();
    CHECK(limit_reached(core.state(), later, core.now()));
    later.stop.study.trials_ok = 5;
    CHECK_FALSE(limit_reached(core.state(), later, core.now()));
    CHECK(is_limit(core.state().end_reason));
    CHECK(is_limit(Reason::study_time));
    CHECK_FALSE(is_limit(Reason::study_complete));
}

} // namespace ranktune::tuner::limits_test
