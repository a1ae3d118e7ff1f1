// SPDX-License-Identifier: Apache-2.0
#include "ranktune/ddp/gradient_reducer.hpp"

#include <atomic>
#include <cstdint>
#include <vector>

#include "comm/kept.hpp"
#include "ranktune/ddp/parameters.hpp"
#include "support/catch.hpp"
#include "support/device_group.hpp"
#include "support/fake_device.hpp"
#include "support/ranks.hpp"

namespace gradient_reducer_test {

using namespace ranktune;
using namespace ranktune::ddp;
using testing::all_well;
using testing::DeviceGroup;
using testing::FakeDevice;
using testing::on_ranks;

namespace {

const std::vector<std::size_t> tensors{7, 3, 12, 1};
constexpr std::size_t limit = 12; // buckets {3}, {2}, {1, 0}

/// Small integers, whose sums are exact in any order.
float value(int rank, std::size_t tensor, std::size_t i, int step) {
    return static_cast<float>((rank + 1) * 100 + static_cast<int>(tensor) * 10 + static_cast<int>(i % 7) + step);
}

void fill(GradientReducer& reducer, int rank, std::size_t tensor, int step) {
    const std::span<float> gradient = reducer.gradient(tensor);
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = value(rank, tensor, i, step);
    reducer.ready(tensor);
    reducer.poll();
}

bool sums_are_right(GradientReducer& reducer, int size, int step) {
    for (std::size_t t = 0; t < tensors.size(); ++t) {
        const std::span<const float> gradient = reducer.gradient(t);
        for (std::size_t i = 0; i < gradient.size(); ++i) {
            float expected = 0.0F;
            for (int rank = 0; rank < size; ++rank) expected += value(rank, t, i, step);
            if (gradient[i] != expected) return false;
        }
    }
    return true;
}

} // namespace

TEST_CASE("every rank ends a step with the sums over all ranks", "[ddp]") {
    for (const int size : {1, 2, 3, 5}) {
        const auto thrown = on_ranks(size, [&](Collective& group) {
            GradientReducer reducer(group, tensors, limit);
            for (int step = 0; step < 20; ++step) {
                run_step(reducer, [&] {
                    for (std::size_t t = tensors.size(); t-- > 0;) fill(reducer, group.rank(), t, step);
                });
                if (!sums_are_right(reducer, size, step)) throw base::Error("wrong sums");
            }
        });
        CHECK(thrown == all_well(size));
    }
}

TEST_CASE("gradients are one piece of memory in plan order", "[ddp]") {
    const auto group = make_self_group();
    GradientReducer reducer(*group, tensors, limit);
    CHECK(reducer.gradients().size() == 23);
    CHECK(reducer.gradient(3).data() == reducer.gradients().data());
    CHECK(reducer.gradient(2).data() == reducer.gradients().data() + 1);
    CHECK(reducer.gradient(1).data() == reducer.gradients().data() + 13);
    CHECK(reducer.gradient(0).data() == reducer.gradients().data() + 16);
    CHECK(reinterpret_cast<std::uintptr_t>(reducer.gradients().data()) % 64 == 0);
}

TEST_CASE("when a rank throws anywhere in a step, all others leave the same step", "[ddp]") {
    constexpr int size = 3;
    constexpr int failing_step = 2;
    // Throws before the gradient of tensor `place`; -1: after the last one.
    for (int place = 3; place >= -1; --place) {
        for (int failing_rank = 0; failing_rank < size; ++failing_rank) {
            std::vector<int> steps(size, 0);
            const auto thrown = on_ranks(size, [&](Collective& group) {
                GradientReducer reducer(group, tensors, limit);
                for (int step = 0; step < 5; ++step) {
                    run_step(reducer, [&] {
                        const bool fails = step == failing_step && group.rank() == failing_rank;
                        for (int t = 3; t >= 0; --t) {
                            if (fails && t == place) throw base::Error("broken");
                            fill(reducer, group.rank(), static_cast<std::size_t>(t), step);
                        }
                        if (fails && place == -1) throw base::Error("broken");
                    });
                    ++steps[static_cast<std::size_t>(group.rank())];
                }
            });
            for (int rank = 0; rank < size; ++rank) {
                CHECK(thrown[static_cast<std::size_t>(rank)] == (rank == failing_rank ? "broken" : "PeerFailed"));
                CHECK(steps[static_cast<std::size_t>(rank)] == failing_step);
            }
        }
    }
}

TEST_CASE("when all ranks fail in one step, none waits", "[ddp]") {
    const auto thrown = on_ranks(3, [&](Collective& group) {
        GradientReducer reducer(group, tensors, limit);
        run_step(reducer, [&] {
            for (int t = 3; t > group.rank(); --t) fill(reducer, group.rank(), static_cast<std::size_t>(t), 0);
            throw base::Error("broken");
        });
    });
    CHECK(thrown == std::vector<std::string>(3, "broken"));
}

TEST_CASE("a rank that fails between two steps joins the next one with zeros", "[ddp]") {
    const auto thrown = on_ranks(3, [&](Collective& group) {
        GradientReducer reducer(group, tensors, limit);
        for (int step = 0; step < 3; ++step) {
            if (step == 1 && group.rank() == 1) {
                group.fail();
                throw base::Error("broken");
            }
            run_step(reducer, [&] {
                for (std::size_t t = tensors.size(); t-- > 0;) fill(reducer, group.rank(), t, step);
            });
        }
    });
    CHECK(thrown == std::vector<std::string>{"PeerFailed", "broken", "PeerFailed"});
}

TEST_CASE("when plans differ, all ranks get an error", "[ddp]") {
    const auto thrown = on_ranks(2, [&](Collective& group) {
        std::vector<std::size_t> sizes = tensors;
        if (group.rank() == 1) sizes.back() += 1;
        GradientReducer reducer(group, sizes, limit);
    });
    CHECK(thrown[0].find("bucket plans") != std::string::npos);
    CHECK(thrown[0] == thrown[1]);
}

TEST_CASE("the digests of parameters agree until one rank changes its own", "[ddp]") {
    const auto thrown = on_ranks(3, [&](Collective& group) {
        std::vector<float> a(5, static_cast<float>(group.rank()));
        std::vector<float> b(3, 10.0F + static_cast<float>(group.rank()));
        group.broadcast(a);
        group.broadcast(b);
        if (a != std::vector<float>(5, 0.0F) || b != std::vector<float>(3, 10.0F)) throw base::Error("not broadcast");
        const std::vector<base::ConstBuffer> read{a, b};
        check_agreement(group, parameter_digest(read), "the parameters");
        if (group.rank() == 2) a[4] = 1.0F;
        check_agreement(group, parameter_digest(read), "the parameters");
    });
    for (const std::string& text : thrown) CHECK(text.find("the parameters differ") == 0);
}

TEST_CASE("a clock measures how long sums are in flight, and waited for", "[ddp]") {
    double now = 0.0;
    const auto group = make_self_group();
    GradientReducer reducer(*group, tensors, limit);
    reducer.set_clock([&] { return now += 1.0; });
    run_step(reducer, [&] {
        for (std::size_t t = tensors.size(); t-- > 0;) fill(reducer, 0, t, 0);
    });
    CHECK(reducer.total_timing().waited_s > 0.0);
    CHECK(reducer.total_timing().in_flight_s > reducer.total_timing().waited_s);
}

TEST_CASE("a step that is given up keeps its buffers alive for a late partner", "[ddp]") {
    std::atomic<bool> abort_first{false};
    const std::atomic<bool> never{false};
    const std::vector<const std::atomic<bool>*> aborts{&abort_first, &never};
    const auto collectives = make_thread_collectives(2, aborts);
    const std::size_t kept = comm::kept_to_exit();
    std::atomic<bool> gone{false};
    bool sums = false;
    std::thread late([&] {
        GradientReducer reducer(*collectives[1], tensors, limit);
        while (!gone.load()) std::this_thread::yield();
        // All buckets of the first rank were in flight when it gave up, and are still alive.
        run_step(reducer, [&] {
            for (std::size_t t = tensors.size(); t-- > 0;) fill(reducer, 1, t, 0);
        });
        sums = sums_are_right(reducer, 2, 0);
    });
    {
        GradientReducer reducer(*collectives[0], tensors, limit);
        CHECK_THROWS_AS(run_step(reducer,
                                 [&] {
                                     for (std::size_t t = tensors.size(); t-- > 0;) fill(reducer, 0, t, 0);
                                     abort_first.store(true);
                                 }),
                        Aborted);
    }
    CHECK(comm::kept_to_exit() > kept);
    gone.store(true);
    late.join();
    CHECK(sums);
}

namespace {

/// One step in which rank r brings 256 (rank 0) or 1 for every number; the value of 256 + 1 + ... + 1 shows the type.
template <class T>
std::vector<float> sums_of(Group& group, base::Place place = {}) {
    GradientReducer reducer(group, tensors, limit, base::dtype_of<T>(), place);
    const T mine(group.rank() == 0 ? 256.0F : 1.0F);
    run_step(reducer, [&] {
        for (std::size_t t = tensors.size(); t-- > 0;) {
            const std::vector<T> values(tensors[t], mine);
            base::copy(values, reducer.gradient_buffer(t));
            reducer.ready(t);
        }
    });
    std::vector<T> all(reducer.gradients_buffer().count());
    base::copy(reducer.gradients_buffer(), all);
    std::vector<float> sums;
    for (const T value : all) sums.push_back(static_cast<float>(value));
    return sums;
}

void expect_sums(const std::vector<float>& sums, float right) {
    if (sums != std::vector<float>(23, right)) throw base::Error("wrong sums");
}

} // namespace

TEST_CASE("gradients of 16 bits are added in float and rounded once, those of 64 bits are not rounded", "[ddp]") {
    const auto thrown = on_ranks(4, [&](Group& group) {
        expect_sums(sums_of<base::BFloat16>(group), 260.0F); // 259 rounded to 8 bits; 256 when every sum is
        expect_sums(sums_of<base::Float16>(group), 259.0F);
        expect_sums(sums_of<double>(group), 259.0F);
        expect_sums(sums_of<float>(group), 259.0F);
        GradientReducer reducer(group, tensors, limit, base::DType::float64);
        if (reducer.gradient<double>(0).size() != 7) throw base::Error("wrong size");
        static_cast<void>(reducer.gradient(0)); // float
    });
    for (const auto& text : thrown) CHECK(text.find("7 float64 on the host was used as float32") != std::string::npos);
}

TEST_CASE("gradients on a device are only accessed by the device", "[ddp]") {
    const auto thrown = on_ranks(3, [&](Collective& host) {
        FakeDevice device(host.rank());
        DeviceGroup group(host);
        expect_sums(sums_of<float>(group, base::Place(device)), 258.0F);
        expect_sums(sums_of<base::BFloat16>(group, base::Place(device)), 258.0F);
        if (device.live() != 0) throw base::Error("memory is left");
        GradientReducer reducer(group, tensors, limit, base::DType::float32, base::Place(device));
        run_step(reducer, [&] {
            if (host.rank() == 1) throw base::Error("broken");
            for (std::size_t t = tensors.size(); t-- > 0;) reducer.ready(t);
        });
    });
    CHECK(thrown == std::vector<std::string>{"PeerFailed", "broken", "PeerFailed"});
}

TEST_CASE("gradients that cannot be reduced are refused before any communication", "[ddp]") {
    const auto group = make_self_group();
    CHECK_THROWS_WITH(GradientReducer(*group, tensors, limit, base::DType::int32),
                      "gradients of int32 cannot be reduced");
    FakeDevice device;
    CHECK_THROWS_WITH(GradientReducer(*group, tensors, limit, base::DType::float32, base::Place(device)),
                      "gradients on device 0: the group of this trial only takes host memory");
    CHECK_THROWS_AS(GradientReducer(*group, {std::size_t{1} << 31U}, limit), base::UsageError);
    // The error occurs on one rank alone, which tells the others by failing, as the driver does.
    const auto thrown = on_ranks(3, [&](Collective& all) {
        try {
            GradientReducer reducer(all, tensors, limit, all.rank() == 1 ? base::DType::uint64 : base::DType::float32);
        } catch (const base::UsageError&) {
            all.fail();
            throw;
        }
    });
    CHECK(thrown == std::vector<std::string>{"PeerFailed", "gradients of uint64 cannot be reduced", "PeerFailed"});
}

TEST_CASE("ranks whose gradients have different types get an error", "[ddp]") {
    const auto thrown = on_ranks(2, [&](Group& group) {
        const auto type = group.rank() == 0 ? base::DType::float16 : base::DType::bfloat16;
        GradientReducer reducer(group, tensors, limit, type);
    });
    for (const auto& text : thrown) CHECK(text.find("type of the gradients") != std::string::npos);
}

TEST_CASE("with several reducers a failing rank joins the one that the others use", "[ddp]") {
    for (const int used : {0, 1, 2}) {
        const auto thrown = on_ranks(3, [&](Collective& group) {
            GradientReducer first(group, tensors, limit);
            GradientReducer second(group, {5000}, limit, base::DType::bfloat16);
            GradientReducer third(group, {11, 13}, 1, base::DType::float64);
            if (group.rank() == 0) {
                group.fail();
                throw base::Error("broken");
            }
            GradientReducer* const all[] = {&first, &second, &third};
            GradientReducer& reducer = *all[used];
            run_step(reducer, [&] {
                for (const auto& bucket : reducer.plan().buckets)
                    for (const auto& slot : bucket.slots) reducer.ready(slot.tensor);
            });
        });
        CHECK(thrown == std::vector<std::string>{"broken", "PeerFailed", "PeerFailed"});
    }
}

TEST_CASE("the reducer's destructor or the driver ends a step that user code leaves open", "[ddp]") {
    for (const bool destroyed : {true, false}) {
        const auto thrown = on_ranks(3, [&](Collective& group) {
            const auto one_step = [&](GradientReducer& reducer) {
                reducer.begin(); // without run_step
                for (std::size_t t = tensors.size(); t-- > 0;) {
                    if (group.rank() == 2 && t == 1) throw base::Error("broken");
                    reducer.ready(t);
                }
                reducer.finish();
            };
            if (destroyed) {
                GradientReducer reducer(group, tensors, limit);
                return one_step(reducer);
            }
            GradientReducer kept(group, tensors, limit);
            try {
                one_step(kept);
            } catch (const PeerFailed&) {
                throw;
            } catch (const base::Error&) {
                group.fail();
                if (kept.in_step()) throw base::Error("still open");
                throw;
            }
        });
        CHECK(thrown == std::vector<std::string>{"PeerFailed", "PeerFailed", "broken"});
    }
}

} // namespace gradient_reducer_test
