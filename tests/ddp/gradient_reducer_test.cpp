// SPDX-License-Identifier: Apache-2.0
#include "ranktune/ddp/gradient_reducer.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "comm/graveyard.hpp"
#include "ranktune/ddp/parameters.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"

using namespace ranktune;
using namespace ranktune::ddp;
using testing::all_well;
using testing::on_ranks;

namespace {

const std::vector<std::size_t> tensors{7, 3, 12, 1};
constexpr std::size_t limit = 12; // buckets {3}, {2}, {1, 0}

/// Small whole numbers: their sums are exact in any order.
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
    const auto group = make_self_collective();
    GradientReducer reducer(*group, tensors, limit);
    CHECK(reducer.gradients().size() == 23);
    CHECK(reducer.gradient(3).data() == reducer.gradients().data());
    CHECK(reducer.gradient(2).data() == reducer.gradients().data() + 1);
    CHECK(reducer.gradient(1).data() == reducer.gradients().data() + 13);
    CHECK(reducer.gradient(0).data() == reducer.gradients().data() + 16);
    CHECK(reinterpret_cast<std::uintptr_t>(reducer.gradients().data()) % 64 == 0);
    CHECK(reducer.owed_buckets() == std::vector<std::size_t>{1, 12, 11});
}

TEST_CASE("a rank that throws anywhere in a step makes all others leave that same step", "[ddp]") {
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

TEST_CASE("when all ranks fail in one step nobody waits for anybody", "[ddp]") {
    const auto thrown = on_ranks(3, [&](Collective& group) {
        GradientReducer reducer(group, tensors, limit);
        run_step(reducer, [&] {
            for (int t = 3; t > group.rank(); --t) fill(reducer, group.rank(), static_cast<std::size_t>(t), 0);
            throw base::Error("broken");
        });
    });
    CHECK(thrown == std::vector<std::string>(3, "broken"));
}

TEST_CASE("a rank that fails between two steps stands in for the next one with zeros", "[ddp]") {
    const auto thrown = on_ranks(3, [&](Collective& group) {
        GradientReducer reducer(group, tensors, limit);
        for (int step = 0; step < 3; ++step) {
            if (step == 1 && group.rank() == 1) {
                group.fail(reducer.owed_buckets());
                throw base::Error("broken");
            }
            run_step(reducer, [&] {
                for (std::size_t t = tensors.size(); t-- > 0;) fill(reducer, group.rank(), t, step);
            });
        }
    });
    CHECK(thrown == std::vector<std::string>{"PeerFailed", "broken", "PeerFailed"});
}

TEST_CASE("ranks whose plans differ are told so, all of them", "[ddp]") {
    const auto thrown = on_ranks(2, [&](Collective& group) {
        std::vector<std::size_t> sizes = tensors;
        if (group.rank() == 1) sizes.back() += 1;
        GradientReducer reducer(group, sizes, limit);
    });
    CHECK(thrown[0].find("bucket plans") != std::string::npos);
    CHECK(thrown[0] == thrown[1]);
}

TEST_CASE("parameters go from rank 0 to all and their digests agree afterwards", "[ddp]") {
    const auto thrown = on_ranks(3, [&](Collective& group) {
        std::vector<float> a(5, static_cast<float>(group.rank()));
        std::vector<float> b(3, 10.0F + static_cast<float>(group.rank()));
        const std::vector<std::span<float>> tensors_of_model{a, b};
        broadcast_parameters(group, tensors_of_model);
        if (a != std::vector<float>(5, 0.0F) || b != std::vector<float>(3, 10.0F)) throw base::Error("not broadcast");
        const std::vector<std::span<const float>> read{a, b};
        check_agreement(group, parameter_digest(read), "the parameters");
        if (group.rank() == 2) a[4] = 1.0F;
        check_agreement(group, parameter_digest(read), "the parameters");
    });
    for (const std::string& text : thrown) CHECK(text.find("the parameters differ") == 0);
}

TEST_CASE("a timeline sees each bucket and each wait of a step", "[ddp]") {
    double now = 0.0;
    Timeline timeline([&] { return now += 1.0; });
    const auto group = make_self_collective();
    GradientReducer reducer(*group, tensors, limit);
    reducer.set_timeline(&timeline);
    run_step(reducer, [&] {
        for (std::size_t t = tensors.size(); t-- > 0;) fill(reducer, 0, t, 0);
    });
    REQUIRE(timeline.reductions().size() == 3);
    CHECK(timeline.reductions()[0].name == "bucket 0");
    CHECK(timeline.waits().size() == 1);
    CHECK(reducer.last_timing().waited_s > 0.0);
    CHECK(reducer.last_timing().in_flight_s > reducer.last_timing().waited_s);
}

TEST_CASE("a step that is given up keeps its buffers alive for the partner who comes late", "[ddp]") {
    std::atomic<bool> abort_first{false};
    const std::atomic<bool> never{false};
    const std::vector<const std::atomic<bool>*> aborts{&abort_first, &never};
    const auto collectives = make_thread_collectives(2, aborts);
    const std::size_t buried = comm::buried();
    std::atomic<bool> gone{false};
    bool sums = false;
    std::thread late([&] {
        GradientReducer reducer(*collectives[1], tensors, limit);
        while (!gone.load()) std::this_thread::yield();
        // All that the first rank owed was under way when it gave up, and is still there.
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
    CHECK(comm::buried() > buried);
    gone.store(true);
    late.join();
    CHECK(sums);
}
