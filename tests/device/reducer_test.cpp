// SPDX-License-Identifier: Apache-2.0
// GradientReducer on devices, in groups whose ranks are threads with a device each.

#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>

#include "device/stream_turn.hpp"
#include "gradient_steps.hpp"
#include "ranktune/base/half.hpp"
#include "ranktune/ddp/comm_meter.hpp"
#include "ranktune/ddp/parameters.hpp"
#include "support/catch.hpp"

namespace reducer_test {

using namespace ranktune;
using base::DType;
using testing::Member;
using testing::most_ranks;
using testing::OnAccelerator;
using testing::Ranks;
using testing::tensors;

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

TEST_CASE("what a reducer says that it sends is what NCCL sends: 16-bit gradients travel as 16 bits", "[stand-in]") {
    if (!testing::is_stand_in(testing::runtime_or_skip()) || most_ranks() < 3) return;
    Ranks ranks(3);
    using Kind = ddp::Compression::Kind;
    std::map<std::string, std::size_t> told;
    const auto bytes_of = [&](DType type, Kind kind) {
        std::size_t sent = 0;
        ranks.trial([&](Member me) {
            const ddp::ReducerSettings settings{.limit = 3000,
                                                .type = type,
                                                .place = base::Place(me.on),
                                                .compression = {.kind = kind, .density = 0.1}};
            ddp::GradientReducer reducer(me.group, {2400, 4800}, settings);
            me.group.barrier();
            const std::size_t before = testing::sent_bytes();
            me.group.barrier();
            ddp::run_step(reducer, [&] {
                reducer.ready(1);
                reducer.ready(0);
            });
            wait_for_devices(me);
            me.group.barrier();
            if (me.rank == 0) sent = (testing::sent_bytes() - before) / 3; // of a rank
            if (me.rank == 0)
                CHECK(static_cast<double>(reducer.traffic().bytes) == Approx(static_cast<double>(sent)).epsilon(0.01));
        });
        return sent;
    };
    const std::size_t whole = bytes_of(DType::float32, Kind::none);
    CHECK(whole == 7200 * 4 * 4 / 3);
    CHECK(bytes_of(DType::bfloat16, Kind::none) == whole / 2);
    CHECK(bytes_of(DType::float16, Kind::none) == whole / 2);
    CHECK(bytes_of(DType::float32, Kind::bf16) == whole / 2);
    CHECK(bytes_of(DType::float32, Kind::bf16_nccl) == whole / 2);
    CHECK(bytes_of(DType::float32, Kind::topk) < whole / 2);
}

TEST_CASE("parameters go from device to device, and a rank that has failed keeps nobody waiting", "[stand-in]") {
    if (!testing::is_stand_in(testing::runtime_or_skip())) return;
    Ranks ranks(2);
    for (const bool fails : {false, true}) {
        std::atomic<int> wrong{0};
        std::atomic<int> left{0};
        ranks.trial([&](Member me) {
            const OnAccelerator<float> numbers(me.on, std::vector<float>(1000, static_cast<float>(me.rank + 1)));
            const OnAccelerator<std::int64_t> counts(me.on, std::vector<std::int64_t>{me.rank});
            const base::Place place(me.on);
            const std::vector<base::Buffer> tensors{{numbers.data(), 1000, DType::float32, place},
                                                    {counts.data(), 1, DType::int64, place},
                                                    {numbers.data(), 0, DType::float32, place}};
            static_cast<void>(me.group.sums_on(me.on));
            me.group.barrier();
            const std::size_t before = testing::sent_bytes();
            me.group.barrier();
            if (fails && me.rank == 1) return me.group.fail();
            try {
                ddp::share_parameters(me.group, tensors);
            } catch (const ddp::PeerFailed&) {
                ++left;
                return;
            }
            wrong += numbers.values() == std::vector<float>(1000, 1.0F) ? 0 : 1;
            wrong += counts.values() == std::vector<std::int64_t>{0} ? 0 : 1;
            me.group.barrier();
            wrong += testing::sent_bytes() - before == 4008 ? 0 : 1;
        });
        CHECK(wrong == 0);
        CHECK(left == (fails ? 1 : 0));
    }
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

/// What a CommMeter says of `steps` steps of two buckets on two ranks, in seconds of all steps; bytes and steps too.
struct Measured {
    double exposed_s = 0.0;
    double sent_s = 0.0; ///< bytes / speed
    double elapsed_s = 0.0;
};
Measured measured(const char* times, int steps) {
    Ranks ranks(2);
    const testing::With with("TAKES", times);
    Measured result;
    std::atomic<int> left{0};
    ranks.trial([&](Member me) {
        const auto pinned = me.on.allocate_pinned(2 * 100 * sizeof(float));
        ddp::GradientReducer reducer(me.group, {100, 100}, 100, DType::float32, base::Place(me.on));
        ddp::CommMeter meter;
        meter.watch(reducer);
        const auto begin = std::chrono::steady_clock::now();
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
                      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
        for (const auto& [name, value] : meter.take(reducer)) left += value == 0.0 ? 0 : 1;
    });
    CHECK(left == 0); // all was taken
    return result;
}

} // namespace

TEST_CASE("the time of sums on a device is measured, and how much of it is exposed", "[stand-in]") {
    if (!testing::is_stand_in(testing::runtime_or_skip())) return;
    // Sums of 200 ms, two in each of three steps, and hardly anything else: 1.2 s, nearly all of them exposed. (A busy
    // machine delays what is issued, but shortens no sum.)
    const Measured alone = measured("ncclAllReduce:200000", 3);
    CHECK((alone.sent_s > 1.19 && alone.sent_s <= alone.elapsed_s));
    CHECK((alone.exposed_s > 0.6 && alone.exposed_s <= alone.sent_s + 0.01));
    // Each gradient takes 300 ms: the sum of the first one is hidden behind the second one.
    const Measured hidden = measured("ncclAllReduce:200000,cudaMemcpyAsync to the device:300000", 2);
    CHECK((hidden.sent_s > 0.99 && hidden.sent_s <= hidden.elapsed_s));
    CHECK(hidden.exposed_s > 0.2);
    CHECK(hidden.sent_s - hidden.exposed_s > 0.55); // the second gradients
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
        count("is a sum of NCCL, on GPUs: say \"bf16\" for gradients on cores", [&] {
            ddp::GradientReducer(me.group, {3},
                                 ddp::ReducerSettings{.compression = {.kind = ddp::Compression::Kind::bf16_nccl}});
        });
        count("can neither be accumulated nor clipped: only those of float32",
              [&] { ddp::GradientReducer(me.group, {3}, 10, DType::float64, place).clip_norm(1.0); });
    });
    CHECK(refused == 3);
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

TEST_CASE("hundreds of groups leave no memory of the device, threads or files behind", "[device]") {
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
    if (stand_in) CHECK(testing::live_allocations().value() == 0U);
    const auto before = testing::process_entries();
    for (int i = 0; i < (stand_in ? 300 : 20); ++i) round();
    const auto after = testing::process_entries();
    CHECK(after.files <= before.files + 2);
    CHECK(after.threads <= before.threads + 2);
    CHECK(after.mappings <= before.mappings + 20);
    if (stand_in) CHECK(testing::live_allocations().value() == 0U);
}

} // namespace reducer_test
