// SPDX-License-Identifier: Apache-2.0
// Why a worker leaves.
#include "worker/worker_fixture.hpp"

namespace worker_end_test {

using namespace ranktune;
using namespace ranktune::worker;
using namespace ranktune::comm;
using namespace ranktune::testing;

namespace {

const Rank one{1};
const Rank two{2};

} // namespace

TEST_CASE("A worker of another version leaves when the head says so", "[group]") {
    Recorder out;
    base::NullLog log;
    WorkerMachine worker(
        {one, "0.0.9", "node1", 0, 120s, {}, 0, {}}, out,
        [](const Welcome&) { return std::make_unique<ScriptedRunner>(); }, log, at(0s));
    out.take<Hello>(base::head_rank);
    worker.on_message(base::head_rank, bytes_of(Leave{study::StudyOutcome::usage, false, "another version"}), at(1s));
    out.take<Bye>(base::head_rank);
    REQUIRE(worker.end().has_value());
    CHECK(worker.end()->outcome == study::StudyOutcome::usage);
    CHECK(worker.end()->message == "another version");
}

TEST_CASE("A message that cannot be read ends the worker, and the head hears why", "[group]") {
    WorkerFixture w(one);
    w.machine->on_message(two, study::Bytes{std::byte{255}}, at(1s));
    CHECK(w.out.take<Bye>(w.head).why.find("rank 2") != std::string::npos);
    REQUIRE(w.machine->end().has_value());
    CHECK(w.machine->end()->at_once);
}

TEST_CASE("A worker tells the head that a process of its node has ended, and kills one for it", "[group]") {
    WorkerFixture w(one);
    w.machine->on_rank_ended(two);
    CHECK(w.out.take<RankEnded>(w.head) == RankEnded{two});
    w.from(w.head, EndRank{Rank(3)}, at(1s));
    w.from(two, EndRank{Rank(1)}, at(1s)); // only the head may ask for that
    CHECK(w.killed == std::vector<std::pair<Rank, bool>>{{Rank(3), false}});
    w.out.check_empty();
    w.killing = process::Killing::waits;
    w.from(w.head, EndRank{Rank(3)}, at(2s));
    CHECK(w.out.take<RankWaits>(w.head) == RankWaits{Rank(3)});
    w.from(w.head, EndRank{Rank(3), true}, at(3s));
    CHECK(w.killed.back() == std::pair(Rank(3), true));
    w.out.check_empty();
    CHECK_FALSE(w.machine->end().has_value());
}

TEST_CASE("A worker that sees the end of the head tells all others, which leave with it", "[group]") {
    WorkerFixture w(two);
    w.machine->on_rank_ended(w.head);
    for (const Rank other : {one, Rank(3)}) CHECK(w.out.take<RankEnded>(other) == RankEnded{w.head});
    w.out.check_empty();
    WorkerFixture other(one);
    other.from(two, RankEnded{Rank(3)}, at(1s)); // not its business
    CHECK_FALSE(other.machine->end().has_value());
    other.from(two, RankEnded{w.head}, at(1s));
    for (const WorkerFixture* each : {&w, &other}) {
        REQUIRE(each->machine->end().has_value());
        CHECK(each->machine->end()->at_once);
        CHECK(each->machine->end()->exit_code() == head_lost_code);
        CHECK(each->machine->end()->message == "the process of the head has ended");
    }
}

TEST_CASE("The end of the head is no loss to a worker that was told to leave", "[group]") {
    WorkerFixture w(one);
    w.from(w.head, start_of(key_for(1), {one}), at(1s)); // its user code has not returned when the head has gone
    w.from(w.head, Leave{study::StudyOutcome::ok, false, ""}, at(2s));
    w.machine->on_rank_ended(w.head);
    CHECK_FALSE(w.machine->end().has_value());
    w.happened(worker::RunnerEnded{}, at(3s));
    REQUIRE(w.machine->end().has_value());
    CHECK(w.machine->end()->exit_code() == 0);
}

} // namespace worker_end_test
