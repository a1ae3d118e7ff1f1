// SPDX-License-Identifier: Apache-2.0
// What the head does when ranks fall silent, leave or send garbage.
#include "head/head_fixture.hpp"

namespace head_ranks_test {

using namespace ranktune;
using namespace ranktune::head;
using namespace ranktune::comm;
using namespace ranktune::testing;

TEST_CASE("A silent rank is killed by one of its node, counts as gone, and its group is told to give up", "[head]") {
    HeadFixture h(3, small_study(2));
    h.join(3);
    const auto start = h.out.take<study::StartTrial>(one);
    CHECK(h.out.take<study::StartTrial>(two) == start);
    for (auto now = 1s; now < 60s; ++now) {
        h.from(one, Heartbeat{key_of(start), 1}, now);
        h.from(Rank(3), Heartbeat{}, now);
        h.tick(now);
    }
    h.out.check_empty();
    h.from(one, Heartbeat{key_of(start), 1}, 60s);
    h.from(Rank(3), Heartbeat{}, 60s);
    h.tick(60s);
    CHECK(h.out.take<EndRank>(one) == EndRank{two});
    h.out.check_empty();
    CHECK(h.sink.count<study::RankLost>() == 0); // it may write until it is dead
    h.from(one, RankEnded{two}, 60s);
    h.tick(60s + 30ms);
    CHECK(h.sink.count<study::RankLost>() == 1);
    CHECK(h.out.take<study::Abandon>(one).ranks == std::vector<Rank>{one});
    h.out.check_empty();
    CHECK(h.machine->gone() == std::vector<Rank>{two});
    CHECK(h.log.lines ==
          std::vector<std::string>{"lost rank=2 host=node trial=0 reason=no sign of life for 60 s; it was killed"});
    // The leader answers, and the trial starts again on the living ranks.
    h.from(one, HeadFixture::over_of(start, AttemptOutcome::lost), 61s);
    h.tick(61s);
    const auto again = h.out.take<study::StartTrial>(one);
    CHECK(again.attempt == AttemptId(2));
    CHECK(again.ranks == std::vector<Rank>{one, Rank(3)});
    h.out.take<study::StartTrial>(Rank(3));
    h.out.check_empty();
}

TEST_CASE("A rank that was given up but lives is told to leave, once", "[head]") {
    HeadFixture h(2);
    h.join(2);
    h.out.drop<study::StartTrial>();
    h.from(two, Bye{"user code did not return"}, 1s);
    h.tick(1s);
    CHECK(h.sink.count<study::RankLost>() == 1);
    h.from(two, Heartbeat{}, 2s);
    h.from(two, Heartbeat{}, 3s);
    CHECK_FALSE(h.out.take<Leave>(two).clean);
    h.tick(3s);
    CHECK(h.machine->figures(at(3s)).stale_messages == 2);
    h.out.check_empty();
}

TEST_CASE("A worker that leaves unasked counts as gone, with its reason", "[head]") {
    HeadFixture h(2);
    h.join(2);
    h.out.drop<study::StartTrial>();
    h.from(two, Bye{"user code did not return"}, 1s);
    h.tick(1s);
    REQUIRE(h.sink.count<study::RankLost>() == 1);
    h.out.check_empty(); // nobody to tell: the rank was alone in its trial
}

TEST_CASE("A worker that ends by the fault of its trial costs the trial a failure, not a loss", "[head]") {
    HeadFixture h(2);
    h.join(2);
    const auto start = h.out.take<study::StartTrial>(one);
    h.out.drop<study::StartTrial>();
    h.from(one, Bye{"no report for 5s", key_of(start)}, 1s);
    h.tick(1s);
    REQUIRE(h.sink.count<study::RankLost>() == 1);
    const auto& trial = h.tuner.state().trial(start.trial);
    CHECK(trial.phase == study::TrialPhase::failed);
    CHECK(trial.losses == 0);
    CHECK(trial.failures == 1);
    CHECK(trial.failure.message == "no report for 5s");
}

TEST_CASE("Ranks that all hang charge the trial that hung, not the one that the head has given them since", "[head]") {
    auto spec = small_study(2);
    spec.num_trials = 3;
    HeadFixture h(4, spec);
    h.join(4);
    const auto first = h.out.take<study::StartTrial>(one);
    const auto second = h.out.take<study::StartTrial>(Rank(3));
    h.out.drop<study::StartTrial>();
    h.from(one, Bye{"no report for 5s", key_of(first)}, 5s);
    h.from(Rank(3), Bye{"no report for 5s", key_of(second)}, 5s);
    h.tick(5s);
    h.out.drop<study::Abandon>();
    const auto third = h.out.take<study::StartTrial>(two); // their leaders are gone
    CHECK(third.ranks == std::vector<Rank>{two, Rank(4)});
    h.out.drop<study::StartTrial>();
    h.from(two, Bye{"no report for 5s", key_of(first)}, 6s);
    h.from(Rank(4), Bye{"no report for 5s", key_of(second)}, 6s);
    h.tick(6s);
    for (const auto& [start, failures] : {std::pair{first, 1U}, {second, 1U}, {third, 0U}}) {
        const auto& trial = h.tuner.state().trial(start.trial);
        CHECK(trial.failures == failures);
        CHECK(trial.losses == 1 - failures);
    }
    CHECK(h.tuner.state().trial(third.trial).phase == study::TrialPhase::waiting);
}

TEST_CASE("A message that cannot be read costs its sender, not the study", "[head]") {
    HeadFixture h(2);
    h.join(2);
    h.out.drop<study::StartTrial>();
    h.machine->on_message(two, study::Bytes{std::byte{250}}, at(1s));
    h.machine->on_message(Rank(77), bytes_of(Heartbeat{}), at(1s)); // no such rank
    h.tick(1s);
    CHECK(h.sink.count<study::RankLost>() == 1);
    CHECK(h.machine->gone() == std::vector<Rank>{two});
    CHECK_FALSE(h.machine->end().has_value());
}

TEST_CASE("Without ranks the study ends as resumable, at once", "[head]") {
    HeadFixture h(1);
    h.join(1);
    h.out.take<study::StartTrial>(one);
    h.from(one, Bye{"its node dies"}, 1s);
    h.tick(1s);
    REQUIRE(h.machine->end().has_value());
    CHECK(h.machine->end()->outcome == StudyOutcome::resumable);
    CHECK_FALSE(h.machine->end()->clean);
    CHECK(h.duties.results.size() == 1);
    h.out.check_empty();
}

TEST_CASE("A leader that dies in the round in which its trial starts is not waited for", "[head]") {
    HeadFixture h(2, small_study(2));
    for (const Rank rank : {one, two}) h.from(rank, Hello{protocol_version, "0.1.0", "node", 0}, 0s);
    h.from(one, Bye{"killed"}, 0s);
    h.tick(0s);
    h.out.take<Welcome>(one);
    h.out.take<Welcome>(two);
    h.out.take<study::StartTrial>(two);
    CHECK(h.out.take<study::Abandon>(two).ranks == std::vector<Rank>{two});
    // One rank is left, and trials need two.
    CHECK(h.out.take<Leave>(two).outcome == StudyOutcome::resumable);
    h.out.check_empty();
    const HeadFigures figures = h.machine->figures(at(1s));
    CHECK(figures.idle_s == Approx(1.0));
    CHECK(figures.starting_s == Approx(0.0));
}

TEST_CASE("A head that was suspended does not count that time as the workers' silence", "[head]") {
    HeadFixture h(2);
    h.join(2);
    h.out.drop<study::StartTrial>();
    h.tick(1s);
    h.tick(1000s);
    h.tick(1001s);
    CHECK(h.machine->gone().empty());
}

TEST_CASE("A head that was held up reads the waiting messages before it checks for silence", "[head]") {
    HeadFixture h(2);
    h.join(2);
    h.out.drop<study::StartTrial>();
    h.tick(1s);
    for (const Rank rank : {one, two}) h.from(rank, Heartbeat{}, 100s); // sent while the head was held up
    h.tick(100s);
    CHECK(h.machine->gone().empty());
    for (auto second = 101s; second < 160s; ++second) h.tick(second);
    CHECK(h.machine->gone().empty());
    h.from(one, Heartbeat{}, 160s);
    h.tick(160s);
    CHECK(h.out.take<EndRank>(one) == EndRank{two}); // one time-out later
    for (auto second = 161s; second < 165s; ++second) h.tick(second);
    CHECK(h.machine->gone().empty());
    h.tick(165s); // nobody says that it is dead
    CHECK(h.machine->gone() == std::vector<Rank>{two});
}

TEST_CASE("A silent rank that speaks again before it is killed is not lost", "[head]") {
    HeadFixture h(2);
    h.join(2);
    h.out.drop<study::StartTrial>();
    h.only(one, 1s, 60s);
    CHECK(h.out.take<EndRank>(one) == EndRank{two});
    for (auto second = 61s; second < 80s; ++second) {
        for (const Rank rank : {one, two}) h.from(rank, Heartbeat{}, second);
        h.tick(second);
    }
    CHECK(h.machine->gone().empty());
    h.out.check_empty();
}

TEST_CASE("A silent rank that waits for a core has as much time again, once", "[head]") {
    HeadFixture h(2);
    h.join(2);
    h.out.drop<study::StartTrial>();
    h.only(one, 1s, 60s);
    CHECK(h.out.take<EndRank>(one) == EndRank{two});
    h.from(one, RankWaits{two}, 60s);
    CHECK(h.log.lines.back().starts_with("slow rank=2 host=node"));
    h.only(one, 61s, 119s);
    h.out.check_empty();
    h.only(one, 120s, 120s);
    CHECK(h.out.take<EndRank>(one) == EndRank{two, true});
    h.from(one, RankWaits{two}, 120s); // the answer to the first question, late
    h.from(one, RankEnded{two}, 120s);
    h.tick(120s + 30ms);
    CHECK(h.machine->gone() == std::vector<Rank>{two});
    CHECK(h.log.lines.back().find("no sign of life for 120 s; it was killed") != std::string::npos);
}

TEST_CASE("A rank that was given up before its mate has answered is killed, slow or not", "[head]") {
    HeadFixture h(2);
    h.join(2);
    h.out.drop<study::StartTrial>();
    h.only(one, 1s, 65s);
    CHECK(h.out.take<EndRank>(one) == EndRank{two});
    CHECK(h.machine->gone() == std::vector<Rank>{two});
    h.from(one, RankWaits{two}, 66s);
    CHECK(h.out.take<EndRank>(one) == EndRank{two, true});
    CHECK(h.log.lines.back().starts_with("lost rank=2"));
}

TEST_CASE("A slow rank that speaks again is judged as before", "[head]") {
    HeadFixture h(2);
    h.join(2);
    h.out.drop<study::StartTrial>();
    h.duties.killing = process::Killing::waits; // it is on the head's node
    for (auto second = 1s; second <= 200s; ++second) {
        h.from(one, Heartbeat{}, second);
        if (second == 100s) h.from(two, Heartbeat{}, second);
        h.tick(second);
        CHECK(h.machine->gone().empty());
    }
    CHECK(h.duties.asked == std::vector<std::pair<Rank, bool>>{{two, false}, {two, false}}); // at 60 and 160 s
    h.only(one, 201s, 220s);
    CHECK(h.duties.asked.back() == std::pair(two, true)); // at 220 s
}

TEST_CASE("A silent rank alone on its node is given up without delay", "[head]") {
    HeadFixture h(2);
    for (const auto& [rank, host] : {std::pair{one, "n1"}, {two, "n2"}})
        h.from(rank, Hello{protocol_version, "0.1.0", host, 1}, 0s);
    h.tick(0s);
    h.only(one, 1s, 60s);
    CHECK(h.machine->gone() == std::vector<Rank>{two});
}

TEST_CASE("A rank whose process has ended is lost as soon as its last words can be there", "[head]") {
    HeadFixture h(3, small_study(2));
    h.join(3);
    const auto start = h.out.take<study::StartTrial>(one);
    h.out.drop<study::StartTrial>();
    h.from(Rank(3), RankEnded{two}, 1s);
    h.from(one, RankEnded{two}, 1s); // seen twice
    h.tick(1s);
    CHECK(h.machine->gone().empty());
    CHECK(h.machine->wake_at() <= at(1s + 30ms));
    h.tick(1s + 30ms);
    CHECK(h.machine->gone() == std::vector<Rank>{two});
    CHECK(h.sink.count<study::RankLost>() == 1);
    CHECK(h.log.lines == std::vector<std::string>{"lost rank=2 host=node trial=0 reason=its process has ended"});
    CHECK(h.out.take<study::Abandon>(one).ranks == std::vector<Rank>{one});
    h.from(one, HeadFixture::over_of(start, AttemptOutcome::lost), 2s);
    h.tick(2s);
    CHECK(h.out.take<study::StartTrial>(one).ranks == std::vector<Rank>{one, Rank(3)});
    CHECK(h.tuner.state().trial(start.trial).losses == 1);
}

TEST_CASE("A rank that crashed in user code charges its trial by its note, and only the attempt that it was in",
          "[head]") {
    for (const bool of_this_attempt : {true, false}) {
        HeadFixture h(2);
        h.join(2);
        const auto start = h.out.take<study::StartTrial>(one);
        h.out.drop<study::StartTrial>();
        const AttemptId attempt(of_this_attempt ? start.attempt.value() : start.attempt.value() + 1);
        h.duties.words =
            head::HeadDuties::LastWords{{start.trial, attempt, {"killed by signal 11 (SIGSEGV)", 1}}, true};
        h.from(two, RankEnded{one}, 1s);
        h.tick(1s + 30ms);
        const auto& trial = h.tuner.state().trial(start.trial);
        CHECK(trial.failures == (of_this_attempt ? 1U : 0U));
        CHECK(trial.losses == (of_this_attempt ? 0U : 1U));
        if (of_this_attempt) CHECK(trial.failure.message == "killed by signal 11 (SIGSEGV)");
    }
}

TEST_CASE("The crash note of a rank counts also where nobody of its node has seen its end", "[head]") {
    HeadFixture h(2);
    for (const auto& [rank, host] : {std::pair{one, "n1"}, {two, "n2"}})
        h.from(rank, Hello{protocol_version, "0.1.0", host, 1}, 0s);
    h.tick(0s);
    h.out.drop<Welcome>();
    const auto start = h.out.take<study::StartTrial>(one);
    h.duties.words =
        head::HeadDuties::LastWords{{start.trial, start.attempt, {"killed by signal 7 (SIGBUS)", 1}}, true};
    h.only(two, 1s, 60s);
    CHECK(h.machine->gone() == std::vector<Rank>{one});
    CHECK(h.tuner.state().trial(start.trial).failure.message == "killed by signal 7 (SIGBUS)");
}

TEST_CASE("The last message of a rank says why, though its end was seen first", "[head]") {
    HeadFixture h(2);
    h.join(2);
    h.out.drop<study::StartTrial>();
    h.from(one, RankEnded{two}, 1s);
    h.from(two, Bye{"user code did not return"}, 1s);
    h.tick(1s + 30ms);
    REQUIRE(h.log.lines.size() == 1);
    CHECK(h.log.lines.front().ends_with("reason=user code did not return"));
    h.machine->on_rank_ended(Rank(77), at(2s)); // no such rank
    h.machine->on_rank_ended(base::head_rank, at(2s));
    h.tick(3s);
    CHECK(h.machine->gone() == std::vector<Rank>{two});
}

TEST_CASE("A head that comes back to workers that have left says that it was held up", "[head]") {
    HeadFixture h(2);
    h.join(2);
    h.out.drop<study::StartTrial>();
    h.tick(1s);
    CHECK(h.machine->desertion().empty());
    for (const Rank rank : {one, two}) h.from(rank, Bye{"no sign of life of the head for 60 s", {}, true}, 86s);
    h.tick(86s);
    REQUIRE(h.machine->end().has_value());
    CHECK(h.machine->end()->outcome == StudyOutcome::resumable);
    CHECK(h.machine->end()->reason == study::Reason::lost);
    CHECK(h.machine->end()->message ==
          "the head was held up for 85 s: its workers heard nothing of it for 60 s (run.heartbeat_timeout), and left");
    CHECK_FALSE(h.machine->end()->clean);
}

TEST_CASE("One worker that took the head for dead does not end the study of the others", "[head]") {
    HeadFixture h(2);
    h.join(2);
    h.out.drop<study::StartTrial>();
    for (auto second = 1s; second < 5s; ++second) h.tick(second);
    h.from(one, Bye{"no sign of life of the head for 60 s", {}, true}, 5s); // a network lost messages
    h.tick(5s);
    CHECK_FALSE(h.machine->end().has_value());
    CHECK(h.machine->gone() == std::vector<Rank>{one});
    CHECK(h.machine->desertion() == "workers heard nothing of the head for 60 s (run.heartbeat_timeout), and left");
}

// --- time ---

TEST_CASE("A worker without other messages gets Alive from the head", "[head]") {
    HeadFixture h(2);
    h.join(2);
    h.out.drop<study::StartTrial>();
    CHECK(h.machine->wake_at() <= at(1s));
    h.machine->on_tick(at(1s));
    h.out.take<Alive>(one);
    h.out.take<Alive>(two);
    h.machine->on_tick(at(1500ms));
    h.out.check_empty();
}

TEST_CASE("The head does not speak to a silent worker before it is heard again", "[head]") {
    HeadFixture h(2);
    h.join(2);
    h.out.drop<study::StartTrial>();
    for (auto now = 1s; now <= 10s; now += 1s) {
        h.from(one, Heartbeat{}, now);
        h.machine->on_tick(at(now));
    }
    CHECK(h.out.count(one) == 10);
    CHECK(h.out.count(two) == 3);
    h.from(two, Heartbeat{}, 10s);
    h.machine->on_tick(at(11s));
    CHECK(h.out.count(two) == 4);
}

} // namespace head_ranks_test
