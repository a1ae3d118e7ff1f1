// SPDX-License-Identifier: Apache-2.0
#pragma once
// The contract of every Group's public functions: each rank runs these functions on its own object, as a thread or as a
// process. They return complaints, as those of collective_contract.hpp do.

#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "collective_contract.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/ddp/gradient_reducer.hpp"
#include "ranktune/ddp/group.hpp"
#include "support/fake_device.hpp"

namespace ranktune::test {

using ddp::Reduce;

/// The bits of numbers, so that -0, +0 and NaN can be compared.
template <class T>
std::vector<std::byte> bits_of(const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    return {bytes.begin(), bytes.end()};
}

/// Rank r contributes of(r, i) as number i; the result must be bitwise equal to expected(i).
template <class T>
void check_reduction(ddp::Group& g, Complaints& complaints, Reduce how, const std::string& what,
                     const std::function<T(int, std::size_t)>& of, const std::function<T(std::size_t)>& expected,
                     const std::vector<std::size_t>& counts) {
    for (const std::size_t count : counts) {
        std::vector<T> values(count);
        std::vector<T> right(count);
        for (std::size_t i = 0; i < count; ++i) {
            values[i] = of(g.rank(), i);
            right[i] = expected(i);
        }
        g.all_reduce(values, how);
        expect(complaints, bits_of(values) == bits_of(right), what + " of " + std::to_string(count) + " is wrong");
    }
}

/// Small integers, whose sums every type represents exactly.
template <class T>
void check_arithmetic(ddp::Group& g, Complaints& complaints) {
    const std::string name(base::name(base::dtype_of<T>()));
    const auto number = [](int value) {
        if constexpr (sizeof(T) == 2)
            return T(static_cast<float>(value));
        else
            return static_cast<T>(value);
    };
    const int n = g.size();
    const auto of = [&](int rank, std::size_t i) { return number((rank + 1) * static_cast<int>(i % 5)); };
    const std::vector<std::size_t> counts{0, 1, 3, 1000, 4097};
    check_reduction<T>(
        g, complaints, Reduce::sum, name + " sum", of,
        [&](std::size_t i) { return number(n * (n + 1) / 2 * static_cast<int>(i % 5)); }, counts);
    check_reduction<T>(
        g, complaints, Reduce::min, name + " min", of, [&](std::size_t i) { return of(0, i); }, counts);
    check_reduction<T>(
        g, complaints, Reduce::max, name + " max", of, [&](std::size_t i) { return of(n - 1, i); }, counts);
}

/// Each rank in turn holds the special number, all others the ordinary one.
template <class T>
void check_special(ddp::Group& g, Complaints& complaints) {
    const std::string name(base::name(base::dtype_of<T>()));
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    constexpr float inf = std::numeric_limits<float>::infinity();
    struct Case {
        Reduce how;
        float special, ordinary, result;
    };
    const Case cases[] = {
        {Reduce::max, nan, inf, nan},   {Reduce::min, nan, -inf, nan},    {Reduce::max, -nan, 1, nan},
        {Reduce::min, -nan, 1, nan},    {Reduce::max, -inf, -2, -2},      {Reduce::min, inf, 3, 3},
        {Reduce::max, 0.0F, -0.0F, 0},  {Reduce::max, -0.0F, 0.0F, 0},    {Reduce::min, 0.0F, -0.0F, -0.0F},
        {Reduce::min, -0.0F, 0, -0.0F}, {Reduce::max, -1e-5F, -1, -1e-5F}};
    if (g.size() == 1) return; // nothing is reduced
    for (const Case& c : cases) {
        for (int holder = 0; holder < g.size(); ++holder) {
            std::vector<T> value{T(g.rank() == holder ? c.special : c.ordinary)};
            g.all_reduce(value, c.how);
            expect(complaints, bits_of(value) == bits_of(std::vector<T>{T(c.result)}),
                   name + (c.how == Reduce::max ? " max of " : " min of ") + std::to_string(c.special) + " and " +
                       std::to_string(c.ordinary) + " is wrong");
        }
    }
}

inline void check_integers(ddp::Group& g, Complaints& complaints) {
    const auto n = static_cast<std::uint64_t>(g.size());
    constexpr std::uint64_t large = (std::uint64_t{1} << 60U) + 1; // not representable as double
    const std::vector<std::size_t> one{1};
    check_reduction<std::uint64_t>(
        g, complaints, Reduce::sum, "large uint64", [&](int, std::size_t) { return large; },
        [&](std::size_t) { return n * large; }, one);
    check_reduction<std::int64_t>(
        g, complaints, Reduce::min, "negative int64",
        [&](int rank, std::size_t) { return -static_cast<std::int64_t>(large) - rank; },
        [&](std::size_t) { return -static_cast<std::int64_t>(large) - (g.size() - 1); }, one);
    check_reduction<std::uint64_t>(
        g, complaints, Reduce::max, "uint64 over the sign bit",
        [&](int rank, std::size_t) { return (std::uint64_t{1} << 63U) - 1 + static_cast<std::uint64_t>(rank); },
        [&](std::size_t) { return (std::uint64_t{1} << 63U) - 2 + n; }, one);
    const std::uint32_t wrapped = static_cast<std::uint32_t>(n) * 0x7FFF'FFFFU;
    check_reduction<std::int32_t>(
        g, complaints, Reduce::sum, "int32 overflow",
        [](int, std::size_t) { return std::numeric_limits<std::int32_t>::max(); },
        [&](std::size_t) { return static_cast<std::int32_t>(wrapped); }, one);
}

/// 256 + 1 + 1 + ... is 256 in a type of 8 bits when each sum is rounded, and 256 + n - 1 when the last one is.
template <class T>
void check_rounds_once(ddp::Group& g, Complaints& complaints, float first) {
    std::vector<T> values(100, T(g.rank() == 0 ? first : 1.0F));
    g.all_reduce(values);
    const T right(first + static_cast<float>(g.size() - 1));
    expect(complaints, values.back().bits() == right.bits(),
           "a sum of " + std::string(base::name(base::dtype_of<T>())) + " is rounded more than once");
}

inline Complaints reduction_contract(ddp::Group& g) {
    Complaints complaints;
    check_arithmetic<float>(g, complaints);
    check_arithmetic<double>(g, complaints);
    check_arithmetic<std::int32_t>(g, complaints);
    check_arithmetic<std::int64_t>(g, complaints);
    check_arithmetic<std::uint64_t>(g, complaints);
    check_arithmetic<base::Float16>(g, complaints);
    check_arithmetic<base::BFloat16>(g, complaints);
    check_special<float>(g, complaints);
    check_special<double>(g, complaints);
    check_special<base::Float16>(g, complaints);
    check_special<base::BFloat16>(g, complaints);
    check_integers(g, complaints);
    check_rounds_once<base::BFloat16>(g, complaints, 256.0F);
    check_rounds_once<base::Float16>(g, complaints, 2048.0F);
    expect(complaints, g.reduced(g.rank() + 1, Reduce::max) == g.size(), "the maximum of one number is wrong");
    expect(complaints, g.reduced(0.5) == 0.5 * g.size(), "the sum of one number is wrong");
    return complaints;
}

/// Number i of rank r's values.
inline std::int32_t owned(int rank, std::size_t i) { return rank * 1'000'003 + static_cast<std::int32_t>(i); }
inline std::vector<std::int32_t> owned_numbers(int rank, std::size_t count) {
    std::vector<std::int32_t> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = owned(rank, i);
    return values;
}

inline const std::vector<std::size_t> copied_counts{0, 1, 1000, 2'500'001}; // the last count needs several pieces

inline Complaints copy_contract(ddp::Group& g) {
    Complaints complaints;
    const auto n = static_cast<std::size_t>(g.size());
    for (const std::size_t count : copied_counts) {
        for (int root = 0; root < g.size(); ++root) {
            auto values = owned_numbers(g.rank(), count);
            g.broadcast(values, root);
            expect(complaints, values == owned_numbers(root, count), "a broadcast is wrong");
        }
        std::vector<std::int32_t> right;
        for (int rank = 0; rank < g.size(); ++rank) {
            const auto part = owned_numbers(rank, count);
            right.insert(right.end(), part.begin(), part.end());
        }
        const auto mine = owned_numbers(g.rank(), count);
        std::vector<std::int32_t> all(n * count);
        g.all_gather(mine, all);
        expect(complaints, all == right, "a gather of " + std::to_string(count) + " is wrong");
        std::vector<std::int32_t> in_place(n * count);
        const auto own = std::span(in_place).subspan(static_cast<std::size_t>(g.rank()) * count, count);
        std::ranges::copy(mine, own.begin());
        g.all_gather(own, in_place);
        expect(complaints, in_place == right, "a gather in place is wrong");
    }
    std::vector<base::BFloat16> halves(3, base::BFloat16(static_cast<float>(g.rank())));
    g.broadcast(halves, g.size() - 1);
    expect(complaints, halves[2].bits() == base::BFloat16(static_cast<float>(g.size() - 1)).bits(),
           "a broadcast of bfloat16 is wrong");
    return complaints;
}

inline Complaints message_contract(ddp::Group& g) {
    Complaints complaints;
    const int n = g.size();
    const int me = g.rank();
    // All ranks send along a ring before any receives, much more than a library buffers; a single rank sends to itself.
    for (const std::size_t count : copied_counts) {
        g.send(owned_numbers(me, count), (me + 1) % n);
        std::vector<std::int32_t> got(count);
        g.receive(got, (me + n - 1) % n);
        expect(complaints, got == owned_numbers((me + n - 1) % n, count), "a message along the ring is wrong");
    }
    // All pairs of ranks, each rank in its own order.
    for (int k = 0; k < n; ++k) g.send(owned_numbers(me * n + (me + k) % n, 100'000), (me + k) % n);
    for (int k = n; k-- > 0;) {
        const int from = (me + k) % n;
        std::vector<std::int32_t> got(100'000);
        g.receive(got, from);
        expect(complaints, got == owned_numbers(from * n + me, 100'000),
               "a message of everybody to everybody is wrong");
    }
    // In order, of any types, with collective operations in between.
    const int to = (me + 1) % n;
    const int from = (me + n - 1) % n;
    for (std::int32_t i = 0; i < 200; ++i) g.send(std::span(&i, 1), to);
    g.barrier();
    const std::vector<double> doubles{1.5, static_cast<double>(me)};
    g.send(doubles, to);
    g.send(std::vector<base::Float16>(2, base::Float16(0.5F)), to);
    expect(complaints, g.reduced(1) == n, "a sum between sending and receiving is wrong");
    for (std::int32_t i = 0; i < 200; ++i) {
        std::int32_t got = -1;
        g.receive(std::span(&got, 1), from);
        expect(complaints, got == i, "messages arrive out of order");
    }
    std::vector<double> got(2);
    g.receive(got, from);
    expect(complaints, got == std::vector<double>{1.5, static_cast<double>(from)}, "a message of doubles is wrong");
    std::vector<base::Float16> halves(2);
    g.receive(halves, from);
    expect(complaints, halves[1].bits() == base::Float16(0.5F).bits(), "a message of float16 is wrong");
    return complaints;
}

/// "UsageError", or the result of thrown_by.
inline std::string refusal_of(const std::function<void()>& call) {
    std::string thrown;
    const auto tell = [&] {
        try {
            call();
        } catch (const base::UsageError&) {
            thrown = "UsageError";
        }
    };
    const std::string other = thrown_by(tell);
    return thrown.empty() ? other : thrown;
}

/// Errors that one rank can detect are refused there before anything is sent; the group stays usable.
inline Complaints refusal_contract(ddp::Collective& g) {
    Complaints complaints;
    const auto refused = [&](const std::string& what, const std::function<void()>& call) {
        const std::string thrown = refusal_of(call);
        expect(complaints, thrown == "UsageError", what + " is not refused, but: " + thrown);
    };
    testing::FakeDevice device;
    const testing::OnDevice<float> there(device, {1.0F, 2.0F});
    device.to_host = device.from_host = 0;
    std::vector<float> here(2);
    std::vector<std::uint8_t> bytes(2);
    std::vector<float> all(2 * static_cast<std::size_t>(g.size()));
    for (const int rank : {-1, g.size()}) {
        refused("a root that is not there", [&] { g.broadcast(here, rank); });
        refused("a message to nobody", [&] { g.send(here, rank); });
        refused("a message of nobody", [&] { g.receive(here, rank); });
    }
    refused("a sum of bytes", [&] { g.all_reduce(bytes); });
    const base::Buffer odd(reinterpret_cast<std::byte*>(here.data()) + 1, 1, base::DType::float32);
    refused("a sum at an odd address", [&] { g.all_reduce(odd); });
    refused("a sum on a device", [&] { g.all_reduce(there.buffer()); });
    refused("a broadcast on a device", [&] { g.broadcast(there.buffer()); });
    refused("a gather of a device", [&] { g.all_gather(there.buffer(), all); });
    refused("a gather into a device", [&] { g.all_gather(std::span<float>(), there.buffer().part(0, 0)); });
    refused("a message of a device", [&] { g.send(there.buffer(), 0); });
    refused("a message into a device", [&] { g.receive(there.buffer(), 0); });
    refused("a gather into too little", [&] { g.all_gather(here, std::span(all).first(1)); });
    refused("a gather into other numbers", [&] { g.all_gather(here, bytes); });
    expect(complaints, device.to_host == 0 && device.from_host == 0, "a device was read or written");

    g.begin_step(g.announce({base::DType::float32, {here.size()}}), no_reducer);
    refused("a barrier in a step", [&] { g.barrier(); });
    refused("a sum in a step", [&] { g.all_reduce(here); });
    refused("a message in a step", [&] { g.send(here, 0); });
    refused("a step in a step", [&] { g.begin_step(0, no_reducer); });
    const auto pending = g.start_sum(here);
    while (!pending->test()) std::this_thread::yield();
    g.end_step();

    g.broadcast(odd); // copies do not need an alignment

    // A message that does not match is lost, the next one is not.
    const int to = (g.rank() + 1) % g.size();
    const int from = (g.rank() + g.size() - 1) % g.size();
    for (int i = 0; i < 2; ++i) g.send(owned_numbers(g.rank(), 2'500'001), to);
    g.send(std::vector<float>{4.0F, 5.0F}, to);
    refused("a message of another type", [&] { g.receive(here, from); });
    std::vector<std::int32_t> less(5);
    refused("a message of another size", [&] { g.receive(less, from); });
    g.receive(here, from);
    expect(complaints, here == std::vector<float>{4.0F, 5.0F}, "the message after one that did not fit is wrong");
    g.barrier();
    return complaints;
}

/// Disagreements between ranks are reported to all of them; the group stays usable.
inline Complaints disagreement_contract(ddp::Group& g) {
    Complaints complaints;
    if (g.size() == 1) return complaints;
    const bool odd = g.rank() == g.size() - 1;
    std::vector<float> floats(6);
    std::vector<std::int32_t> integers(6);
    std::vector<float> all(6 * static_cast<std::size_t>(g.size()));
    const auto two = [&](const std::string& what, const std::function<void()>& most, const std::function<void()>& one) {
        const std::string thrown = refusal_of(odd ? one : most);
        expect(complaints, thrown == "Error", what + " is not found, but: " + thrown);
    };
    const auto some = std::span(floats).first(5);
    two(
        "another count of a sum", [&] { g.all_reduce(floats); }, [&] { g.all_reduce(some); });
    two(
        "another type of a sum", [&] { g.all_reduce(floats); }, [&] { g.all_reduce(integers); });
    two(
        "another reduction", [&] { g.all_reduce(floats); }, [&] { g.all_reduce(floats, Reduce::max); });
    two(
        "another count of a broadcast", [&] { g.broadcast(floats); }, [&] { g.broadcast(some); });
    two(
        "another type of a broadcast", [&] { g.broadcast(floats); }, [&] { g.broadcast(integers); });
    two(
        "another root", [&] { g.broadcast(floats, 0); }, [&] { g.broadcast(floats, 1); });
    two(
        "another count of a gather", [&] { g.all_gather(floats, all); },
        [&] { g.all_gather(some, std::span(all).first(5 * static_cast<std::size_t>(g.size()))); });
    two(
        "a gather beside a sum", [&] { g.all_gather(floats, all); }, [&] { g.all_reduce(floats); });
    two(
        "nothing beside something", [&] { g.all_reduce(floats); }, [&] { g.all_reduce(std::span<float>()); });
    expect(complaints, g.reduced(1) == g.size(), "the group is not usable after a disagreement");
    return complaints;
}

/// What the healthy ranks are doing in the contract below.
enum class Busy {
    receiving_from_failed,
    receiving_from_healthy,
    in_barrier,
    in_step,
    receiving_or_in_barrier,
    receiving_or_in_step
};

inline void be_busy(ddp::Collective& c, Busy how, int failed, Complaints& complaints) {
    const int next = (c.rank() + 1) % c.size() == failed ? (c.rank() + 2) % c.size() : (c.rank() + 1) % c.size();
    const bool even = c.rank() % 2 == 0;
    std::vector<float> values(3);
    switch (how) {
        case Busy::receiving_from_failed:
            return c.receive(values, failed);
        case Busy::receiving_from_healthy: // itself, if it is the only one
            return c.receive(values, next);
        case Busy::in_barrier:
            return c.barrier();
        case Busy::receiving_or_in_barrier:
            return even ? c.barrier() : c.receive(values, failed);
        case Busy::receiving_or_in_step:
            if (!even) return c.receive(values, failed);
            [[fallthrough]];
        case Busy::in_step:
            static_cast<void>(step(c, false, complaints));
    }
}

inline bool may_receive_remains(Busy how) { return how != Busy::in_barrier && how != Busy::in_step; }

/// Whatever the others wait for when a rank fails, they leave, and the group stays usable: messages sent before the
/// failure are not received after it.
inline Complaints message_failure_contract(const MakeCollective& make) {
    Complaints complaints;
    const auto c = make();
    const int n = c->size();
    if (n == 1) return complaints;
    static_cast<void>(c->announce(step_plan));
    std::int32_t round = 0;
    for (const Busy how : {Busy::receiving_from_failed, Busy::receiving_from_healthy, Busy::in_barrier, Busy::in_step,
                           Busy::receiving_or_in_barrier, Busy::receiving_or_in_step}) {
        for (int failed = 0; failed < n; ++failed) {
            ++round;
            const bool two = n > 2 && round % 3 == 0; // two ranks fail at once
            const auto fails = [&](int rank) { return rank == failed || (two && rank == (failed + 1) % n); };
            const std::string thrown = thrown_by([&] {
                // Nobody receives these messages; the second one is larger than a library's buffers.
                c->send(owned_numbers(-1, 3), (c->rank() + 1) % n);
                c->send(owned_numbers(-1, 2'500'001), (c->rank() + 1) % n);
                if (!fails(c->rank())) be_busy(*c, how, failed, complaints);
            });
            // A rank that receives these messages, which have another type, before the notice, fails as well.
            if (thrown.empty() || thrown == "Error") c->fail();
            const bool right = thrown == "PeerFailed" || (thrown.empty() && fails(c->rank())) ||
                               (thrown == "Error" && may_receive_remains(how));
            expect(complaints, right,
                   "case " + std::to_string(static_cast<int>(how)) + ", rank " + std::to_string(failed) +
                       " fails: rank " + std::to_string(c->rank()) + " gets " + thrown);
            std::vector<std::int32_t> got(3);
            c->send(owned_numbers(round, 3), (c->rank() + 1) % n);
            c->receive(got, (c->rank() + n - 1) % n);
            expect(complaints, got == owned_numbers(round, 3), "a message from before a failure was received after it");
            expect(complaints, c->reduced(1) == n, "the group is not usable after a failure");
        }
    }
    return complaints;
}

/// A rank fails in a step and at once again, before the others have seen the first failure: they learn of both.
inline Complaints second_failure_contract(const MakeCollective& make) {
    Complaints complaints;
    const auto c = make();
    if (c->size() == 1) return complaints;
    static thread_local std::vector<float> bucket(10);
    const std::size_t plan = c->announce({base::DType::float32, {bucket.size()}});
    if (c->rank() == 0) {
        for (int failure = 0; failure < 2; ++failure) c->fail();
    } else {
        const std::string in_step = thrown_by([&] {
            c->begin_step(plan, no_reducer);
            const auto pending = c->start_sum(bucket);
            std::this_thread::sleep_for(std::chrono::milliseconds(20)); // rank 0 continues meanwhile
            while (!pending->test()) std::this_thread::yield();
            c->end_step();
        });
        expect(complaints, in_step == "PeerFailed", "the first failure is not told, but: " + in_step);
        const std::string in_receive = thrown_by([&] { c->receive(bucket, 0); });
        expect(complaints, in_receive == "PeerFailed", "the second failure is not told, but: " + in_receive);
    }
    expect(complaints, c->reduced(1) == c->size(), "the group is not usable after two failures");
    return complaints;
}

/// Buckets of every gradient type, many in flight at once, tested at different times on the ranks.
template <class T>
void check_gradients(ddp::Group& g, Complaints& complaints) {
    const std::string name(base::name(base::dtype_of<T>()));
    const std::vector<std::size_t> sizes{1, 700, 3, 5000, 64, 2};
    ddp::GradientReducer reducer(g, sizes, 1, base::dtype_of<T>());
    for (int round = 0; round < 20; ++round) {
        ddp::run_step(reducer, [&] {
            for (std::size_t t = sizes.size(); t-- > 0;) {
                std::ranges::fill(reducer.gradient<T>(t), T(static_cast<float>(t + 1)));
                reducer.ready(t);
                if ((g.rank() + round) % 2 == 0) reducer.poll();
                if ((g.rank() + round) % 5 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
        });
        for (std::size_t t = 0; t < sizes.size(); ++t) {
            const float right = static_cast<float>(t + 1) * static_cast<float>(g.size());
            expect(complaints,
                   std::ranges::all_of(reducer.gradient<T>(t), [&](T v) { return static_cast<float>(v) == right; }),
                   "gradients of " + name + " are wrong in round " + std::to_string(round));
        }
    }
}

inline Complaints gradient_contract(ddp::Group& g) {
    Complaints complaints;
    check_gradients<float>(g, complaints);
    check_gradients<double>(g, complaints);
    check_gradients<base::Float16>(g, complaints);
    check_gradients<base::BFloat16>(g, complaints);
    return complaints;
}

/// A message that a trial never received does not reach the next trial on the same ranks.
inline Complaints remains_contract(const MakeCollective& make) {
    Complaints complaints;
    for (std::int32_t trial = 0; trial < 5; ++trial) {
        const auto c = make();
        const int n = c->size();
        std::vector<std::int32_t> got(4);
        c->send(owned_numbers(trial, 4), (c->rank() + 1) % n);
        c->receive(got, (c->rank() + n - 1) % n);
        expect(complaints, got == owned_numbers(trial, 4), "a message of the trial before was received");
        c->send(owned_numbers(-1, 4), (c->rank() + 1) % n);
        c->send(owned_numbers(-1, 2'500'001), (c->rank() + 1) % n);
        c->barrier();
    }
    return complaints;
}

} // namespace ranktune::test
