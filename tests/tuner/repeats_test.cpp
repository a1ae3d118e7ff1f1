// SPDX-License-Identifier: Apache-2.0
// searcher.repeats: several trials with one configuration, and the mean of their results.
#include <cmath>
#include <limits>
#include <optional>
#include <variant>

#include "tuner/small_core.hpp"
#include "tuner/values.hpp"

namespace repeats_test {

using namespace ranktune;
using namespace ranktune::tuner;
using tuner::testing::SmallCore;

namespace {

std::string three_each(const std::string& searcher, const std::string& more = "", unsigned trials = 9) {
    std::string text = tuner::testing::small_study("max_iterations = 2\n" + more,
                                                   "[searcher]\ntype = \"" + searcher + "\"\nrepeats = 3\n");
    text.replace(text.find("num_trials = 4"), 14, "num_trials = " + std::to_string(trials));
    return text;
}

void train(SmallCore& core, std::uint32_t trial, double value) {
    core.report(trial, 1, 0.5 * value);
    core.report(trial, 2, value);
    core.over(trial, AttemptOutcome::stopped);
}

} // namespace

TEST_CASE("three trials in a row have one configuration, and take one suggestion", "[tuner]") {
    // (The space is not finite, and a core starts no programs.)
    const auto suits = [](const study::SearcherInfo& info) { return !info.whole_space && !info.runs_program; };
    for (const std::string& searcher : ranktune::testing::names_of(searchers::built_in(), suits)) {
        for (const bool deterministic : {false, true}) {
            INFO(searcher << (deterministic ? ", deterministic" : ""));
            SmallCore core(three_each(searcher, deterministic ? "deterministic = true\nmax_concurrent = 2\n" : ""));
            core.began({"n0", "n1"});
            for (std::uint32_t trial = 0; trial < 9; ++trial) {
                core.answer_tickets();
                train(core, trial, 0.1 * trial);
            }
            REQUIRE(core.state().trials.size() == 9);
            for (std::uint32_t trial = 0; trial < 9; ++trial) {
                const Trial& t = core.trial(trial);
                CHECK(t.configuration == core.trial(trial - trial % 3).configuration);
                if (trial % 3 == 0) {
                    CHECK(t.origin.kind != Origin::Kind::repeat);
                    if (t.origin.kind == Origin::Kind::searcher) CHECK(t.origin.index == trial / 3);
                } else {
                    CHECK(t.origin == Origin{Origin::Kind::repeat, trial - trial % 3, trial % 3});
                }
            }
            CHECK(core.trial(0).configuration != core.trial(3).configuration);
            CHECK(core.state().ended);
        }
    }
}

TEST_CASE("a searcher sees the mean of the repeats, once all are over", "[tuner]") {
    SmallCore core(three_each("evolution"));
    core.began({"n0"});
    const auto& seen = core.state().observations;
    train(core, 0, 0.5);
    train(core, 1, 0.8);
    CHECK(seen.size() == 1); // asked
    train(core, 2, 0.2);
    REQUIRE(seen.size() == 4); // the next one is asked
    CHECK(seen[1].kind == searchers::Observation::Kind::reported);
    CHECK(seen[1].trial == TrialId{0});
    CHECK(seen[1].iteration == 2);
    CHECK(std::abs(seen[1].score.rank() - 0.5) < 1e-12);
    CHECK(seen[2].kind == searchers::Observation::Kind::over);
    CHECK(seen[2].phase == TrialPhase::finished);
}

TEST_CASE("a state with repeats is restored from its snapshot", "[tuner]") {
    SmallCore core(three_each("evolution"));
    core.began({"n0"});
    for (std::uint32_t trial = 0; trial < 5; ++trial) train(core, trial, 0.1 * trial);
    study::Bytes bytes;
    study::Encoder out(bytes);
    core.core().snapshot(out);
    Tuner again(core.core().spec());
    study::Decoder in(bytes);
    again.restore(in);
    CHECK(again.digest() == core.core().digest());
    CHECK(again.state().best == TrialId{2});
}

TEST_CASE("results wait for the other repeats, and only for them", "[tuner]") {
    SmallCore core(three_each("evolution"));
    core.began({"n0"});
    train(core, 0, 0.4);
    const auto& state = core.state();
    const study::StudySpec& spec = core.core().spec();
    CHECK(tuner::testing::broken(state.last_results, state.trials, spec).empty());
    LastResults foreign = state.last_results;
    foreign.note(TrialId{9}, {study::Score(0.5), {}});
    CHECK(tuner::testing::broken(foreign, state.trials, spec) == "trial #9 has a result and does not exist");
    study::StudySpec alone = spec;
    alone.searcher.repeats = 1;
    CHECK(tuner::testing::broken(state.last_results, state.trials, alone) ==
          "results wait for repeats that there are not");
    const LastResults before = state.last_results;
    train(core, 1, 0.5);
    train(core, 2, 0.6);
    CHECK(tuner::testing::broken(before, state.trials, spec) ==
          "trial #0 keeps a result although its configuration is judged");
}

TEST_CASE("failed repeats do not count, unless all fail; a value that is not finite makes the mean so", "[tuner]") {
    SmallCore core(three_each("evolution", "", 9));
    core.began({"n0"});
    train(core, 0, 0.9);
    core.over(1, AttemptOutcome::failed, {"bad luck"});
    train(core, 2, 0.1);
    const auto& seen = core.state().observations;
    CHECK(std::abs(seen[1].score.rank() - 0.5) < 1e-12);
    CHECK(core.state().best == TrialId{0});
    for (const std::uint32_t trial : {3, 4, 5}) {
        core.report(trial, 1, 0.1);
        core.over(trial, AttemptOutcome::failed, {"wrong " + std::to_string(trial)});
    }
    const std::size_t last = seen.size() - 2; // before the next one is asked
    CHECK(seen[last].kind == searchers::Observation::Kind::over);
    CHECK(seen[last].phase == TrialPhase::failed);
    CHECK(seen[last - 1].kind == searchers::Observation::Kind::asked);
    train(core, 6, 5.0);
    train(core, 7, 6.0);
    train(core, 8, std::numeric_limits<double>::quiet_NaN());
    CHECK_FALSE(std::isfinite(seen[seen.size() - 2].score.rank()));
    // Its third trial reported half of NaN, which is none either, so there is no mean.
    CHECK(core.state().best == TrialId{0});
}

TEST_CASE("the best trial is the best of the configuration with the best mean", "[tuner]") {
    std::string text = three_each("random");
    text.replace(text.find("\"max\""), 5, "\"min\"");
    SmallCore core(text);
    core.began({"n0"});
    const double values[] = {1.0, 1.0, 9.0, 3.0, 4.0, 2.0, 0.1, 20.0, 20.0};
    for (std::uint32_t trial = 0; trial < 9; ++trial) {
        core.report(trial, 2, values[trial]);
        if (trial < 2) CHECK_FALSE(core.state().best);
        core.over(trial, AttemptOutcome::stopped);
    }
    CHECK(core.state().best == TrialId{5});
    const Repetitions all = repetitions_of(TrialId{4}, core.state().trials, core.core().spec());
    CHECK(all.first == TrialId{3});
    CHECK(all.complete);
    CHECK(all.mean == 3.0);
    CHECK(all.deviation == 1.0);
}

TEST_CASE("the best checkpoint of a trial stays until its configuration is judged", "[tuner]") {
    SmallCore core(three_each("random", "", 6));
    core.began({"n0"});
    for (std::uint32_t trial = 0; trial < 6; ++trial) {
        core.report(trial, 2, trial == 0 ? 0.9 : trial < 3 ? 0.0 : 0.5);
        core.saved(trial, 2, core.trial(trial).last);
        core.over(trial, AttemptOutcome::stopped);
        if (trial < 2) CHECK(core.trial(0).checkpoints.size() == 1);
        if (trial == 2) {
            CHECK(core.trial(0).checkpoints.size() == 1);
            CHECK(core.trial(1).checkpoints.empty());
            CHECK(core.trial(2).checkpoints.empty());
        }
    }
    CHECK(core.state().best == TrialId{3});
    CHECK(core.trial(3).checkpoints.size() == 1);
    for (const std::uint32_t other : {0, 1, 2, 4, 5}) CHECK(core.trial(other).checkpoints.empty());
}

TEST_CASE("a repeat that may come to lead by the mean keeps its last or its best weights", "[tuner]") {
    SmallCore core(three_each("random", "", 6));
    core.began({"n0"});
    const auto is_told = [&](std::uint32_t trial, double last) -> std::optional<Verb> {
        core.report(trial, 2, last);
        for (const auto& command : core.commands())
            if (const auto* decide = std::get_if<study::Decide>(&command)) return decide->verdict.verb;
        return {};
    };
    const auto to_beat = [&](std::uint32_t trial) -> std::optional<double> {
        for (const auto& command : core.commands())
            if (const auto* start = std::get_if<study::StartTrial>(&command)) {
                REQUIRE(start->trial == TrialId{trial});
                return start->to_beat;
            }
        FAIL("no trial was started");
        return {};
    };
    CHECK_FALSE(to_beat(0));
    CHECK(is_told(0, 0.9) == Verb::stop); // the last iteration is the best, and the two others are to come
    core.saved(0, 2, 0.9);
    core.over(0, AttemptOutcome::stopped);
    CHECK(core.trial(0).checkpoints.size() == 1);
    CHECK(to_beat(1) == 0.9);
    CHECK(is_told(1, 0.2) == Verb::discard); // it is never the best of its configuration
    core.over(1, AttemptOutcome::stopped);
    core.over(2, AttemptOutcome::failed, {"bad luck"});
    REQUIRE(core.state().best == TrialId{0});
    CHECK_FALSE(to_beat(3)); // its mean may be better, although each value of the other configuration is
    core.report(3, 1, 0.7);
    core.saved(3, 1, 0.7);
    CHECK(is_told(3, 0.6) == Verb::discard); // it keeps its best weights
    core.over(3, AttemptOutcome::stopped);
    CHECK(to_beat(4) == 0.7);
    core.report(4, 1, 0.8);
    core.over(4, AttemptOutcome::failed, {"bad luck"});
    CHECK(to_beat(5) == 0.7); // a failed one does not count
    core.report(5, 1, 0.95);
    core.saved(5, 1, 0.95);
    core.over(5, AttemptOutcome::lost);
    CHECK(to_beat(5) == 0.95); // its own, which it keeps
    CHECK(is_told(5, 0.9) == Verb::discard);
    core.over(5, AttemptOutcome::stopped);
    CHECK(core.state().best == TrialId{5});
    CHECK(core.trial(4).checkpoints.empty());
    CHECK(core.trial(5).checkpoints.size() == 1);
}

TEST_CASE("a repeat that is reopened is judged again", "[tuner]") {
    SmallCore core(three_each("evolution", "", 3));
    core.began({"n0"});
    train(core, 0, 0.4);
    core.over(1, AttemptOutcome::failed, {"bad luck"});
    train(core, 2, 0.6);
    CHECK(core.state().best == TrialId{2});
    Tuner again(core.core().spec());
    study::Bytes bytes;
    study::Encoder out(bytes);
    core.core().snapshot(out);
    study::Decoder in(bytes);
    again.restore(in);
    Output records;
    again.reopen(TrialId{1}, true, core.now(), records);
    CHECK_FALSE(again.state().best);
    CHECK_NOTHROW(again.check_invariants());
}

TEST_CASE("points to try first and those of users are repeated, too", "[tuner]") {
    std::string text = three_each("random", "", 6);
    text += "start = [{ x = 0.25 }]\n";
    SmallCore core(text);
    core.began({"n0"});
    study::Steering ask;
    ask.request = 7;
    ask.verb = study::SteerVerb::add;
    space::Configuration point;
    point.set("x", 0.75);
    ask.points.push_back(point);
    core.step(study::SteerAsked{"ada", ask});
    CHECK(core.core().spec().num_trials == 9);
    for (std::uint32_t trial = 0; trial < 9; ++trial) train(core, trial, 0.5);
    for (std::uint32_t trial = 0; trial < 3; ++trial) CHECK(core.trial(trial).configuration.text() == "x=0.25");
    for (std::uint32_t trial = 3; trial < 6; ++trial) CHECK(core.trial(trial).configuration.text() == "x=0.75");
    CHECK(core.trial(3).origin.kind == Origin::Kind::user);
    CHECK(core.state().ended);
}

} // namespace repeats_test
