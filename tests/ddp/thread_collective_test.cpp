// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "ddp/collective.hpp"
#include "ddp/collective/thread_collective.hpp"
#include "support/catch.hpp"
#include "threads.hpp"

namespace thread_collective_test {

using namespace ranktune;
using test::Complaints;
using test::never;
using test::on_threads;

namespace {

const ddp::StepPlan plan{base::DType::float32, {3}};

} // namespace

TEST_CASE("the collective of threads fulfils the contract", "[ddp]") {
    for (const std::uint32_t size : {1U, 2U, 3U}) {
        CHECK(on_threads(size, [](const auto& make) { return test::collective_contract(*make()); }) == Complaints{});
        CHECK(on_threads(size, [](const auto& make) { return test::mixed_step_contract(*make()); }) == Complaints{});
    }
}

TEST_CASE("wherever one thread fails, all leave at the same operation", "[ddp]") {
    for (const std::uint32_t size : {1U, 2U, 3U}) CHECK(on_threads(size, test::failure_contract) == Complaints{});
}

TEST_CASE("a tenth of the trials of threads may fail", "[ddp]") {
    const auto trials = [](const test::MakeCollective& make) {
        Complaints complaints;
        for (std::uint32_t trial = 0; trial < 140; ++trial) {
            const auto complaint = test::short_trial(*make(), trial);
            if (!complaint.empty()) complaints.push_back(complaint);
        }
        return complaints;
    };
    CHECK(on_threads(3, trials) == Complaints{});
}

TEST_CASE("sums of threads are the same bits on all ranks and every time", "[ddp]") {
    CHECK(on_threads(3, test::reproducibility_contract) == Complaints{});
}

TEST_CASE("threads that call different operations all get an error", "[ddp]") {
    for (const std::uint32_t size : {2U, 3U}) CHECK(on_threads(size, test::mismatch_contract) == Complaints{});
}

TEST_CASE("threads that wait too long for one of them lose the group", "[ddp]") {
    for (const std::uint32_t size : {1U, 2U, 3U}) CHECK(on_threads(size, test::patience_contract) == Complaints{});
}

TEST_CASE("a raised abort flag ends the next operation of its rank, and tells the others", "[ddp]") {
    std::atomic<bool> abort{true};
    const std::atomic<bool>* const aborts[] = {&abort, &never};
    const auto collectives = ddp::make_thread_collectives(2, aborts);
    // Rank 0 does not wait, so one thread can play both ranks.
    CHECK(test::thrown_by([&] { collectives[0]->barrier(); }) == "Aborted");
    CHECK(test::thrown_by([&] { collectives[1]->barrier(); }) == "Aborted");
    CHECK(test::thrown_by([&] { collectives[0]->barrier(); }) == "Aborted");
}

TEST_CASE("a rank that has to give up at the beginning of a step does not leave the others in it", "[ddp]") {
    std::atomic<bool> abort{true};
    const std::atomic<bool>* const aborts[] = {&abort, &never};
    const auto collectives = ddp::make_thread_collectives(2, aborts);
    CHECK(test::thrown_by([&] { collectives[0]->begin_step(collectives[0]->announce(plan), test::no_reducer); }) ==
          "Aborted");
    std::vector<float> bucket(3);
    collectives[1]->begin_step(collectives[1]->announce(plan), test::no_reducer);
    const auto pending = collectives[1]->start_sum(bucket);
    CHECK(test::thrown_by([&] { static_cast<void>(pending->test()); }) == "Aborted");
}

TEST_CASE("the failing rank is named", "[ddp]") {
    const auto collectives = ddp::make_thread_collectives(3);
    std::thread failing([&] { collectives[2]->fail(); });
    std::string thrown;
    std::thread other([&] { thrown = test::thrown_by([&] { collectives[1]->barrier(); }); });
    std::string text;
    try {
        collectives[0]->barrier();
    } catch (const ddp::PeerFailed& error) {
        text = error.what();
    }
    failing.join();
    other.join();
    CHECK(thrown == "PeerFailed");
    CHECK(text == "rank 2 of the trial failed");
}

TEST_CASE("a trial of one rank runs alone", "[ddp]") {
    const auto collective = ddp::make_self_collective();
    CHECK(test::collective_contract(*collective) == Complaints{});
    CHECK(test::mixed_step_contract(*collective) == Complaints{});
    collective->fail();
    std::atomic<bool> abort{false};
    const auto abortable = ddp::make_self_collective(&abort);
    CHECK_NOTHROW(abortable->barrier());
    abort = true;
    CHECK_THROWS_AS(abortable->barrier(), ddp::Aborted);
}

} // namespace thread_collective_test
