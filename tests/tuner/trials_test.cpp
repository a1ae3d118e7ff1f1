// SPDX-License-Identifier: Apache-2.0
// The table of trials, and what is derived from it: how many are in a phase, and who waits.

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tuner/values.hpp"
#include "tuner/values/trials.hpp"

namespace ranktune::tuner::trials_test {
namespace {

using testing::broken;
using testing::contradiction;
using testing::in_phase;
using testing::read_back;
using testing::written;
using Ids = std::set<TrialId>;

Trials trials_in(const std::vector<TrialPhase>& phases) {
    Trials trials;
    for (const TrialPhase phase : phases) trials.add(in_phase(phase));
    return trials;
}

study::Bytes snapshot_of(const Trials& trials) {
    study::Bytes bytes;
    study::Encoder out(bytes);
    trials.snapshot(out);
    return bytes;
}

Trials restored(const study::Bytes& bytes) {
    Trials trials;
    study::Decoder in(bytes);
    trials.restore(in);
    CHECK(in.empty());
    return trials;
}

} // namespace

TEST_CASE("A trial is found by its number, which is its place in the table", "[tuner]") {
    Trials trials;
    CHECK(trials.empty());
    CHECK(trials.empty());
    for (const std::uint32_t ranks : {3U, 5U}) {
        Trial t;
        t.wanted_ranks = ranks;
        trials.add(std::move(t));
    }
    CHECK(trials.size() == 2);
    CHECK(trials[0].wanted_ranks == 3);
    CHECK(trials[TrialId{1}].wanted_ranks == 5);
    CHECK(trials.back().wanted_ranks == 5);
    CHECK(std::as_const(trials).at(TrialId{1}).wanted_ranks == 5);
    trials.at(TrialId{0}).wanted_ranks = 4;
    CHECK(trials.begin()->wanted_ranks == 4);
    CHECK(trials.end() - trials.begin() == 2);
}

TEST_CASE("A record about a trial that was never created is a contradiction", "[tuner]") {
    Trials trials = trials_in({TrialPhase::waiting});
    const std::string said = "trial #1 was never created";
    CHECK(contradiction([&] { (void)trials.at(TrialId{1}); }) == said);
    CHECK(contradiction([&] { (void)std::as_const(trials).at(TrialId{1}); }) == said);
    CHECK(contradiction([&] { trials.set_phase(TrialId{1}, TrialPhase::running); }) == said);
}

TEST_CASE("Trials are counted by their phases, and those that wait are listed in order", "[tuner]") {
    Trials trials = trials_in({TrialPhase::waiting, TrialPhase::waiting, TrialPhase::paused, TrialPhase::waiting});
    CHECK(trials.in(TrialPhase::waiting) == 3);
    CHECK(trials.in(TrialPhase::paused) == 1);
    CHECK(trials.in(TrialPhase::running) == 0);
    CHECK(trials.waiting() == Ids{TrialId{0}, TrialId{1}, TrialId{3}});

    trials.begin_attempt({TrialId{1}, AttemptId{1}, testing::at_second(3), testing::ranks({2}), {}}, 4);
    CHECK(trials[1].phase == TrialPhase::running);
    CHECK(trials[1].attempt.live);
    CHECK(trials[1].attempt.iteration == 4);
    CHECK(trials.live_attempts() == 1);
    CHECK(trials.in(TrialPhase::waiting) == 2);
    CHECK(trials.in(TrialPhase::running) == 1);
    CHECK(trials.waiting() == Ids{TrialId{0}, TrialId{3}});

    trials.set_phase(TrialId{2}, TrialPhase::waiting); // promoted
    CHECK(trials.in(TrialPhase::paused) == 0);
    CHECK(trials.waiting() == Ids{TrialId{0}, TrialId{2}, TrialId{3}});

    trials.set_phase(TrialId{3}, TrialPhase::waiting); // where it is
    CHECK(trials.in(TrialPhase::waiting) == 3);
    CHECK(trials.waiting() == Ids{TrialId{0}, TrialId{2}, TrialId{3}});
    trials.check_invariants();

    trials.set_phase(TrialId{1}, TrialPhase::waiting); // it is to go on from another state
    CHECK(winds_down(trials[1]));
    CHECK(trials.in(TrialPhase::waiting) == 4);
    CHECK(trials.waiting() == Ids{TrialId{0}, TrialId{2}, TrialId{3}}); // its ranks are not back yet
    trials.check_invariants();
    trials.end_attempt(TrialId{1});
    CHECK(trials.waiting() == Ids{TrialId{0}, TrialId{1}, TrialId{2}, TrialId{3}});
    CHECK(trials.live_attempts() == 0);
    CHECK(contradiction([&] { trials.end_attempt(TrialId{1}); }) == "attempt 1 of trial #1 ends twice");
    trials.check_invariants();
}

TEST_CASE("Trials whose parameters have the same names hold them once", "[tuner]") {
    Trials trials;
    for (const double lr : {0.1, 0.2}) {
        Trial t;
        t.configuration = space::Configuration({{std::string("lr"), space::Value(lr)}});
        trials.add(std::move(t));
    }
    const auto name_of = [](const Trial& t) {
        const auto entries = t.configuration.entries();
        return &(*entries.begin()).name;
    };
    CHECK(name_of(trials[0]) == name_of(trials[1]));
    CHECK(trials[0].configuration.at("lr") == space::Value(0.1));
    const Trials again = restored(snapshot_of(trials));
    CHECK(name_of(again[0]) == name_of(again[1]));
    CHECK(again[1].configuration == trials[1].configuration);
}

TEST_CASE("A table of trials comes back from its snapshot with counts and the list of those that wait", "[tuner]") {
    Trials trials = trials_in({TrialPhase::waiting, TrialPhase::paused, TrialPhase::failed, TrialPhase::waiting});
    Trial& t = trials.at(TrialId{1});
    t.attempt.id = AttemptId{3};
    t.iteration = 7;
    t.verdict = {Verb::pause, Reason::rung, 3.0, 9.0};
    t.attempt.ranks = testing::ranks({2, 4});
    t.checkpoints = {{6, "1/6", 100, 42, 0.5, {}}, {7, "1/7", 100, 43, {}, {1, 2}}};
    t.window = {0.5, 0.25};
    t.failure = {"it broke", 3};
    t.attempt.since = testing::at_second(12.5);
    const study::Bytes bytes = snapshot_of(trials);
    const Trials again = restored(bytes);
    CHECK(snapshot_of(again) == bytes);
    CHECK(again.size() == 4);
    CHECK(again.in(TrialPhase::waiting) == 2);
    CHECK(again.in(TrialPhase::failed) == 1);
    CHECK(again.waiting() == trials.waiting());
    CHECK(again[1].verdict == t.verdict);
    CHECK(again[1].checkpoints == t.checkpoints);
    CHECK(again[1].attempt.since == t.attempt.since);
    again.check_invariants();
}

TEST_CASE("Invariants detect a phase that changed without set_phase", "[tuner]") {
    SECTION("the counts") {
        Trials trials = trials_in({TrialPhase::waiting, TrialPhase::running});
        CHECK(broken(trials).empty());
        trials.at(TrialId{1}).phase = TrialPhase::paused;
        CHECK(broken(trials) == "the counts by phase are off");
    }
    SECTION("the list of those that wait") {
        Trials trials = trials_in({TrialPhase::waiting, TrialPhase::running});
        std::swap(trials.at(TrialId{0}).phase, trials.at(TrialId{1}).phase);
        CHECK(broken(trials) == "the list of waiting trials is off");
    }
}

} // namespace ranktune::tuner::trials_test
