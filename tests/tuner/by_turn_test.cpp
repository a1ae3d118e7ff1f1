// SPDX-License-Identifier: Apache-2.0
// Deterministic studies: facts take effect when their turn comes. Keys (time, slot) are worked by hand: a unit of slot
// s ends one later than the one before it, ties go to the lower slot.

#include <string>
#include <vector>

#include "ranktune/base/rng.hpp"
#include "tuner/turns.hpp"

namespace ranktune::tuner::by_turn_test {
namespace {

using testing::broken;
using testing::contradiction;
using testing::Turns;
using Room = Admission::Room;
using Line = std::vector<std::uint32_t>;

/// Every running trial reports as far as it goes; the trials in random order, ahead of their turns or not.
std::string played(std::uint32_t slots, const std::vector<Iteration>& lengths, std::uint64_t seed, bool restores) {
    base::RngStream random(seed, base::Purpose::fault);
    Turns turns(slots, lengths);
    for (;;) {
        std::vector<std::uint32_t> able;
        for (std::uint32_t i = 0; i < turns.trials().size(); ++i)
            if (turns.trial(i).phase == TrialPhase::running && turns.turns().received(TrialId{i}) < lengths[i])
                able.push_back(i);
        if (able.empty()) return turns.log();
        const std::uint32_t trial = able[random.below(able.size())];
        turns.report(trial, turns.turns().received(TrialId{trial}) + 1);
        if (restores) turns.replace_by_restored();
    }
}

} // namespace

// ---- order

TEST_CASE("In one slot trials follow each other, and every report takes effect at once", "[tuner]") {
    Turns turns(1, {2, 1});
    CHECK(turns.turns().room() == Room::none);
    CHECK(turns.turns().any_active());
    CHECK(turns.turns().standing(TrialId{0}, 1) == Standing::next);
    turns.report(0, 1);
    turns.report(0, 2);
    turns.report(1, 1);
    CHECK(turns.log() == "0@1 0@2 1@1");
    CHECK(turns.turns().room() == Room::one);
    CHECK_FALSE(turns.turns().any_active());
}

TEST_CASE("Two slots take turns, the lower one first", "[tuner]") {
    // #0 has the keys (1,0) (2,0) (3,0), #1 has (1,1) (2,1) (3,1).
    Turns turns(2, {3, 3});
    turns.report(1, 1);
    turns.report(1, 2);
    CHECK(turns.news().empty());
    turns.report(0, 1);
    CHECK(turns.news() == "0@1 1@1");
    turns.report(0, 2);
    CHECK(turns.news() == "0@2 1@2");
    turns.report(0, 3);
    CHECK(turns.news() == "0@3");
    turns.report(1, 3);
    CHECK(turns.news() == "1@3");
}

TEST_CASE("A trial that gets a slot goes on from the time of the study", "[tuner]") {
    // time  slot 0        slot 1    slot 2
    //   1   #0 1 (stops)  #1 1      #2 1
    //   2   #3 1          #1 2      #2 2 (stops)
    //   3   #3 2 (stops)  #1 3 (.)  #4 1 (stops)
    const std::vector<Iteration> lengths = {1, 3, 2, 2, 1};
    const std::string order = "0@1 1@1 2@1 3@1 1@2 2@2 3@2 1@3 4@1";
    Turns turns(3, lengths);
    turns.report(2, 1);
    turns.report(2, 2);
    turns.report(0, 1); // and #3 is created
    CHECK(turns.news() == "0@1");
    CHECK(turns.trial(3).slot == 0);
    turns.report(3, 1);
    CHECK(turns.news().empty()); // (2,0): #1 comes first, with (1,1)
    turns.report(1, 1);
    CHECK(turns.news() == "1@1 2@1 3@1");
    turns.report(1, 2);
    CHECK(turns.news() == "1@2 2@2");
    CHECK(turns.trial(4).slot == 2);
    turns.report(4, 1);
    turns.report(1, 3);
    CHECK(turns.news().empty());
    turns.report(3, 2);
    CHECK(turns.news() == "3@2 1@3 4@1");
    // In any order of arrivals, and with any loss of what a head had not kept.
    for (std::uint64_t seed = 0; seed < 20; ++seed) CHECK(played(3, lengths, seed, seed % 2 == 1) == order);
}

TEST_CASE("The order does not depend on that of arrivals, in one, two or three slots", "[tuner]") {
    const std::vector<Iteration> lengths = {3, 1, 4, 1, 5, 2, 1, 2};
    for (const std::uint32_t slots : {1U, 2U, 3U}) {
        const std::string order = played(slots, lengths, 0, false);
        for (std::uint64_t seed = 1; seed < 20; ++seed) CHECK(played(slots, lengths, seed, seed % 2 == 0) == order);
    }
    CHECK(played(1, {2, 1, 1}, 0, false) == "0@1 0@2 1@1 2@1");
    CHECK(played(2, {2, 1, 1}, 0, false) == "0@1 1@1 0@2 2@1");
    CHECK(played(3, {2, 1, 1}, 0, false) == "0@1 1@1 2@1 0@2");
}

// ---- early reports

TEST_CASE("An early report is received and kept, and not admitted", "[tuner]") {
    Turns turns(2, {3, 3});
    const ByTurn& strategy = turns.turns();
    REQUIRE(strategy.held(TrialId{1}) != nullptr);
    CHECK(strategy.held(TrialId{1})->empty());
    CHECK(strategy.standing(TrialId{1}, 1) == Standing::early);
    turns.report(1, 1);
    turns.report(1, 2);
    CHECK(strategy.received(TrialId{1}) == 2);
    CHECK(strategy.admitted(TrialId{1}) == 0);
    REQUIRE(strategy.held(TrialId{1})->size() == 2);
    CHECK(strategy.held(TrialId{1})->front().iteration == 1);
    turns.report(0, 1);
    CHECK(strategy.admitted(TrialId{1}) == 1);
    CHECK(strategy.held(TrialId{1})->size() == 1);
    CHECK(strategy.received(TrialId{0}) == 1);
    CHECK(strategy.admitted(TrialId{0}) == 1);
}

TEST_CASE("Reports that are repeated after a loss are known", "[tuner]") {
    Turns turns(2, {3, 3});
    turns.report(1, 1);
    turns.report(1, 2);
    turns.over(1, AttemptOutcome::lost, true);
    turns.start(1);
    turns.trial(1).attempt.iteration = 0; // from the beginning
    CHECK(turns.turns().standing(TrialId{1}, 1) == Standing::known);
    CHECK(turns.turns().standing(TrialId{1}, 2) == Standing::known);
    CHECK(turns.turns().standing(TrialId{1}, 3) == Standing::early);
}

TEST_CASE("A trial without a slot has no turn: its reports are stale", "[tuner]") {
    Turns turns(1, {1, 1});
    turns.report(0, 1); // told to stop: #1 has the slot
    CHECK(turns.turns().standing(TrialId{0}, 2) == Standing::foreign);
    CHECK(turns.turns().held(TrialId{0}) == nullptr);
    turns.trial(0).attempt.iteration = 5;
    CHECK(turns.turns().received(TrialId{0}) == 5);
}

TEST_CASE("While a study drains nothing takes effect, and in its next start everything that was kept", "[tuner]") {
    Turns turns(2, {3, 3});
    turns.apply(study::DrainBegan{{}, Reason::draining, "SIGTERM"});
    CHECK(turns.turns().standing(TrialId{0}, 1) == Standing::early);
    turns.report(0, 1);
    turns.report(1, 1);
    turns.over(1, AttemptOutcome::failed);
    CHECK(turns.news().empty());
    turns.replace_by_restored();
    turns.begin_again();
    CHECK(turns.news() == "0@1 1@1");
    turns.start(0);
    turns.report(0, 2);
    CHECK(turns.news() == "0@2 #1 failed");
}

// ---- ends

TEST_CASE("An end waits for the turn that follows the trial's last report", "[tuner]") {
    // #0: (1,0) (2,0) (3,0); #1: (1,1), and its end at (2,1).
    Turns turns(2, {3, 3, 1});
    turns.report(1, 1);
    turns.over(1, AttemptOutcome::finished);
    CHECK_FALSE(turns.turns().wants_ranks(TrialId{1}));
    turns.report(0, 1);
    CHECK(turns.news() == "0@1 1@1");
    CHECK(turns.trial(1).phase == TrialPhase::waiting);
    turns.report(0, 2);
    CHECK(turns.news() == "0@2 #1 finished");
    CHECK(turns.trial(2).slot == 1); // and #2 has its place, from then on: (3,1)
    turns.report(2, 1);
    CHECK(turns.news().empty());
    turns.report(0, 3);
    CHECK(turns.news() == "0@3 2@1");
}

TEST_CASE("An attempt that another one follows, or may follow, is no end", "[tuner]") {
    Turns turns(1, {3});
    turns.over(0, AttemptOutcome::failed, true);
    CHECK(turns.turns().wants_ranks(TrialId{0}));
    turns.start(0);
    for (const AttemptOutcome outcome : {AttemptOutcome::paused, AttemptOutcome::unreachable}) {
        turns.over(0, outcome);
        CHECK(turns.turns().wants_ranks(TrialId{0}));
        CHECK(turns.log().empty());
        turns.start(0);
    }
    turns.over(0, AttemptOutcome::lost);
    CHECK(turns.log() == "#0 lost");
}

TEST_CASE("Retiring a host takes back failures whose turn has not come, and no other ends", "[tuner]") {
    for (const AttemptOutcome outcome :
         {AttemptOutcome::failed, AttemptOutcome::disturbed, AttemptOutcome::finished, AttemptOutcome::lost}) {
        INFO(name(outcome));
        const bool taken_back = outcome == AttemptOutcome::failed || outcome == AttemptOutcome::disturbed;
        Turns turns(2, {1, 1});
        turns.over(1, outcome);
        turns.apply(study::HostRetired{"a", {}, {TrialId{1}}});
        CHECK(turns.turns().wants_ranks(TrialId{1}) == taken_back);
        turns.report(0, 1);
        CHECK(turns.trial(1).phase == (taken_back                            ? TrialPhase::waiting
                                       : outcome == AttemptOutcome::finished ? TrialPhase::finished
                                                                             : TrialPhase::failed));
    }
}

TEST_CASE("A study that ends for its surroundings takes back the failures of unheard trials", "[tuner]") {
    for (const Reason reason : {Reason::unstarted, Reason::failures_in_a_row, Reason::draining}) {
        Turns turns(3, {1, 1, 1});
        turns.trial(2).unheard = false;
        turns.over(1, AttemptOutcome::failed);
        turns.over(2, AttemptOutcome::failed);
        turns.apply(study::DrainBegan{{}, reason, "why"});
        turns.begin_again();
        CHECK(turns.turns().wants_ranks(TrialId{1}) == (reason != Reason::draining));
        CHECK_FALSE(turns.turns().wants_ranks(TrialId{2}));
    }
}

TEST_CASE("After a trial has left its slot, the end of its attempt only frees ranks", "[tuner]") {
    Turns turns(1, {1, 1});
    turns.report(0, 1);
    REQUIRE(winds_down(turns.trial(0)));
    CHECK(turns.turns().is_leaving(TrialId{0}));
    turns.over(0, AttemptOutcome::failed);
    CHECK_FALSE(winds_down(turns.trial(0)));
    CHECK_FALSE(turns.turns().is_leaving(TrialId{0}));
    CHECK(turns.trial(0).phase == TrialPhase::stopped);
    CHECK(turns.log() == "0@1");
}

// ---- slots

TEST_CASE("A trial that is promoted gets the lowest empty slot", "[tuner]") {
    Turns turns(3, {9, 9, 9});
    for (const std::uint32_t trial : {0U, 1U, 2U}) turns.pause_at(trial, 1);
    for (const std::uint32_t trial : {0U, 1U, 2U}) turns.report(trial, 1);
    CHECK(turns.turns().room() == Room::one);
    for (const std::uint32_t trial : {0U, 1U, 2U}) turns.over(trial, AttemptOutcome::paused);
    turns.trials().set_phase(TrialId{2}, TrialPhase::waiting);
    turns.apply(study::TrialPromoted{TrialId{2}, {}, 1, 3});
    CHECK(turns.trial(2).slot == 0);
    CHECK(turns.turns().received(TrialId{2}) == 1);
    turns.trials().set_phase(TrialId{0}, TrialPhase::waiting);
    turns.apply(study::TrialPromoted{TrialId{0}, {}, 1, 3});
    CHECK(turns.trial(0).slot == 1);
    // Both go on from time 1: (2,0), then (2,1).
    CHECK(turns.turns().standing(TrialId{2}, 2) == Standing::next);
    CHECK(turns.turns().standing(TrialId{0}, 2) == Standing::early);
}

TEST_CASE("A reopened trial gets the next slot, before any new trial", "[tuner]") {
    Turns turns(2, {1, 3, 3, 3, 3});
    turns.over(0, AttemptOutcome::failed); // (1,0): #2 has slot 0, from time 1: (2,0)
    turns.over(1, AttemptOutcome::failed); // (1,1): #3 has slot 1: (2,1)
    CHECK(turns.news() == "#0 failed #1 failed");
    turns.reopen(1);
    turns.reopen(0);
    CHECK(turns.trial(0).slot == no_slot);
    CHECK_FALSE(turns.turns().wants_ranks(TrialId{0}));
    turns.replace_by_restored(); // restores the trials without a slot
    turns.over(2, AttemptOutcome::finished);
    CHECK(turns.trial(0).slot == 0); // the lower number first
    CHECK(turns.trial(1).slot == no_slot);
    CHECK(turns.trials().size() == 4); // #4 is not created yet
    CHECK(turns.turns().wants_ranks(TrialId{0}));
    turns.over(3, AttemptOutcome::finished);
    CHECK(turns.trial(1).slot == 1);
    turns.start(0);
    turns.report(0, 1);
    CHECK(turns.trials().size() == 5);
    CHECK(turns.trial(4).slot == 0);
}

TEST_CASE("A reopened trial gets an empty slot at once", "[tuner]") {
    Turns turns(2, {1, 3});
    turns.over(0, AttemptOutcome::failed);
    turns.reopen(0);
    CHECK(turns.trial(0).slot == 0);
    CHECK(turns.line() == Line{0});
}

TEST_CASE("A closed trial does not wait for a slot any more", "[tuner]") {
    Turns turns(1, {1, 1, 1});
    turns.over(0, AttemptOutcome::failed);
    turns.reopen(0);
    turns.trials().set_phase(TrialId{0}, TrialPhase::failed);
    turns.apply(study::TrialClosed{TrialId{0}, {}, TrialPhase::failed, Reason::lost, 0, 0, {}});
    turns.report(1, 1);
    CHECK(turns.trial(2).slot == 0);
}

TEST_CASE("A trial that is closed before its turn takes no time", "[tuner]") {
    // #0: (2,0) after its first report; #1: (1,1).
    Turns turns(2, {3, 2, 1});
    turns.report(0, 1);
    turns.trials().set_phase(TrialId{0}, TrialPhase::failed); // it killed the job
    turns.apply(study::TrialClosed{TrialId{0}, {}, TrialPhase::failed, Reason::exception, 0, 0, {}});
    CHECK(turns.trial(2).slot == 0); // from time 1: (2,0)
    turns.report(1, 1);
    turns.report(1, 2); // (2,1)
    CHECK(turns.news() == "0@1 1@1");
    turns.report(2, 1);
    CHECK(turns.news() == "2@1 1@2");
}

// ---- ranks

TEST_CASE("Ranks go to those that need them, in the order of their turns", "[tuner]") {
    Turns turns(3, {9, 9, 9});
    turns.report(0, 1);
    turns.report(0, 2); // #0: (2,0); #1: (1,1); #2: (1,2)
    for (const std::uint32_t trial : {0U, 1U, 2U}) turns.over(trial, AttemptOutcome::paused);
    CHECK(turns.line() == Line{1, 2, 0});
    CHECK(turns.line(2) == Line{1, 2});
    turns.start(2);
    CHECK(turns.line() == Line{1, 0});
    turns.begin_again();
    CHECK(turns.line() == Line{1, 2, 0});
}

TEST_CASE("A trial whose reports up to its decision point are there needs no ranks", "[tuner]") {
    Turns turns(2, {9, 9});
    turns.trial(1).decision_point = 2;
    turns.report(1, 1);
    turns.over(1, AttemptOutcome::paused);
    CHECK(turns.turns().wants_ranks(TrialId{1}));
    turns.start(1);
    CHECK_FALSE(turns.turns().is_parked(TrialId{1}));
    turns.report(1, 2);
    CHECK(turns.turns().is_parked(TrialId{1}));
    turns.over(1, AttemptOutcome::paused);
    CHECK_FALSE(turns.turns().wants_ranks(TrialId{1}));
    CHECK_FALSE(turns.turns().is_parked(TrialId{1}));
    CHECK(turns.line().empty());
}

TEST_CASE("Of the groups that only wait, the one whose turn comes last is asked to yield", "[tuner]") {
    // #0 and #3 train; #1, #2 and #4 wait for their turns: (1,1), (1,2) and (1,4).
    Turns turns(5, {9, 9, 9, 9, 9});
    for (const std::uint32_t trial : {1U, 2U, 4U}) {
        turns.trial(trial).decision_point = 1;
        turns.report(trial, 1);
    }
    turns.over(0, AttemptOutcome::lost, true); // (1,0)
    turns.over(3, AttemptOutcome::lost, true); // (1,3)
    const ByTurn& strategy = turns.turns();
    CHECK(strategy.keeps_the_line());
    CHECK(strategy.to_yield(TrialId{0}, 1, 0) == TrialId{4});
    CHECK(strategy.to_yield(TrialId{3}, 1, 0) == TrialId{4});
    CHECK_FALSE(strategy.to_yield(TrialId{0}, 1, 1)); // there are enough
    CHECK(strategy.to_yield(TrialId{0}, 2, 1) == TrialId{4});
    turns.apply(study::YieldAsked{TrialId{4}, {}});
    CHECK(strategy.is_leaving(TrialId{4}));
    CHECK_FALSE(strategy.to_yield(TrialId{0}, 1, 0)); // its rank will be back
    CHECK(strategy.to_yield(TrialId{0}, 2, 0) == TrialId{2});
    CHECK_FALSE(strategy.to_yield(TrialId{3}, 2, 0)); // #1 and #2 come before #3
    CHECK(strategy.to_yield({}, 3, 0) == TrialId{2}); // for a trial before all others
    turns.apply(study::YieldAsked{TrialId{2}, {}});
    turns.apply(study::YieldAsked{TrialId{1}, {}});
    CHECK_FALSE(strategy.to_yield({}, 9, 0)); // no other group is left
    turns.replace_by_restored();
    CHECK(turns.turns().is_leaving(TrialId{4}));
    CHECK_FALSE(turns.turns().to_yield({}, 3, 0));
    turns.over(4, AttemptOutcome::paused);
    CHECK_FALSE(turns.turns().is_leaving(TrialId{4}));
    CHECK(turns.turns().is_leaving(TrialId{2}));
    turns.begin_again();
    for (const std::uint32_t id : {0U, 1U, 2U, 3U, 4U}) CHECK_FALSE(turns.turns().is_leaving(TrialId{id}));
}

TEST_CASE("Ranks that come back are counted for every rank of the trial", "[tuner]") {
    Turns turns(2, {9, 9});
    turns.trial(1).decision_point = 1;
    turns.trial(1).attempt.ranks = testing::ranks({1, 2, 3});
    turns.report(1, 1);
    turns.over(0, AttemptOutcome::lost, true);
    CHECK(turns.turns().to_yield(TrialId{0}, 4, 1) == TrialId{1});
    turns.apply(study::YieldAsked{TrialId{1}, {}});
    CHECK_FALSE(turns.turns().to_yield(TrialId{0}, 4, 1));
}

TEST_CASE("A group that lost a rank is not asked for the others", "[tuner]") {
    Turns turns(2, {9, 9});
    turns.trial(1).decision_point = 1;
    turns.report(1, 1);
    turns.over(0, AttemptOutcome::lost, true);
    REQUIRE(turns.turns().to_yield(TrialId{0}, 1, 0) == TrialId{1});
    turns.trial(1).attempt.abandoned = true;
    turns.apply(study::RankLost{Rank{1}, {}, "node down", false});
    CHECK_FALSE(turns.turns().is_parked(TrialId{1}));
    CHECK_FALSE(turns.turns().to_yield(TrialId{0}, 1, 0));
}

TEST_CASE("A trial that was told to pause has left, and its ranks are waited for", "[tuner]") {
    Turns turns(1, {9, 9});
    turns.pause_at(0, 1);
    turns.report(0, 1);
    CHECK(turns.turns().is_leaving(TrialId{0}));
    CHECK(turns.trial(1).slot == 0);
    turns.trials().set_phase(TrialId{1}, TrialPhase::waiting); // it has no ranks yet
    turns.trials().end_attempt(TrialId{1});
    turns.begin_again();
    CHECK_FALSE(turns.turns().is_leaving(TrialId{0}));
    CHECK(turns.line() == Line{1});
}

// ---- errors, snapshot, invariants

TEST_CASE("Records that contradict logical time are refused", "[tuner]") {
    Turns turns(1, {1, 1});
    turns.report(0, 1); // #1 has the slot
    const auto apply = [&](const study::Record& record) { return contradiction([&] { turns.apply(record); }); };
    CHECK(apply(study::Reported{TrialId{0}, AttemptId{1}, {}, 2, 0.0, {}, {}}) ==
          "trial #0 reports without having a slot");
    CHECK(apply(study::ReportHeld{TrialId{0}, AttemptId{1}, {}, 2, 0.0, {}}) ==
          "a report of trial #0 waits for no turn");
    CHECK(apply(study::TrialPromoted{TrialId{0}, {}, 1, 3}) == "there is no slot for trial #0");
}

TEST_CASE("Logical time is restored from a snapshot with reports, ends and yields pending", "[tuner]") {
    // One slot waits for its turn with reports, one with an end, one is asked to yield, one is empty.
    Turns turns(4, {9, 9, 1, 9});
    turns.report(0, 1);
    turns.report(0, 2);
    turns.report(1, 1);
    turns.report(1, 2);
    turns.report(2, 1); // stops: slot 2 is empty, its ranks are not back
    turns.report(3, 1);
    turns.over(3, AttemptOutcome::finished);
    turns.report(1, 3);
    turns.report(1, 4);
    turns.trial(1).decision_point = 4;
    turns.apply(study::YieldAsked{TrialId{1}, {}});
    CHECK(turns.news() == "0@1 1@1 2@1 3@1 0@2 1@2 #3 finished");
    turns.replace_by_restored();
    CHECK(turns.turns().received(TrialId{1}) == 4);
    CHECK(turns.turns().held(TrialId{1})->size() == 2);
    CHECK(turns.turns().is_leaving(TrialId{1}));
    CHECK(turns.turns().is_leaving(TrialId{2}));
    CHECK(turns.turns().room() == Room::one);
    turns.report(0, 3);
    CHECK(turns.news() == "0@3 1@3");
    turns.report(0, 4);
    CHECK(turns.news() == "0@4 1@4");
}

TEST_CASE("Trials and slots that disagree are found by the invariants", "[tuner]") {
    Turns turns(2, {9, 9, 9});
    turns.trial(1).decision_point = 1;
    turns.report(1, 1);
    const auto damaged = [&](const auto& damage) {
        damage();
        return broken(turns.turns());
    };
    CHECK(broken(turns.turns()).empty());
    SECTION("a trial in another's slot") {
        CHECK(damaged([&] { turns.trial(0).slot = 1; }) == "trial #0 and its slot disagree");
    }
    SECTION("a trial that forgot its slot") {
        CHECK(damaged([&] { turns.trial(0).slot = no_slot; }) == "trial #0 does not know its slot");
    }
    SECTION("a trial that waits outside, and is on no list") {
        CHECK(damaged([&] {
                  turns.trial(0).slot = no_slot;
                  turns.trial(0).phase = TrialPhase::waiting;
                  turns.trial(0).attempt.live = false;
              }) == "trial #0 and the list of those without a slot disagree");
    }
    SECTION("ranks that come back, and nobody counts on") {
        CHECK(damaged([&] { turns.trial(0).phase = TrialPhase::finished; }) ==
              "trial #0 leaves, but its ranks are not counted on");
    }
    SECTION("ranks that are counted on, and do not come back") {
        turns.apply(study::YieldAsked{TrialId{1}, {}});
        CHECK(damaged([&] { turns.trial(1).attempt.live = false; }) == "trial #1 is waited for but holds no ranks");
    }
    SECTION("another number of ranks that come back") {
        turns.apply(study::YieldAsked{TrialId{1}, {}});
        std::vector<Rank> more = turns.trial(1).attempt.ranks;
        more.push_back(Rank{9});
        CHECK(damaged([&] { turns.trial(1).attempt.ranks = more; }) == "the number of ranks that come back is off");
    }
    SECTION("a phase that has no slot") {
        CHECK(damaged([&] {
                  turns.trial(0).phase = TrialPhase::paused;
                  turns.trial(0).attempt.live = false;
              }) == "trial #0 has a slot but is paused");
    }
    SECTION("reports that are behind the trial") {
        CHECK(damaged([&] { turns.trial(1).iteration = 1; }) == "trial #1 holds reports out of order");
    }
    SECTION("reports that nobody received") {
        CHECK(damaged([&] { turns.trial(0).iteration = 1; }) == "trial #0 has received something else than it holds");
    }
    SECTION("one that needs ranks, and is not on the list") {
        CHECK(damaged([&] {
                  turns.trial(0).phase = TrialPhase::waiting;
                  turns.trial(0).attempt.live = false;
              }) == "trial #0 and the list of those that need ranks disagree");
    }
    SECTION("one that waits for its turn, and is not on the list") {
        CHECK(damaged([&] { turns.trial(1).decision_point = 2; }) ==
              "trial #1 and the list of those whose turn has not come disagree");
    }
}

TEST_CASE("A slot whose clock is ahead of time is found by the invariants", "[tuner]") {
    study::StudySpec spec;
    spec.max_concurrent = 1;
    Trials trials;
    const testing::SavesFirst scheduler;
    ByTurn turns(spec, trials, scheduler);
    std::vector<LogicalSlot> slots(1);
    slots[0].clock = 2.0;
    const bool drains = false;
    const double time = 1.0;
    const study::Bytes forged = testing::written(drains, std::vector<TrialId>{}, time, slots);
    study::Decoder in(forged);
    turns.restore(in);
    CHECK(broken(turns) == "the clock of a slot is ahead of time");
}

// ---- reports whose state is saved first

TEST_CASE("A report whose state is saved first is judged when its group has saved and left", "[tuner]") {
    Turns turns(2, {9, 9});
    turns.save_first(0, 2);
    turns.report(0, 1);
    turns.report(1, 1);
    turns.report(0, 2); // its turn, but it waits
    turns.report(1, 2);
    CHECK(turns.log() == "0@1 1@1");
    const ByTurn& strategy = turns.turns();
    CHECK(strategy.is_parked(TrialId{0}));
    CHECK(strategy.surplus(9, false) == TrialId{0}); // whether others want its ranks or not
    turns.apply(study::YieldAsked{TrialId{0}, {}});
    CHECK_FALSE(strategy.surplus(9, false));
    turns.replace_by_restored();
    turns.save(0, 2);
    CHECK(turns.log() == "0@1 1@1"); // it may still save something else
    turns.over(0, AttemptOutcome::paused);
    CHECK(turns.log() == "0@1 1@1 0@2 1@2");
}

TEST_CASE("A group that was lost before it saved trains again up to the report whose state is wanted", "[tuner]") {
    Turns turns(2, {9, 9});
    turns.save_first(0, 1);
    turns.report(0, 1);
    turns.over(0, AttemptOutcome::lost, true);
    CHECK(turns.turns().wants_ranks(TrialId{0}));
    CHECK(turns.line() == Line{0});
    turns.start(0);
    CHECK(turns.turns().standing(TrialId{0}, 1) == Standing::known);
    CHECK(turns.turns().surplus(0, false) == TrialId{0});
    turns.save(0, 1);
    turns.over(0, AttemptOutcome::paused);
    CHECK(turns.log() == "0@1");
    CHECK_FALSE(turns.turns().has_ended(TrialId{0}));
}

TEST_CASE("A trial that ends before its state is saved is judged without", "[tuner]") {
    Turns turns(1, {9});
    turns.save_first(0, 1);
    turns.report(0, 1);
    turns.over(0, AttemptOutcome::failed);
    CHECK(turns.log() == "0@1 #0 failed");
}

} // namespace ranktune::tuner::by_turn_test
