// SPDX-License-Identifier: Apache-2.0
// GradientReducer on devices, in groups whose ranks are threads with a device each.

#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "device/stream_turn.hpp"
#include "device_ranks.hpp"
#include "ranktune/base/half.hpp"
#include "ranktune/ddp/comm_meter.hpp"
#include "ranktune/ddp/gradient_reducer.hpp"
#include "support/catch.hpp"

namespace reducer_test {

using namespace ranktune;
using base::DType;
using testing::Member;
using testing::most_ranks;
using testing::OnAccelerator;
using testing::Ranks;

namespace {

const std::vector<std::size_t> tensors{5, 300, 7, 1000, 1};

/// Writes this rank's gradients of a step by work of the compute stream that takes its time.
void compute(Member me, ddp::GradientReducer& reducer, int step, const std::shared_ptr<void>& pinned) {
    auto* const numbers = static_cast<float*>(pinned.get());
    for (std::size_t i = tensors.size(); i-- > 0;) {
        const auto gradient = reducer.gradient_buffer(i);
        for (std::size_t k = 0; k < tensors[i]; ++k)
            numbers[i * 1000 + k] = static_cast<float>((me.rank + 1) * (step + 1)) + static_cast<float>(k % 10);
        me.on.compute_stream().upload(gradient.address(), numbers + i * 1000, tensors[i] * sizeof(float));
        reducer.ready(i);
        reducer.poll();
    }
}

/// Reads the sums by work of the compute stream, as an optimizer does.
int wrong_sums(Member me, ddp::GradientReducer& reducer, int step, float times = 1.0F, float factor = 1.0F) {
    int wrong = 0;
    const auto pinned = me.on.allocate_pinned(1000 * sizeof(float));
    const auto* const sums = static_cast<const float*>(pinned.get());
    const int n = me.group.size();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        me.on.compute_stream().download(pinned.get(), reducer.gradient_buffer(i).address(), tensors[i] * sizeof(float));
        testing::wait_for(me.on.compute_stream());
        for (std::size_t k = 0; k < tensors[i]; ++k) {
            const float expected =
                static_cast<float>(n * (n + 1) / 2 * (step + 1)) + static_cast<float>(n) * static_cast<float>(k % 10);
            wrong += sums[k] == factor * (times * expected) ? 0 : 1;
        }
    }
    return wrong;
}

void wait_for_devices(Member me) {
    testing::wait_for(me.on.compute_stream());
    testing::wait_for(me.on.communication_stream());
}

struct WithFault {
    explicit WithFault(const char* text) { setenv("RANKTUNE_STAND_IN_NCCL", text, 1); }
    ~WithFault() { unsetenv("RANKTUNE_STAND_IN_NCCL"); }
    WithFault(const WithFault&) = delete;
    WithFault& operator=(const WithFault&) = delete;
};

} // namespace

TEST_CASE("gradients on devices are summed over the ranks, in every step", "[device]") {
    for (int size = 1; size <= most_ranks(); ++size) {
        Ranks ranks(size);
        for (const std::size_t limit : {std::size_t{1}, std::size_t{400}, std::size_t{100'000}}) {
            std::atomic<int> wrong{0};
            ranks.trial([&](Member me) {
                const auto pinned = me.on.allocate_pinned(tensors.size() * 1000 * sizeof(float));
                ddp::GradientReducer reducer(me.group, tensors, limit, DType::float32, base::Place(me.on));
                for (int step = 0; step < 10; ++step) {
                    ddp::run_step(reducer, [&] { compute(me, reducer, step, pinned); });
                    wrong += wrong_sums(me, reducer, step);
                }
            });
            CHECK(wrong == 0);
        }
    }
}

namespace {

/// How often a stream of another library saw something else than the sums of a step, or a step something else than what
/// that stream had written. The stream is used as LibTorch's optimizer uses it: before and after every step.
int misses_of_another_stream(Ranks& ranks, bool in_turn) {
    std::atomic<int> misses{0};
    ranks.trial([&](Member me) {
        constexpr std::size_t count = 256;
        const auto theirs = me.on.borrow(nullptr);
        const auto written = me.on.allocate_pinned(count * sizeof(float));
        const auto read = me.on.allocate_pinned(count * sizeof(float));
        auto* const parameters = static_cast<float*>(written.get());
        const OnAccelerator<float> on_device(me.on, std::vector<float>(count));
        ddp::GradientReducer reducer(me.group, {count}, count, DType::float32, base::Place(me.on));
        const base::Buffer gradient = reducer.gradient_buffer(0);
        for (int step = 1; step <= 40; ++step) {
            std::fill_n(parameters, count, static_cast<float>(step));
            theirs->upload(on_device.data(), parameters, count * sizeof(float));
            {
                std::optional<device::StreamTurn> turn;
                if (in_turn) turn.emplace(me.on, nullptr);
                const device::StreamTurn nested(me.on, me.on.compute_stream().native()); // orders nothing
                ddp::run_step(reducer, [&] {
                    me.on.compute_stream().copy(gradient.address(), on_device.data(), count * sizeof(float));
                    reducer.ready(0);
                });
            }
            theirs->download(read.get(), gradient.address(), count * sizeof(float));
            testing::wait_for(*theirs);
            const float expected = static_cast<float>(step * me.group.size());
            misses += static_cast<const float*>(read.get())[count - 1] == expected ? 0 : 1;
            wait_for_devices(me);
        }
    });
    return misses;
}

} // namespace

TEST_CASE("a stream of another library sees the sums, and is seen, if it takes turns", "[device]") {
    setenv("RANKTUNE_STAND_IN_DEFAULT_STREAM", "1", 1);
    for (int size = 1; size <= std::min(most_ranks(), 2); ++size) {
        Ranks ranks(size);
        CHECK(misses_of_another_stream(ranks, true) == 0);
        if (testing::is_stand_in(testing::runtime_or_skip())) CHECK(misses_of_another_stream(ranks, false) > 0);
    }
    unsetenv("RANKTUNE_STAND_IN_DEFAULT_STREAM");
}

TEST_CASE("a communicator is used again by the next trial of the same ranks, and bounded", "[device]") {
    if (most_ranks() < 2) return;
    const auto trials = [](Ranks& ranks, int count) {
        for (int i = 0; i < count; ++i)
            ranks.trial([](Member me) { ddp::GradientReducer(me.group, {3}, 10, DType::float32, base::Place(me.on)); });
    };
    Ranks ranks(2);
    trials(ranks, 5);
    CHECK(ranks.groups(0).counts().made == 1);
    CHECK(ranks.groups(1).counts().reused == 4);
    CHECK(ranks.groups(1).counts().kept == 1);
    Ranks forgetful(2, std::chrono::seconds(20), 0);
    trials(forgetful, 3);
    CHECK(forgetful.groups(0).counts().made == 3);
    CHECK(forgetful.groups(0).counts().kept == 0);
}

TEST_CASE("16-bit gradients are added in float and rounded once", "[device]") {
    if (most_ranks() < 3) return;
    Ranks ranks(3);
    std::atomic<int> wrong{0};
    ranks.trial([&](Member me) {
        for (const DType type : {DType::float16, DType::bfloat16}) {
            ddp::GradientReducer reducer(me.group, {2}, 10, type, base::Place(me.on));
            // 256 + 1 + 1 is 258 in float, and 256 when bfloat16 is rounded after each addition.
            const float mine[] = {me.rank == 0 ? 256.0F : 1.0F, static_cast<float>(me.rank)};
            const auto gradient = reducer.gradient_buffer(0);
            float sums[2] = {};
            const auto as = [&]<class Half>(Half) {
                const std::array<Half, 2> halves{Half(mine[0]), Half(mine[1])};
                std::array<Half, 2> back{};
                base::copy(halves, gradient);
                ddp::run_step(reducer, [&] { reducer.ready(0); });
                base::copy(gradient, back);
                for (int i = 0; i < 2; ++i) sums[i] = static_cast<float>(back[static_cast<std::size_t>(i)]);
            };
            type == DType::float16 ? as(base::Float16{}) : as(base::BFloat16{});
            wrong += sums[0] == 258.0F && sums[1] == 3.0F ? 0 : 1;
        }
    });
    CHECK(wrong == 0);
}

TEST_CASE("on devices micro-steps are added, and the norm of the sums is limited, without waiting", "[device]") {
    if (most_ranks() < 2) return;
    Ranks ranks(2);
    std::atomic<int> wrong{0};
    ranks.trial([&](Member me) {
        const auto pinned = me.on.allocate_pinned(tensors.size() * 1000 * sizeof(float));
        ddp::GradientReducer reducer(me.group, tensors, 400, DType::float32, base::Place(me.on));
        for (int round = 0; round < 3; ++round) {
            for (int micro = 0; micro < 2; ++micro) {
                ddp::run_micro_step(reducer, [&] { compute(me, reducer, round, pinned); });
                testing::wait_for(me.on.compute_stream()); // the pinned memory is used again
            }
            ddp::run_step(reducer, [&] { compute(me, reducer, round, pinned); });
            reducer.clip_norm(1e9); // changes nothing
            wrong += wrong_sums(me, reducer, round, 3.0F);
            double squares = 0.0;
            for (const std::size_t size : tensors)
                for (std::size_t k = 0; k < size; ++k) {
                    const double sum = 3.0 * (3.0 * (round + 1) + 2.0 * static_cast<double>(k % 10));
                    squares += sum * sum;
                }
            reducer.clip_norm(0.5);
            wrong += std::abs(reducer.last_norm() - std::sqrt(squares)) < 1e-6 * std::sqrt(squares) ? 0 : 1;
            wrong += wrong_sums(me, reducer, round, 3.0F, static_cast<float>(0.5 / (std::sqrt(squares) + 1e-6)));
        }
    });
    CHECK(wrong == 0);
}

TEST_CASE("a gradient that no rank computes is zero on devices, too, and any order will do", "[device]") {
    if (most_ranks() < 2) return;
    Ranks ranks(2);
    std::atomic<int> wrong{0};
    ranks.trial([&](Member me) {
        ddp::GradientReducer reducer(me.group, {3, 2, 4}, 4, DType::float32, base::Place(me.on));
        const std::vector<float> ones(9, 1.0F);
        for (int step = 0; step < 2; ++step) {
            base::copy(ones, reducer.gradients_buffer());
            ddp::run_step(reducer, [&] {
                if (me.rank == 0) reducer.ready(0);
                reducer.ready(2);
            });
            std::vector<float> sums(9);
            base::copy(reducer.gradients_buffer(), sums); // tensors 2, 1, 0
            wrong += sums == std::vector<float>{2, 2, 2, 2, 0, 0, 1, 1, 1} ? 0 : 1;
        }
    });
    CHECK(wrong == 0);
}

namespace {

struct WithTimes {
    explicit WithTimes(const char* text) { setenv("RANKTUNE_STAND_IN_TAKES", text, 1); }
    ~WithTimes() { unsetenv("RANKTUNE_STAND_IN_TAKES"); }
    WithTimes(const WithTimes&) = delete;
    WithTimes& operator=(const WithTimes&) = delete;
};

/// What a CommMeter says of `steps` steps of two buckets on two ranks, in seconds of all steps; bytes and steps too.
struct Measured {
    double exposed_s = 0.0;
    double sent_s = 0.0; ///< bytes / speed
    double last_exposed_s = 0.0;
};
Measured measured(const char* times, int steps) {
    Ranks ranks(2);
    const WithTimes with(times);
    Measured result;
    std::atomic<int> left{0};
    ranks.trial([&](Member me) {
        const auto pinned = me.on.allocate_pinned(2 * 100 * sizeof(float));
        ddp::GradientReducer reducer(me.group, {100, 100}, 100, DType::float32, base::Place(me.on));
        ddp::CommMeter meter;
        meter.watch(reducer);
        for (int step = 0; step < steps; ++step) {
            ddp::run_step(reducer, [&] {
                for (const std::size_t i : {1, 0}) {
                    me.on.compute_stream().upload(reducer.gradient_buffer(i).address(), pinned.get(), 400);
                    reducer.ready(i);
                }
            });
            meter.after_step(reducer);
        }
        std::map<std::string, double> metrics;
        for (const auto& [name, value] : meter.take(reducer)) metrics[name] = value;
        if (me.rank == 0)
            result = {1e-3 * metrics["comm/exposed_ms"] * steps, 1e-3 * metrics["comm/MB"] / metrics["comm/GBps"],
                      reducer.last_timing().waited_s};
        for (const auto& [name, value] : meter.take(reducer)) left += value == 0.0 ? 0 : 1;
    });
    CHECK(left == 0); // all was taken
    return result;
}

} // namespace

TEST_CASE("the time of sums on a device is measured, and how much of it is exposed", "[stand-in]") {
    if (!testing::is_stand_in(testing::runtime_or_skip())) return;
    // Sums of 200 ms, two in each of three steps, and hardly anything else: 1.2 s, all of them exposed.
    const Measured alone = measured("ncclAllReduce:200000", 3);
    CHECK(alone.exposed_s == Approx(1.2).margin(0.25));
    CHECK(alone.sent_s == Approx(1.2).margin(0.25));
    CHECK(alone.last_exposed_s == Approx(0.4).margin(0.1));
    // Each gradient takes 300 ms: the sum of the first one is hidden behind the second one.
    const Measured hidden = measured("ncclAllReduce:200000,cudaMemcpyAsync to the device:300000", 2);
    CHECK(hidden.exposed_s == Approx(0.4).margin(0.15));
    CHECK(hidden.sent_s == Approx(1.0).margin(0.25));
}

TEST_CASE("what reducers cannot do on devices is refused", "[device]") {
    Ranks ranks(1);
    std::atomic<int> refused{0};
    const auto count = [&](const char* text, const auto& call) {
        try {
            call();
        } catch (const base::UsageError& error) {
            refused += std::string(error.what()).find(text) != std::string::npos ? 1 : 0;
        }
    };
    ranks.trial([&](Member me) {
        const base::Place place(me.on);
        const ddp::Compression half{.kind = ddp::Compression::Kind::bf16};
        count("gradients of float64 cannot be compressed", [&] {
            ddp::GradientReducer(me.group, {3},
                                 ddp::ReducerSettings{.type = DType::float64, .place = place, .compression = half});
        });
        count("can neither be accumulated nor clipped: only those of float32",
              [&] { ddp::GradientReducer(me.group, {3}, 10, DType::float64, place).clip_norm(1.0); });
    });
    CHECK(refused == 2);
}

TEST_CASE("a rank that throws within or outside of a step takes the others along, and the group goes on", "[device]") {
    if (most_ranks() < 3) return;
    Ranks ranks(3);
    for (const bool within : {true, false}) {
        std::atomic<int> left{0};
        std::atomic<int> wrong{0};
        ranks.trial([&](Member me) {
            const auto pinned = me.on.allocate_pinned(tensors.size() * 1000 * sizeof(float));
            ddp::GradientReducer reducer(me.group, tensors, 400, DType::float32, base::Place(me.on));
            ddp::run_step(reducer, [&] { compute(me, reducer, 0, pinned); });
            try {
                if (me.rank == 1 && !within) throw base::Error("outside");
                ddp::run_step(reducer, [&] {
                    if (me.rank == 1) throw base::Error("within");
                    compute(me, reducer, 1, pinned);
                });
            } catch (const ddp::PeerFailed&) {
                ++left;
            } catch (const base::Error&) {
                if (!within) me.group.fail();
            }
            ddp::run_step(reducer, [&] { compute(me, reducer, 2, pinned); });
            wrong += wrong_sums(me, reducer, 2);
        });
        CHECK(left == 2);
        CHECK(wrong == 0);
    }
    CHECK(ranks.groups(0).counts().made == 1);
}

TEST_CASE("two ranks with the same device are refused on all ranks", "[device]") {
    if (most_ranks() < 2) return;
    Ranks ranks(2);
    std::atomic<int> refused{0};
    ranks.trial(
        [&](Member me) {
            try {
                ddp::GradientReducer(me.group, {3}, 10, DType::float32, base::Place(me.on));
            } catch (const base::UsageError& error) {
                refused += std::string(error.what()).find("ranks 0 and 1 of the trial have the same GPU") == 0 ? 1 : 0;
            }
        },
        true);
    CHECK(refused == 2);
}

TEST_CASE("what NCCL fails at is a lost group with a cause; the next trial forms a new one", "[stand-in]") {
    if (!testing::is_stand_in(testing::runtime_or_skip())) return;
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
    if (!testing::is_stand_in(testing::runtime_or_skip())) return;
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
    if (!testing::is_stand_in(testing::runtime_or_skip())) return;
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
    if (!testing::is_stand_in(testing::runtime_or_skip())) return;
    for (const char* fault : {"1:0:hang", "1:0:fail"}) {
        Ranks ranks(2, std::chrono::milliseconds(200));
        std::atomic<int> lost{0};
        using Cause = ddp::GroupLost::Cause;
        std::optional<Cause> cause;
        const WithFault with(fault);
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

TEST_CASE("a thousand groups leave no memory of the device, threads or files behind", "[device]") {
    if (most_ranks() < 2) return;
    const bool stand_in = testing::is_stand_in(testing::runtime_or_skip());
    Ranks ranks(2, std::chrono::seconds(20), 0);
    const auto round = [&] {
        ranks.trial([](Member me) {
            ddp::GradientReducer reducer(me.group, {300}, 100, DType::float32, base::Place(me.on));
            ddp::run_step(reducer, [&] { reducer.ready(0); });
        });
    };
    for (int i = 0; i < 10; ++i) round();
    if (stand_in) CHECK(testing::live_allocations() == 0U);
    const auto before = testing::process_entries();
    for (int i = 0; i < (stand_in ? 1000 : 20); ++i) round();
    const auto after = testing::process_entries();
    CHECK(after.files <= before.files + 2);
    CHECK(after.threads <= before.threads + 2);
    CHECK(after.mappings <= before.mappings + 20);
    if (stand_in) CHECK(testing::live_allocations() == 0U);
}

} // namespace reducer_test
