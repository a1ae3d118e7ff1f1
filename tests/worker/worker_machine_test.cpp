// SPDX-License-Identifier: Apache-2.0
#include "worker/worker_fixture.hpp"

namespace worker_machine_test {

using namespace ranktune;
using namespace ranktune::worker;
using namespace ranktune::worker;
using namespace ranktune::comm;
using namespace ranktune::testing;
using study::AttemptOutcome;

namespace {

const AttemptKey a = key_for(5);
const AttemptKey b = key_for(6);
const Rank one{1};
const Rank two{2};
const Rank three{3};

/// Rank 1 leads ranks 1 to 3 in attempt `a`, training since 1 s.
class Leader : public WorkerFixture {
  public:
    Leader() : WorkerFixture(one) {
        from(head, start_of(a, {one, two, three}), at(0s));
        from(two, Ready{a}, at(1s));
        from(three, Ready{a}, at(1s));
        out.take<Go>(two);
        out.take<Go>(three);
        runner->calls.clear();
    }
};

/// Rank 2 follows rank 1 in attempt `a`, training since 1 s.
class Follower : public WorkerFixture {
  public:
    Follower() : WorkerFixture(two) {
        from(head, start_of(a, {one, two, three}), at(0s));
        out.take<Ready>(one);
        from(one, Go{a}, at(1s));
        runner->calls.clear();
    }
};

} // namespace

TEST_CASE("A worker greets the head once, and sends heartbeats once it is welcomed", "[group]") {
    Recorder out;
    base::NullLog log;
    WorkerMachine worker(
        {one, "0.1.0", "node1", 2, 120s, {"GPU-1,GPU-2", 3, "f-0"}}, out,
        [](const Welcome&) { return std::make_unique<ScriptedRunner>(); }, log, at(0s));
    const auto hello = out.take<Hello>(base::head_rank);
    CHECK(hello == Hello{protocol_version, "0.1.0", "node1", 2, "GPU-1,GPU-2", 3, "f-0"});
    worker.on_tick(at(5s));
    out.check_empty();
    worker.on_message(base::head_rank, bytes_of(Welcome{Incarnation(1), "", "", 1s, 60s, 30s}), at(6s));
    worker.on_tick(at(6s));
    worker.on_tick(at(6500ms));
    worker.on_tick(at(7s));
    CHECK(out.take<Heartbeat>(base::head_rank) == Heartbeat{});
    CHECK(out.take<Heartbeat>(base::head_rank) == Heartbeat{});
    out.check_empty();
}

TEST_CASE("A leader starts the group when every member is ready, and not before", "[group]") {
    WorkerFixture w(one);
    w.from(w.head, start_of(a, {one, two, three}), at(0s));
    w.from(three, Ready{a}, at(0s));
    w.from(three, Ready{a}, at(0s)); // a duplicate does not count twice
    w.tick(at(1s));
    w.check_calls({});
    w.out.check_empty();
    w.from(two, Ready{a}, at(1s));
    CHECK(w.out.take<Go>(two).key == a);
    CHECK(w.out.take<Go>(three).key == a);
    w.check_calls({"start #5"});
    CHECK(w.runner->started->leads());
    w.out.check_empty();
}

TEST_CASE("A trial of one rank starts at once", "[group]") {
    WorkerFixture w(three);
    w.from(w.head, start_of(a, {three}), at(0s));
    w.check_calls({"start #5"});
    w.happened(RunnerEnded{AttemptOutcome::finished, {}}, at(1s));
    CHECK(w.out.take<GroupOver>(w.head).over.outcome == AttemptOutcome::finished);
    w.out.check_empty();
}

TEST_CASE("A follower says that it is ready and waits for its leader", "[group]") {
    WorkerFixture w(two);
    w.from(w.head, start_of(a, {one, two}), at(0s));
    CHECK(w.out.take<Ready>(one).key == a);
    w.check_calls({});
    w.from(three, Go{a}, at(0s)); // not the leader
    w.from(one, Go{b}, at(0s));   // not this attempt
    w.check_calls({});
    w.from(one, Go{a}, at(0s));
    w.from(one, Go{a}, at(0s));
    w.check_calls({"start #5"});
    CHECK(w.runner->started->group_rank == 1);
    CHECK(w.machine->stale_messages() == 3);
    w.out.check_empty();
}

TEST_CASE("A member's message that comes before the leader knows the attempt is kept", "[group]") {
    WorkerFixture w(one);
    w.from(two, Ready{a}, at(0s));
    w.from(two, Ready{key_for(9)}, at(0s));
    w.from(w.head, start_of(a, {one, two}), at(0s));
    w.out.take<Go>(two);
    w.check_calls({"start #5"});
    w.out.check_empty();
}

TEST_CASE("A member's message that comes before the leader is welcomed is kept", "[group]") {
    Recorder out;
    base::NullLog log;
    ScriptedRunner* runner = nullptr;
    WorkerMachine worker(
        {one, "0.1.0", "node1", 0, 120s}, out,
        [&](const Welcome&) {
            auto made = std::make_unique<ScriptedRunner>();
            runner = made.get();
            return made;
        },
        log, at(0s));
    worker.on_message(two, bytes_of(Ready{a}), at(0s));
    worker.on_message(base::head_rank, bytes_of(Welcome{Incarnation(1), "", "", 1s, 60s, 30s}), at(0s));
    worker.on_message(base::head_rank, bytes_of(start_of(a, {one, two})), at(0s));
    CHECK(runner->calls == std::vector<std::string>{"start #5"});
}

TEST_CASE("Reports and checkpoints go to the head, verdicts to the runner", "[group]") {
    Leader w;
    w.happened(RunnerReported{1, 0.5, {{"loss", 2.0}}}, at(2s));
    const auto report = w.out.take<study::ReportArrived>(w.head);
    CHECK(key_of(report) == a);
    CHECK(report.iteration == 1);
    CHECK(report.seconds == 0.5);
    CHECK(report.metrics == std::vector<study::NamedMetric>{{"loss", 2.0}});
    w.happened(RunnerSaved{{1, "checkpoints/5/1-1.1.h5", 10, 11}}, at(2s));
    CHECK(w.out.take<study::CheckpointSaved>(w.head).checkpoint.bytes == 10);
    w.from(w.head, decide_of(a, 1), at(2s));
    w.from(w.head, decide_of(a, 1), at(2s)); // answered already
    w.from(w.head, decide_of(b, 2), at(2s)); // another trial
    w.from(w.head, decide_of(key_for(5, 2), 2), at(2s));
    w.from(w.head, study::Interrupt{a.trial, a.attempt, a.incarnation, {}}, at(2s));
    w.check_calls({"decide 1", "interrupt"});
    w.out.check_empty();
}

TEST_CASE("The head hears of a named place before its report, and says when it is contested", "[group]") {
    Leader w;
    w.happened(RunnerNamed{{"node1", "/data/ckpt"}}, at(2s));
    CHECK(w.out.take<PlaceNamed>(w.head) == PlaceNamed{a, "node1", "/data/ckpt"});
    w.from(w.head, PlaceContested{b}, at(2s)); // another trial
    w.from(w.head, PlaceContested{a}, at(2s));
    w.check_calls({"contest"});
    w.out.check_empty();
}

TEST_CASE("An interrupt that comes before the start is handed over after it", "[group]") {
    WorkerFixture w(one);
    w.from(w.head, start_of(a, {one, two}), at(0s));
    w.from(w.head, study::Interrupt{a.trial, a.attempt, a.incarnation, {}}, at(0s));
    w.check_calls({});
    w.from(two, Ready{a}, at(0s));
    w.check_calls({"start #5", "interrupt"});
}

TEST_CASE("The head learns that a group is free when its last member is free", "[group]") {
    Leader w;
    w.from(two, MemberOver{a, AttemptOutcome::paused, {}}, at(2s));
    w.happened(RunnerEnded{AttemptOutcome::paused, {}}, at(3s));
    w.from(two, MemberOver{a, AttemptOutcome::paused, {}}, at(3s));
    w.out.check_empty();
    w.from(three, MemberOver{a, AttemptOutcome::paused, {}}, at(4s));
    const auto over = w.out.take<GroupOver>(w.head);
    CHECK(key_of(over.over) == a);
    CHECK(over.over.outcome == AttemptOutcome::paused);
    w.out.check_empty();
    CHECK(w.machine->working_on() == AttemptKey{});
}

TEST_CASE("A leader tells how long its group was starting and training", "[group]") {
    Leader w; // started at 0 s
    w.tick(at(2s));
    w.runner->steps = 101;
    w.tick(at(3s));
    w.from(two, MemberOver{a, AttemptOutcome::finished, {}}, at(7s));
    w.from(three, MemberOver{a, AttemptOutcome::finished, {}}, at(7s));
    w.happened(RunnerEnded{AttemptOutcome::finished, {}}, at(8s));
    const auto over = w.out.take<GroupOver>(w.head);
    CHECK(over.starting_s == Approx(3.0));
    CHECK(over.training_s == Approx(5.0));
}

TEST_CASE("The start of a program lies within its first iteration, and does not count as training", "[group]") {
    Leader w; // started at 0 s
    w.happened(RunnerReported{1, 4.5, {}}, at(5s));
    w.out.take<study::ReportArrived>(w.head);
    w.happened(RunnerReported{2, 5.0, {}}, at(6s));
    w.out.take<study::ReportArrived>(w.head);
    w.from(two, MemberOver{a, AttemptOutcome::finished, {}}, at(7s));
    w.from(three, MemberOver{a, AttemptOutcome::finished, {}}, at(7s));
    RunnerEnded ended{AttemptOutcome::finished, {}};
    ended.starting_s = 4.0;
    w.happened(std::move(ended), at(7s));
    const auto over = w.out.take<GroupOver>(w.head);
    CHECK(over.starting_s == Approx(5.0 + 4.0)); // the first sign of this stand-in was its first report
    CHECK(over.training_s == Approx(1.0));
}

TEST_CASE("Waiting for verdicts does not count as training", "[group]") {
    Leader w; // started at 0 s
    w.happened(RunnerReported{1, 0.5, {}}, at(1s));
    w.out.take<study::ReportArrived>(w.head);
    w.from(two, MemberOver{a, AttemptOutcome::paused, {}}, at(9s));
    w.from(three, MemberOver{a, AttemptOutcome::paused, {}}, at(9s));
    w.happened(RunnerEnded{AttemptOutcome::paused, {}}, at(9s));
    CHECK(w.out.take<GroupOver>(w.head).training_s == Approx(0.5));
}

TEST_CASE("An exception on any rank fails the attempt, with the message of the lowest rank that has one", "[group]") {
    Leader w;
    w.happened(RunnerEnded{AttemptOutcome::failed, {}}, at(2s));
    w.from(three, MemberOver{a, AttemptOutcome::failed, {"loss is NaN", 2}}, at(2s));
    w.from(two, MemberOver{a, AttemptOutcome::lost, {"a partner left"}}, at(2s));
    const auto over = w.out.take<GroupOver>(w.head);
    CHECK(over.over.outcome == AttemptOutcome::failed);
    CHECK(over.over.failure == study::Failure{"loss is NaN", 2});
}

TEST_CASE("A leader that could not save has not failed, although its members had to stop with it", "[group]") {
    Leader w;
    w.happened(RunnerEnded{AttemptOutcome::unsaved, {"no space left on device", 0}}, at(2s));
    w.from(three, MemberOver{a, AttemptOutcome::failed, {}}, at(2s));
    w.from(two, MemberOver{a, AttemptOutcome::failed, {}}, at(2s));
    const auto over = w.out.take<GroupOver>(w.head);
    CHECK(over.over.outcome == AttemptOutcome::unsaved);
    CHECK(over.over.failure == study::Failure{"no space left on device", 0});
}

TEST_CASE("A rank that is lost and says why counts more than one that heard of a failure", "[group]") {
    Leader w;
    w.happened(RunnerEnded{AttemptOutcome::failed, {}}, at(2s));
    w.from(three, MemberOver{a, AttemptOutcome::failed, {}}, at(2s));
    w.from(two, MemberOver{a, AttemptOutcome::lost, {"the memory of the GPU was full", 1}}, at(2s));
    const auto over = w.out.take<GroupOver>(w.head);
    CHECK(over.over.outcome == AttemptOutcome::lost);
    CHECK(over.over.failure == study::Failure{"the memory of the GPU was full", 1});
}

TEST_CASE("One lost member makes the attempt lost", "[group]") {
    Leader w;
    w.happened(RunnerEnded{AttemptOutcome::finished, {}}, at(2s));
    w.from(three, MemberOver{a, AttemptOutcome::finished, {}}, at(2s));
    w.from(two, MemberOver{a, AttemptOutcome::lost, {}}, at(2s));
    CHECK(w.out.take<GroupOver>(w.head).over.outcome == AttemptOutcome::lost);
}

TEST_CASE("A leader whose group is lost does not wait for ever for a member that hangs", "[group]") {
    Leader w;
    const auto hear_head = [&](StudyTime now) { // which is alive all the time
        w.from(w.head, Alive{}, now);
        w.tick(now);
    };
    hear_head(at(40s));
    w.happened(RunnerEnded{AttemptOutcome::lost, {"waited for too long", 0}}, at(40s));
    w.from(three, MemberOver{a, AttemptOutcome::lost, {}}, at(41s));
    for (int s = 50; s < 340; s += 10) hear_head(at(std::chrono::seconds(s)));
    CHECK(w.machine->wake_at() <= at(340s));
    w.out.check_empty();
    hear_head(at(340s)); // ten times run.abort_grace
    const auto over = w.out.take<GroupOver>(w.head);
    CHECK(over.over.outcome == AttemptOutcome::lost);
    CHECK(over.over.failure == study::Failure{"waited for too long", 0});
    w.from(two, MemberOver{a, AttemptOutcome::finished, {}}, at(350s)); // too late
    w.from(w.head, start_of(b, {one}), at(350s));
    w.check_calls({"start #6"});
    w.out.check_empty();
}

TEST_CASE("A leader that hangs itself when a member says that the group is lost is told to give up", "[group]") {
    Leader w;
    for (int s = 10; s <= 40; s += 10) {
        w.from(w.head, Alive{}, at(std::chrono::seconds(s)));
        w.tick(at(std::chrono::seconds(s)));
    }
    w.from(two, MemberOver{a, AttemptOutcome::lost, {"waited for too long", 1}}, at(40s));
    for (int s = 50; s <= 340; s += 10) {
        w.check_calls({});
        w.from(w.head, Alive{}, at(std::chrono::seconds(s)));
        w.tick(at(std::chrono::seconds(s)));
    }
    w.check_calls({"abandon"});
    w.from(w.head, Alive{}, at(365s));
    w.tick(at(370s)); // run.abort_grace later
    REQUIRE(w.machine->end().has_value());
    CHECK_FALSE(w.machine->end()->guilty);
}

TEST_CASE("A follower tells its leader when no user code runs any more", "[group]") {
    Follower w;
    w.happened(RunnerReported{1, 0.5, {}}, at(2s)); // reporting is the leader's job
    w.happened(RunnerEnded{AttemptOutcome::failed, {"no memory", 1}}, at(3s));
    CHECK(w.out.take<MemberOver>(one) == MemberOver{a, AttemptOutcome::failed, {"no memory", 1}});
    w.out.check_empty();
}

TEST_CASE("Heartbeats name the attempt and its progress", "[group]") {
    Follower w;
    w.runner->steps = 107;
    w.machine->on_tick(at(2s));
    CHECK(w.out.take<Heartbeat>(w.head) == Heartbeat{a, 7});
}

TEST_CASE("A StartTrial that is repeated, or from another incarnation, starts nothing", "[group]") {
    WorkerFixture w(one);
    w.from(w.head, start_of(a, {one}), at(0s));
    w.from(w.head, start_of(a, {one}), at(0s));
    w.happened(RunnerEnded{AttemptOutcome::finished, {}}, at(1s));
    w.from(w.head, start_of(a, {one}), at(1s));
    auto stranger = start_of(key_for(5, 2), {one});
    stranger.incarnation = Incarnation(2);
    w.from(w.head, stranger, at(1s));
    w.from(w.head, start_of(b, {two, three}), at(1s)); // without this rank
    w.from(two, start_of(b, {one}), at(1s));           // not from the head
    w.check_calls({"start #5"});
    CHECK(w.machine->stale_messages() == 5);
    w.from(w.head, start_of(key_for(5, 2), {one}), at(2s));
    w.check_calls({"start #5", "start #5"});
}

// --- lost members ---

TEST_CASE("A leader gives up when a member is dead, and answers for the living", "[group]") {
    Leader w;
    w.from(w.head, abandon_of(a, {one, two}), at(2s));
    w.check_calls({"abandon"});
    w.happened(RunnerReported{1, 0.5, {}}, at(2s)); // ignored after giving up
    w.happened(RunnerEnded{AttemptOutcome::finished, {}}, at(3s));
    w.out.check_empty();
    w.from(two, MemberOver{a, AttemptOutcome::lost, {}}, at(4s));
    const auto over = w.out.take<GroupOver>(w.head);
    CHECK(over.over.outcome == AttemptOutcome::lost);
    w.out.check_empty();
}

TEST_CASE("A second death during an abandon is not waited for", "[group]") {
    Leader w;
    w.from(w.head, abandon_of(a, {one, two}), at(2s));
    w.happened(RunnerEnded{AttemptOutcome::lost, {}}, at(3s));
    w.out.check_empty();
    w.from(w.head, abandon_of(a, {one}), at(4s));
    CHECK(w.out.take<GroupOver>(w.head).over.outcome == AttemptOutcome::lost);
    w.from(w.head, abandon_of(a, {one}), at(4s));
    w.out.check_empty();
}

TEST_CASE("A leader whose member died before it was ready never starts", "[group]") {
    WorkerFixture w(one);
    w.from(w.head, start_of(a, {one, two, three}), at(0s));
    w.from(two, Ready{a}, at(0s));
    w.from(w.head, abandon_of(a, {one, two}), at(1s));
    w.out.check_empty();
    w.from(two, MemberOver{a, AttemptOutcome::lost, {}}, at(1s));
    CHECK(w.out.take<GroupOver>(w.head).over.outcome == AttemptOutcome::lost);
    w.from(three, Ready{a}, at(1s)); // it was alive after all
    w.check_calls({});
    w.out.check_empty();
}

TEST_CASE("A member that gave up before the leader heard of the death keeps the group from starting", "[group]") {
    WorkerFixture w(one);
    w.from(w.head, start_of(a, {one, two, three}), at(0s));
    w.from(two, MemberOver{a, AttemptOutcome::lost, {}}, at(0s));
    w.from(two, Ready{a}, at(0s));
    w.from(three, Ready{a}, at(0s));
    w.check_calls({});
    for (int s = 10; s <= 400; s += 10) { // it waits for the head's word
        w.from(w.head, Alive{}, at(std::chrono::seconds(s)));
        w.tick(at(std::chrono::seconds(s)));
    }
    w.out.check_empty();
    w.from(w.head, abandon_of(a, {one, two}), at(400s));
    CHECK(w.out.take<GroupOver>(w.head).over.outcome == AttemptOutcome::lost);
}

TEST_CASE("A ready follower that has to give up answers its leader and ignores a late Go", "[group]") {
    WorkerFixture w(two);
    w.from(w.head, start_of(a, {one, two, three}), at(0s));
    w.out.take<Ready>(one);
    w.from(w.head, abandon_of(a, {one, two}), at(1s));
    CHECK(w.out.take<MemberOver>(one) == MemberOver{a, AttemptOutcome::lost, {}});
    w.from(one, Go{a}, at(1s));
    w.check_calls({});
    w.out.check_empty();
}

TEST_CASE("A member of a dead leader is ready for its next attempt when user code has returned", "[group]") {
    Follower w;
    w.from(w.head, abandon_of(a, {two, three}), at(2s));
    w.from(w.head, start_of(b, {two, three}), at(2s)); // this rank leads now
    w.from(three, Ready{b}, at(2s));
    w.check_calls({"abandon", "abandon"});
    w.tick(at(3s));
    w.out.drop<MemberOver>();
    w.out.check_empty();
    w.happened(RunnerEnded{AttemptOutcome::lost, {}}, at(4s));
    w.out.take<MemberOver>(one); // its leader is dead
    CHECK(w.out.take<Go>(three).key == b);
    CHECK(w.runner->calls.back() == "start #6");
    w.out.check_empty();
}

TEST_CASE("A waiting attempt can be given up, too", "[group]") {
    Follower w;
    w.from(w.head, abandon_of(a, {two, three}), at(2s));
    SECTION("by its leader") {
        w.from(w.head, start_of(b, {two, three}), at(2s));
        w.from(w.head, abandon_of(b, {two}), at(2s));
        CHECK(w.out.take<GroupOver>(w.head).over.outcome == AttemptOutcome::lost);
    }
    SECTION("by its leader, who waits for a member") {
        w.from(w.head, start_of(b, {two, three}), at(2s));
        w.from(w.head, abandon_of(b, {two, three}), at(2s));
        w.out.check_empty();
        w.from(three, MemberOver{b, AttemptOutcome::lost, {}}, at(2s));
        CHECK(w.out.take<GroupOver>(w.head).over.outcome == AttemptOutcome::lost);
    }
    SECTION("by a follower") {
        w.from(w.head, start_of(b, {one, two}), at(2s));
        w.from(w.head, abandon_of(b, {one, two}), at(2s));
        CHECK(w.out.take<MemberOver>(one).key == b);
    }
    w.happened(RunnerEnded{AttemptOutcome::lost, {}}, at(4s));
    CHECK(w.out.take<MemberOver>(one).key == a);
    CHECK(w.machine->working_on() == AttemptKey{});
    w.out.check_empty();
}

TEST_CASE("User code that does not return in time ends the process, and the head hears why", "[group]") {
    Follower w;
    w.from(w.head, abandon_of(a, {one, two}), at(2s));
    w.tick(at(31s));
    CHECK_FALSE(w.machine->end().has_value());
    w.from(w.head, Alive{}, at(31s));
    CHECK(w.machine->wake_at() <= at(32s));
    w.tick(at(32s));
    REQUIRE(w.machine->end().has_value());
    CHECK(w.machine->end()->at_once);
    CHECK_FALSE(w.machine->end()->clean);
    CHECK(w.out.take<Bye>(w.head).why.find("30 s") != std::string::npos);
    w.out.check_empty();
}

TEST_CASE("User code without progress for too long ends the process, and the head hears that it is at fault",
          "[group]") {
    WorkerFixture w(three, 10s);
    w.from(w.head, start_of(a, {three}), at(1s));
    w.tick(at(1s));
    CHECK(w.machine->wake_at() <= at(11s));
    w.tick(at(8s));
    ++w.runner->steps; // a report, a gradient step
    w.tick(at(9s));
    w.tick(at(18s));
    CHECK_FALSE(w.machine->end().has_value());
    w.tick(at(19s));
    REQUIRE(w.machine->end().has_value());
    CHECK(w.machine->end()->at_once);
    CHECK(w.machine->end()->guilty);
    const auto bye = w.out.take<Bye>(w.head);
    CHECK(bye.hung == a);
    CHECK(bye.why == "no report or gradient step for 10s (failure.report_timeout)");
    w.out.check_empty();
}

TEST_CASE("Only running user code can hang, and a suspended process has not hung", "[group]") {
    WorkerFixture idle(three, 10s);
    for (int s = 1; s < 50; s += 5) idle.tick(at(std::chrono::seconds(s)));
    CHECK_FALSE(idle.machine->end().has_value());

    WorkerFixture suspended(three, 10s);
    suspended.from(suspended.head, start_of(a, {three}), at(1s));
    suspended.tick(at(1s));
    suspended.from(suspended.head, Alive{}, at(40s));
    suspended.tick(at(40s)); // SIGSTOP and SIGCONT
    CHECK_FALSE(suspended.machine->end().has_value());

    WorkerFixture told(three, 10s); // told to return: run.abort_grace applies
    told.from(told.head, start_of(a, {three}), at(1s));
    told.tick(at(1s));
    told.from(told.head, abandon_of(a, {three}), at(5s));
    told.tick(at(12s));
    CHECK_FALSE(told.machine->end().has_value());
}

// --- the end ---

TEST_CASE("A worker leaves when it is told to, with the outcome of the study", "[group]") {
    WorkerFixture w(one);
    w.from(w.head, Leave{study::StudyOutcome::too_many_failures, true, "3 of 4 trials failed"}, at(1s));
    CHECK(w.out.take<Bye>(w.head).why.empty());
    REQUIRE(w.machine->end().has_value());
    CHECK(w.machine->end()->outcome == study::StudyOutcome::too_many_failures);
    CHECK(w.machine->end()->clean);
    CHECK_FALSE(w.machine->end()->at_once);
    w.from(w.head, Leave{}, at(1s));
    w.tick(at(2s));
    w.out.check_empty();
}

TEST_CASE("A worker that trains leaves as soon as user code has returned", "[group]") {
    Follower w;
    w.from(w.head, Leave{study::StudyOutcome::resumable, false, ""}, at(2s));
    w.check_calls({"abandon"});
    w.tick(at(3s));
    CHECK_FALSE(w.machine->end().has_value());
    w.happened(RunnerEnded{AttemptOutcome::lost, {}}, at(4s));
    w.out.take<Bye>(w.head);
    REQUIRE(w.machine->end().has_value());
    CHECK_FALSE(w.machine->end()->clean);
    w.out.check_empty();
}

TEST_CASE("A worker whose head is silent ends by itself", "[group]") {
    WorkerFixture w(one);
    for (auto second = 1s; second < 60s; ++second) w.tick(at(second));
    CHECK_FALSE(w.machine->end().has_value());
    w.from(w.head, Alive{}, at(59s));
    for (auto second = 60s; second < 119s; ++second) w.tick(at(second));
    CHECK_FALSE(w.machine->end().has_value());
    CHECK(w.machine->wake_at() <= at(119s));
    w.tick(at(119s));
    REQUIRE(w.machine->end().has_value());
    CHECK(w.machine->end()->at_once);
    CHECK(w.machine->end()->outcome == study::StudyOutcome::resumable);
}

TEST_CASE("A worker that loses its head exits with a code of its own, and tells why to a head that comes back",
          "[group]") {
    WorkerFixture w(one);
    for (auto second = 1s; second <= 60s; ++second) w.tick(at(second));
    REQUIRE(w.machine->end().has_value());
    CHECK(w.machine->end()->exit_code() == head_lost_code);
    CHECK(w.out.take<Bye>(w.head) == Bye{"no sign of life of the head for 60 s", {}, true});
    CHECK(w.signals == std::vector<std::pair<Rank, int>>{{w.head, SIGCONT}}); // it may have been stopped
    w.out.check_empty();
    CHECK(head_lost_code > static_cast<int>(study::StudyOutcome::resumable)); // srun returns the highest code
    CHECK((WorkerEnd{study::StudyOutcome::resumable, "", true, false}.exit_code() == 75));
}

TEST_CASE("A worker that was suspended does not count that time as the head's silence", "[group]") {
    WorkerFixture w(one);
    w.tick(at(1s));
    w.tick(at(1000s));
    w.tick(at(1001s));
    CHECK_FALSE(w.machine->end().has_value());
}

TEST_CASE("A runner that cannot be made ends the worker, and the head hears why", "[group]") {
    Recorder out;
    base::NullLog log;
    WorkerMachine worker(
        {one, "0.1.0", "node1", 0, 120s}, out,
        [](const Welcome&) -> std::unique_ptr<Runner> { throw base::UsageError("no such data file"); }, log, at(0s));
    out.take<Hello>(base::head_rank);
    worker.on_message(base::head_rank, bytes_of(Welcome{Incarnation(1), "", "", 1s, 60s, 30s}), at(0s));
    CHECK(out.take<Bye>(base::head_rank).why == "no such data file");
    REQUIRE(worker.end().has_value());
    CHECK(worker.end()->outcome == study::StudyOutcome::runtime_error);
    worker.on_message(base::head_rank, bytes_of(start_of(a, {one})), at(0s));
    worker.on_tick(at(1s));
    out.check_empty();
}

TEST_CASE("A signal on a worker is passed on to the head", "[group]") {
    WorkerFixture w(one);
    w.machine->on_stop_request(study::Asker::sigterm, at(1s));
    CHECK(w.out.take<StopAsked>(w.head).by == study::Asker::sigterm);
    CHECK_FALSE(w.machine->end().has_value());
    w.out.check_empty();
}

} // namespace worker_machine_test
