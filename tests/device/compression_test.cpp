// SPDX-License-Identifier: Apache-2.0
// Compressed gradients on devices against those on hosts, whose arithmetic tests/ddp/compression_test.cpp checks.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "ddp/compression/low_rank.hpp"
#include "device/gradient_kernels.hpp"
#include "device_ranks.hpp"
#include "ranktune/base/rng.hpp"
#include "ranktune/ddp/gradient_reducer.hpp"
#include "support/catch.hpp"

namespace compression_test {

using namespace ranktune;
using namespace ranktune::ddp;
using testing::Member;
using testing::most_ranks;
using testing::OnAccelerator;
using testing::Ranks;
using Kind = Compression::Kind;

namespace {

/// A matrix with padding, a vector, a matrix, a single number; with `one_bucket` numbers in a bucket, and 350.
const std::vector<std::size_t> shapes_of_tensors{304, 20, 600, 1};
const std::vector<Matrix> matrices{{30, 10}, {}, {20, 30}, {}};
constexpr std::size_t all_numbers = 925;
constexpr std::size_t one_bucket = 10'000;
constexpr std::size_t several_buckets = 350;

const std::vector<Compression> all_kinds{{.kind = Kind::fp16},
                                         {.kind = Kind::bf16},
                                         {.kind = Kind::powersgd, .rank = 2},
                                         {.kind = Kind::topk, .density = 0.05}};

/// NCCL's own sums are for devices only.
std::vector<Compression> kinds_on_devices() {
    std::vector<Compression> all = all_kinds;
    all.push_back({.kind = Kind::bf16_nccl});
    return all;
}

ReducerSettings settings(Member me, const Compression& compression, std::size_t limit, bool on_device) {
    return {limit, base::DType::float32, on_device ? base::Place(me.on) : base::Place(), compression, matrices};
}

std::vector<float> gradient_of(int rank, int step, std::size_t tensor) {
    std::vector<float> numbers(shapes_of_tensors[tensor]);
    for (std::size_t i = 0; i < (tensor == 0 ? 300 : numbers.size()); ++i) {
        base::RngStream random(static_cast<std::uint64_t>(rank * 1000 + step), base::Purpose::fault,
                               static_cast<std::uint32_t>(tensor), static_cast<std::uint32_t>(i));
        numbers[i] = static_cast<float>(random.normal());
    }
    return numbers;
}

void one_step(GradientReducer& reducer, int rank, int step) {
    run_step(reducer, [&] {
        for (std::size_t t = shapes_of_tensors.size(); t-- > 0;) {
            base::copy(gradient_of(rank, step, t), reducer.gradient_buffer(t));
            reducer.ready(t);
            reducer.poll();
        }
    });
}

std::vector<float> sums_of(GradientReducer& reducer) {
    std::vector<float> sums;
    for (std::size_t t = 0; t < shapes_of_tensors.size(); ++t) {
        std::vector<float> part(shapes_of_tensors[t]);
        base::copy(reducer.gradient_buffer(t), part);
        sums.insert(sums.end(), part.begin(), part.end());
    }
    return sums;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
    float largest = 0.0F;
    for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
    return largest;
}

} // namespace

TEST_CASE("16 bits and topk have the bits of hosts on devices, powersgd its numbers", "[device]") {
    for (int size = 2; size <= most_ranks(); ++size) {
        Ranks ranks(size);
        for (const Compression& compression : all_kinds)
            for (const std::size_t limit : {several_buckets, one_bucket}) {
                std::atomic<int> wrong{0};
                std::vector<std::vector<float>> found(static_cast<std::size_t>(size));
                ranks.trial([&](Member me) {
                    GradientReducer host(me.group, shapes_of_tensors, settings(me, compression, limit, false));
                    GradientReducer device(me.group, shapes_of_tensors, settings(me, compression, limit, true));
                    for (int step = 0; step < 6; ++step) {
                        one_step(host, me.rank, step);
                        one_step(device, me.rank, step);
                        const auto expected = sums_of(host);
                        const auto sums = sums_of(device);
                        found[static_cast<std::size_t>(me.rank)] = sums;
                        if (compression.kind == Kind::powersgd)
                            wrong += largest_difference(sums, expected) < 1e-3F ? 0 : 1;
                        else
                            wrong += same_bits(sums, expected) ? 0 : 1;
                    }
                    wrong += device.traffic().bytes == host.traffic().bytes ? 0 : 1;
                    wrong += device.traffic().bytes < device.traffic().plain_bytes ? 0 : 1;
                });
                CHECK(wrong == 0);
                for (const auto& sums : found) CHECK(same_bits(sums, found[0]));
            }
    }
}

TEST_CASE("NCCL's own sums of bfloat16 are near the exact ones, with the same bits on all ranks", "[device]") {
    if (most_ranks() < 3) return;
    Ranks ranks(3);
    std::atomic<int> wrong{0};
    std::vector<std::vector<float>> found(3);
    ranks.trial([&](Member me) {
        GradientReducer exact(me.group, shapes_of_tensors, settings(me, {.kind = Kind::bf16}, several_buckets, true));
        GradientReducer rounded(me.group, shapes_of_tensors,
                                settings(me, {.kind = Kind::bf16_nccl}, several_buckets, true));
        for (int step = 0; step < 3; ++step) {
            one_step(exact, me.rank, step);
            one_step(rounded, me.rank, step);
            found[static_cast<std::size_t>(me.rank)] = sums_of(rounded);
            const float largest = largest_difference(sums_of(exact), std::vector<float>(all_numbers));
            wrong += largest_difference(sums_of(rounded), sums_of(exact)) <= largest / 64.0F ? 0 : 1;
            wrong += same_bits(sums_of(rounded), sums_of(exact)) ? 1 : 0;
        }
    });
    CHECK(wrong == 0);
    for (const auto& sums : found) CHECK(same_bits(sums, found[0]));
}

TEST_CASE("error feedback on devices goes on from a saved state, on hosts too, and in another order of buckets",
          "[device]") {
    if (most_ranks() < 2) return;
    Ranks ranks(2);
    for (const Compression& compression : {all_kinds[2], all_kinds[3]}) {
        std::atomic<int> wrong{0};
        const float near = compression.kind == Kind::powersgd ? 1e-3F : 0.0F;
        ranks.trial([&](Member me) {
            GradientReducer whole(me.group, shapes_of_tensors, settings(me, compression, several_buckets, true));
            for (int step = 0; step < 3; ++step) one_step(whole, me.rank, step);
            study::MemoryState early;
            wrong += [&] {
                try {
                    whole.save(early);
                } catch (const base::UsageError&) {
                    return 0;
                }
                return 1;
            }();
            whole.settle();
            study::MemoryState state;
            whole.save(state);
            wrong += state.stored_tensors().size() == 5 ? 0 : 1; // of two matrices or four tensors, and the ranks
            GradientReducer device(me.group, shapes_of_tensors, settings(me, compression, several_buckets, true));
            GradientReducer host(me.group, shapes_of_tensors, settings(me, compression, several_buckets, false));
            GradientReducer other(me.group, shapes_of_tensors, settings(me, compression, several_buckets, true));
            for (GradientReducer* const reducer : {&device, &host, &other}) reducer->load(state);
            wrong += other.reorder({0, 1, 2, 3}) ? 0 : 1;
            for (GradientReducer* const reducer : {&whole, &device, &host, &other}) one_step(*reducer, me.rank, 3);
            wrong += same_bits(sums_of(device), sums_of(whole)) ? 0 : 1;
            wrong += largest_difference(sums_of(host), sums_of(whole)) <= near ? 0 : 1;
            wrong += largest_difference(sums_of(other), sums_of(whole)) <= near ? 0 : 1;
        });
        CHECK(wrong == 0);
    }
}

TEST_CASE("a rank that throws takes the others along, whatever form its gradients have on devices", "[device]") {
    if (most_ranks() < 3) return;
    Ranks ranks(3);
    for (const Compression& compression : kinds_on_devices())
        for (const bool within : {true, false}) {
            std::atomic<int> left{0};
            std::atomic<int> wrong{0};
            ranks.trial([&](Member me) {
                GradientReducer reducer(me.group, shapes_of_tensors, settings(me, compression, several_buckets, true));
                one_step(reducer, me.rank, 0);
                try {
                    if (me.rank == 1 && !within) throw base::Error("outside");
                    run_step(reducer, [&] {
                        reducer.ready(3);
                        if (me.rank == 1) throw base::Error("within");
                        for (const std::size_t t : {2, 1, 0}) reducer.ready(t);
                    });
                } catch (const PeerFailed&) {
                    ++left;
                } catch (const base::Error&) {
                    if (!within) me.group.fail();
                }
                GradientReducer next(me.group, shapes_of_tensors, settings(me, compression, several_buckets, true));
                one_step(next, me.rank, 0);
                const auto sums = sums_of(next);
                wrong += std::ranges::any_of(sums, [](float number) { return !std::isfinite(number); }) ? 1 : 0;
                wrong += std::ranges::count(sums, 0.0F) < static_cast<long>(all_numbers) ? 0 : 1;
            });
            CHECK(left == 2);
            CHECK(wrong == 0);
        }
}

TEST_CASE("the largest numbers of a slot on a device: the first of equal ones, NaN before any", "[device]") {
    auto& on = testing::runtime_or_skip().open(0);
    auto& stream = on.compute_stream();
    const auto kernels = on.make_gradient_kernels(stream);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> gradient{1, -1, 1, 1, 0, 0, 0, 0, 5, 2, nan, -7};
    const OnAccelerator<float> values(on, gradient);
    const OnAccelerator<float> error(on, std::vector<float>(12, 0.0F));
    const OnAccelerator<device::ChosenNumber> chosen(on, 4);
    const std::vector<device::ChoiceSlot> slots{{0, 8, 2, 0}, {8, 4, 2, 2}};
    const OnAccelerator<std::uint64_t> places(on, 8);
    on.copy_from_host(places.data(), slots.data(), 2 * sizeof(device::ChoiceSlot));
    const auto* const on_device = reinterpret_cast<const device::ChoiceSlot*>(places.data());
    kernels->choose(error.data(), values.data(), on_device, 2, chosen.data());
    const auto found = chosen.values();
    CHECK(found[0].place == 0);
    CHECK(found[1].place == 1);
    CHECK(found[1].value == -1.0F);
    CHECK(found[2].place == 10);
    CHECK(std::isnan(found[2].value));
    CHECK(found[3].place == 11);
    CHECK(error.values() == std::vector<float>{0, 0, 1, 1, 0, 0, 0, 0, 5, 2, 0, 0});
    const OnAccelerator<float> sums(on, std::vector<float>(12, 1.0F));
    kernels->scatter(sums.data(), chosen.data(), 2);
    CHECK(sums.values()[0] == 2.0F);
    CHECK(sums.values()[1] == 0.0F);
}

TEST_CASE("columns on a device become orthonormal as on hosts, and those that vanished are filled again", "[device]") {
    auto& on = testing::runtime_or_skip().open(0);
    const auto kernels = on.make_gradient_kernels(on.compute_stream());
    const std::size_t rows = 700;
    std::vector<float> x(rows * 3);
    for (std::size_t i = 0; i < rows; ++i) {
        x[i * 3] = std::sin(static_cast<float>(i));
        x[i * 3 + 1] = 2.0F * x[i * 3];
        x[i * 3 + 2] = std::cos(static_cast<float>(3 * i));
    }
    std::vector<float> expected = x;
    CHECK(orthonormalise(expected, 3));
    const OnAccelerator<float> plain(on, x);
    kernels->orthonormalise(plain.data(), rows, 3);
    CHECK(largest_difference(plain.values(), expected) < 1e-6F);
    std::vector<float> random;
    for (std::uint32_t draw = 0; draw < device::GradientKernels::refills; ++draw) {
        std::vector<float> zeros(rows * 3);
        refill_zero_columns(zeros, 3, 5, draw);
        random.insert(random.end(), zeros.begin(), zeros.end());
    }
    refill_zero_columns(expected, 3, 5, 0);
    CHECK_FALSE(orthonormalise(expected, 3));
    const OnAccelerator<float> refilled(on, x);
    const OnAccelerator<float> drawn(on, random);
    kernels->orthonormalise_or_refill(refilled.data(), drawn.data(), rows, 3);
    CHECK(largest_difference(refilled.values(), expected) < 1e-6F);
}

} // namespace compression_test
