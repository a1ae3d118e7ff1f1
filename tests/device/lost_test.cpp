// SPDX-License-Identifier: Apache-2.0
// Groups on devices that are lost, and found to be: what NCCL fails at, what hangs, what adds wrongly.

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>

#include "gradient_steps.hpp"
#include "support/catch.hpp"

namespace lost_test {

using namespace ranktune;
using base::DType;
using namespace testing;

TEST_CASE("what NCCL fails at is a lost group with a cause; the next trial forms a new one", "[stand-in]") {
    if (!is_stand_in(runtime_or_skip())) return;
    using Cause = ddp::GroupLost::Cause;
    for (const char* fault : {"1:next:fail", "1:next:async", "1:next:hang"}) {
        Ranks ranks(2);
        const bool hangs = std::string(fault).ends_with("hang");
        std::atomic<int> lost{0};
        std::atomic<int> told{0};
        std::optional<Cause> cause;
        ranks.trial([&](Member me) {
            ddp::GradientReducer reducer(me.group, tensors, 400, DType::float32, base::Place(me.on));
            const auto pinned = me.on.allocate_pinned(tensors.size() * 1000 * sizeof(float));
            ddp::run_step(reducer, [&] { compute(me, reducer, 0, pinned); });
            wait_for_devices(me);
            me.group.barrier();
            if (me.rank == 0) setenv("RANKTUNE_STAND_IN_NCCL", fault, 1);
            me.group.barrier();
            try {
                for (int step = 1; step < 4; ++step) {
                    ddp::run_step(reducer, [&] { compute(me, reducer, step, pinned); });
                    auto& sums = me.group.sums_on(me.on);
                    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
                    while (!me.on.compute_stream().idle()) { // as a trainable waits
                        // What hangs is found by the head: it aborts the attempt.
                        if (hangs && std::chrono::steady_clock::now() > end) ranks.abort(me.rank) = true;
                        sums.look();
                    }
                }
            } catch (const ddp::GroupLost& error) {
                ++lost;
                if (me.rank == 1) cause = error.cause();
                if (me.rank == 0 && error.cause() == Cause::told) ++told;
            } catch (const ddp::Aborted&) {
                ++lost;
            }
        });
        unsetenv("RANKTUNE_STAND_IN_NCCL");
        CHECK(lost == 2);
        if (!hangs) CHECK(told == 1); // the other rank heard of it from this one
        if (std::string(fault).ends_with("fail")) CHECK(cause == Cause::system);
        if (std::string(fault).ends_with("async")) CHECK(cause == Cause::peer);
        ranks.abort(0) = false;
        ranks.abort(1) = false;
        std::atomic<int> wrong{0};
        ranks.trial([&](Member me) {
            ddp::GradientReducer reducer(me.group, tensors, 400, DType::float32, base::Place(me.on));
            const auto pinned = me.on.allocate_pinned(tensors.size() * 1000 * sizeof(float));
            ddp::run_step(reducer, [&] { compute(me, reducer, 0, pinned); });
            wrong += wrong_sums(me, reducer, 0);
        });
        CHECK(wrong == 0);
        CHECK(ranks.groups(0).counts().made == 2);
    }
}

TEST_CASE("an error that reaches the last bucket after the status word is a lost group", "[stand-in]") {
    if (!is_stand_in(runtime_or_skip())) return;
    using Cause = ddp::GroupLost::Cause;
    Ranks ranks(2);
    std::vector<std::optional<Cause>> causes(2);
    ranks.trial([&](Member me) {
        ddp::GradientReducer reducer(me.group, {100}, 100, DType::float32, base::Place(me.on));
        me.group.barrier();
        if (me.rank == 0) setenv("RANKTUNE_STAND_IN_NCCL", "1:next:hang", 1);
        me.group.barrier();
        ddp::run_step(reducer, [&] { reducer.ready(0); }); // all ranks are well, as far as MPI knows
        if (me.rank == 1) setenv("RANKTUNE_STAND_IN_NCCL", "1:now:async", 1);
        try {
            auto& sums = me.group.sums_on(me.on);
            while (!me.on.compute_stream().idle()) sums.look();
        } catch (const ddp::GroupLost& error) {
            causes[static_cast<std::size_t>(me.rank)] = error.cause();
        }
    });
    unsetenv("RANKTUNE_STAND_IN_NCCL");
    CHECK(causes[1] == Cause::peer);
    CHECK(causes[0] == Cause::told);
}

TEST_CASE("a rank that has lost its communicator alone forms a new one with those that kept theirs", "[stand-in]") {
    if (!is_stand_in(runtime_or_skip())) return;
    Ranks ranks(2);
    std::shared_ptr<void> scratch;
    const With slow("TAKES", "cudaMemsetAsync:300000");
    ranks.trial([&](Member me) {
        {
            ddp::GradientReducer reducer(me.group, {3}, 10, DType::float32, base::Place(me.on));
            ddp::run_step(reducer, [&] { reducer.ready(0); });
            wait_for_devices(me);
        }
        me.group.barrier();
        if (me.rank == 1) return;
        // It is told to give up while its stream is still busy: it aborts the communicator at its end.
        scratch = base::allocate(base::Place(me.on), sizeof(float));
        me.on.communication_stream().fill_zero(scratch.get(), sizeof(float));
        ranks.abort(0) = true;
    });
    ranks.abort(0) = false;
    CHECK(ranks.groups(0).counts().kept == 0);
    CHECK(ranks.groups(1).counts().kept == 1);
    std::atomic<int> wrong{0};
    ranks.trial([&](Member me) {
        wait_for_devices(me);
        const auto pinned = me.on.allocate_pinned(tensors.size() * 1000 * sizeof(float));
        ddp::GradientReducer reducer(me.group, tensors, 400, DType::float32, base::Place(me.on));
        ddp::run_step(reducer, [&] { compute(me, reducer, 0, pinned); });
        wrong += wrong_sums(me, reducer, 0);
    });
    CHECK(wrong == 0);
    CHECK(ranks.groups(0).counts().made == 2);
    CHECK(ranks.groups(1).counts().made == 2);
}

TEST_CASE("NCCL that adds wrongly is found before the first step", "[stand-in]") {
    if (!is_stand_in(runtime_or_skip())) return;
    using Cause = ddp::GroupLost::Cause;
    Ranks ranks(2);
    std::vector<std::string> told(2);
    std::vector<std::optional<Cause>> causes(2);
    const With fault("NCCL", "1:next:wrong");
    ranks.trial([&](Member me) {
        try {
            ddp::GradientReducer(me.group, {3}, 10, DType::float32, base::Place(me.on));
        } catch (const ddp::GroupLost& error) {
            told[static_cast<std::size_t>(me.rank)] = error.what();
            causes[static_cast<std::size_t>(me.rank)] = error.cause();
        }
    });
    CHECK(told[1].starts_with("NCCL adds wrongly: the sum of 2 ones is 3"));
    CHECK(causes[1] == Cause::system);
    CHECK(causes[0] == Cause::told);
}

namespace {

/// A trial of two ranks whose sums hang in the step after the first: how many ranks lose the group for the time that it
/// took. `looks`: the trial's thread looks after its sums while it waits; otherwise it waits as in another library, and
/// another thread tends the group.
int lost_in_time(Ranks& ranks, bool looks) {
    std::atomic<int> lost{0};
    std::atomic<int> told{0};
    ranks.trial([&](Member me) {
        me.group.limit_waits(std::chrono::seconds(1));
        ddp::GradientReducer reducer(me.group, tensors, 400, DType::float32, base::Place(me.on));
        const auto pinned = me.on.allocate_pinned(tensors.size() * 1000 * sizeof(float));
        ddp::run_step(reducer, [&] { compute(me, reducer, 0, pinned); });
        wait_for_devices(me);
        me.group.barrier();
        if (me.rank == 0) setenv("RANKTUNE_STAND_IN_NCCL", "1:next:hang", 1);
        me.group.barrier();
        std::atomic<bool> ended{false};
        std::thread service([&] {
            while (!looks && !ended) {
                me.groups.tend();
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
            }
        });
        const auto count = [&](const auto& call) {
            try {
                call();
            } catch (const ddp::GroupLost& error) {
                using Cause = ddp::GroupLost::Cause;
                ++lost;
                told += error.cause() == Cause::timeout || error.cause() == Cause::told ? 1 : 0;
            }
        };
        count([&] {
            ddp::run_step(reducer, [&] { compute(me, reducer, 1, pinned); });
            auto& sums = me.group.sums_on(me.on);
            while (!me.on.compute_stream().idle())
                if (looks) sums.look();
            reducer.check_sums(); // what other code has computed since is undefined
        });
        ended = true;
        service.join();
    });
    unsetenv("RANKTUNE_STAND_IN_NCCL");
    CHECK(told == lost);
    return lost;
}

} // namespace

TEST_CASE("a sum that hangs is given up after its time, and the next trial forms a new group", "[stand-in]") {
    if (!is_stand_in(runtime_or_skip())) return;
    for (const bool looks : {true, false}) {
        Ranks ranks(2);
        CHECK(lost_in_time(ranks, looks) == 2);
        std::atomic<int> wrong{0};
        ranks.trial([&](Member me) {
            ddp::GradientReducer reducer(me.group, tensors, 400, DType::float32, base::Place(me.on));
            const auto pinned = me.on.allocate_pinned(tensors.size() * 1000 * sizeof(float));
            ddp::run_step(reducer, [&] { compute(me, reducer, 0, pinned); });
            wrong += wrong_sums(me, reducer, 0);
        });
        CHECK(wrong == 0);
        CHECK(ranks.groups(0).counts().made == 2);
    }
}

TEST_CASE("after a sum that was given up no operation of the group passes on what depends on it", "[stand-in]") {
    if (!is_stand_in(runtime_or_skip())) return;
    Ranks ranks(2);
    std::atomic<int> refused{0};
    ranks.trial([&](Member me) {
        me.group.limit_waits(std::chrono::seconds(1));
        ddp::GradientReducer reducer(me.group, {100}, 400, DType::float32, base::Place(me.on));
        me.group.barrier();
        if (me.rank == 0) setenv("RANKTUNE_STAND_IN_NCCL", "1:next:hang", 1);
        me.group.barrier();
        ddp::run_step(reducer, [&] { reducer.ready(0); });
        while (!me.on.compute_stream().idle()) me.groups.tend();
        float loss = 1.0F;
        try {
            loss = me.group.reduced(loss);
        } catch (const ddp::GroupLost&) {
            ++refused;
        }
    });
    unsetenv("RANKTUNE_STAND_IN_NCCL");
    CHECK(refused == 2);
}

TEST_CASE("a communicator that cannot be formed in time is a lost group", "[stand-in]") {
    if (!is_stand_in(runtime_or_skip())) return;
    for (const char* fault : {"1:0:hang", "1:0:fail", "1:next:hang"}) { // the last one: its first sum
        Ranks ranks(2, std::chrono::milliseconds(200));
        std::atomic<int> lost{0};
        using Cause = ddp::GroupLost::Cause;
        std::optional<Cause> cause;
        const With with("NCCL", fault);
        ranks.trial([&](Member me) {
            try {
                ddp::GradientReducer(me.group, {3}, 10, DType::float32, base::Place(me.on));
            } catch (const ddp::GroupLost& error) {
                ++lost;
                if (me.rank == 0) cause = error.cause();
            }
        });
        CHECK(lost == 2);
        const bool first = cause == Cause::timeout; // whose time is over first tells the other one
        CHECK((cause == Cause::told || (first && std::string(fault).ends_with("hang"))));
    }
}

} // namespace lost_test
