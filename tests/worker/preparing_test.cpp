// SPDX-License-Identifier: Apache-2.0
// Trials whose node does not have what they need yet.
#include "support/catch.hpp"
#include "worker/worker_fixture.hpp"

namespace preparing_test {

using namespace ranktune;
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

} // namespace

TEST_CASE("No trial starts before what it needs is on the node, and heartbeats go on", "[group]") {
    WorkerFixture w(two);
    w.runner->is_prepared = false;
    w.from(w.head, start_of(a, {one, two, three}), at(0s));
    w.machine->on_tick(at(2s));
    CHECK(w.out.take<Heartbeat>(w.head).key == a);
    w.out.check_empty();
    w.runner->is_prepared = true;
    w.tick(at(3s));
    CHECK(w.out.take<Ready>(one) == Ready{a});
    w.from(one, Go{a}, at(3s));
    w.check_calls({"start #5"});
}

TEST_CASE("A trial that waits for data is given up, replaced, or left like another that has not begun", "[group]") {
    WorkerFixture w(two);
    w.runner->is_prepared = false;
    w.from(w.head, start_of(a, {one, two, three}), at(0s));
    SECTION("given up") {
        w.from(w.head, abandon_of(a, {two, three}), at(1s));
        CHECK(w.out.take<MemberOver>(one).outcome == AttemptOutcome::lost);
    }
    SECTION("replaced") {
        w.from(w.head, start_of(b, {two}), at(1s));
        w.runner->is_prepared = true;
        w.tick(at(2s));
        w.check_calls({"start #6"});
    }
    SECTION("left") {
        w.from(w.head, Leave{study::StudyOutcome::resumable, true, ""}, at(1s));
        CHECK(w.out.take<Bye>(w.head).why.empty());
        CHECK(w.machine->end().has_value());
    }
}

TEST_CASE("What makes the data runs before they are on the node, and then they are brought there", "[group]") {
    WorkerFixture w(one);
    w.runner->is_prepared = false;
    const AttemptKey before = key_for(study::unit_of({study::SideTask::Kind::before, {}}).value());
    w.from(w.head, start_of(before, {one}), at(0s));
    w.check_calls({"start #" + std::to_string(before.trial.value())});
    w.from(w.head, Stage{}, at(1s));
    CHECK(w.runner->calls.back() == "stage");
}

TEST_CASE("A study that stops does not wait for data of trials that have not begun", "[group]") {
    WorkerFixture w(one);
    w.runner->is_prepared = false;
    w.from(w.head, start_of(a, {one, two}), at(0s));
    const bool is_prepared = GENERATE(false, true); // the other rank is not, then
    w.runner->is_prepared = is_prepared;
    w.tick(at(1s));
    study::Verdict pause;
    pause.verb = study::Verb::pause;
    w.from(w.head, study::Interrupt{a.trial, a.attempt, a.incarnation, pause}, at(2s));
    CHECK(w.out.take<GroupOver>(w.head).over.outcome == AttemptOutcome::paused);
    w.check_calls({});
    w.from(two, Ready{a}, at(3s)); // comes too late
    w.tick(at(3s));
    w.out.check_empty();
    w.check_calls({});
}

} // namespace preparing_test
