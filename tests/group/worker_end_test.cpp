// SPDX-License-Identifier: Apache-2.0
// Why a worker leaves.
#include "group/worker_fixture.hpp"

namespace worker_end_test {

using namespace ranktune;
using namespace ranktune::group;
using namespace ranktune::wire;
using namespace ranktune::testing;

namespace {

const Rank one{1};
const Rank two{2};

} // namespace

TEST_CASE("A worker of another version leaves when the head says so", "[group]") {
    Recorder out;
    base::NullLog log;
    WorkerMachine worker(
        {one, "0.0.9", "node1", 0, 120s}, out, [](const Welcome&) { return std::make_unique<ScriptedRunner>(); }, log,
        at(0s));
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

} // namespace worker_end_test
