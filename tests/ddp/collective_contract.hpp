// SPDX-License-Identifier: Apache-2.0
#pragma once
// The contract of every Collective: each rank runs these functions on its own object, as a thread or as a process. They
// return complaints instead of asserting, because Catch2's assertions are not thread-safe.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ddp/collective.hpp"
#include "ddp/gradients/device_sums.hpp"
#include "ranktune/base/digest.hpp"
#include "ranktune/base/rng.hpp"

namespace ranktune::test {

using Complaints = std::vector<std::string>;
using MakeCollective = std::function<std::unique_ptr<ddp::Collective>()>;

inline void expect(Complaints& complaints, bool holds, const std::string& what) {
    if (!holds) complaints.push_back(what);
}

/// Sizes of the buckets of the steps below; the last float of the last one is the step's status word.
inline const std::vector<std::size_t> step_buckets{100, 12'000, 8};

/// The plan of those steps.
inline const ddp::StepPlan step_plan{base::DType::float32, step_buckets};

/// For hand-made steps, in which no rank fails while a step is open.
struct NoReducer final : ddp::OpenStep {
    void fail() noexcept override {}
};
inline thread_local NoReducer no_reducer;

/// One step with ones in every bucket; With `fails`, this rank fails after its first bucket and acts as GradientReducer
/// would: zeros, and a one in the status word. Returns false when some rank failed in the step. Throws what end_step
/// does.
inline bool step(ddp::Collective& c, bool fails, Complaints& complaints) {
    static thread_local std::vector<std::vector<float>> buckets;
    buckets.clear();
    std::vector<std::unique_ptr<ddp::Pending>> pending;
    c.begin_step(c.announce(step_plan), no_reducer);
    for (std::size_t b = 0; b < step_buckets.size(); ++b) {
        const bool last = b + 1 == step_buckets.size();
        buckets.emplace_back(step_buckets[b], fails && b > 0 ? 0.0F : 1.0F);
        if (last) buckets.back().back() = fails ? 1.0F : 0.0F;
        pending.push_back(c.start_sum(buckets.back()));
    }
    for (const auto& p : pending) {
        while (!p->test()) std::this_thread::yield();
    }
    c.end_step();
    const bool healthy = buckets.back().back() == 0.0F;
    if (healthy) {
        for (const auto& bucket : buckets) {
            expect(complaints, bucket.front() == static_cast<float>(c.size()), "a bucket's sum is wrong");
        }
    }
    return healthy;
}

/// A step of other operations than sums. With `absent`, this rank fails before it.
inline void mixed_step(ddp::Collective& c, bool absent, Complaints& complaints) {
    using Route = ddp::StepPlan::Route;
    constexpr std::size_t part = 70'001;
    const auto ranks = static_cast<std::size_t>(c.size());
    const ddp::StepPlan plan{
        base::DType::float32, {part, 5, part, 1}, {}, {Route::exchange, Route::sum, Route::gather, Route::sum}};
    const std::size_t number = c.announce(plan);
    c.barrier();
    if (absent) return c.fail();
    std::vector<std::byte> parts;
    for (std::size_t to = 0; to < ranks; ++to)
        parts.insert(parts.end(), part, static_cast<std::byte>(10 * static_cast<std::size_t>(c.rank()) + to));
    const std::vector<std::byte> mine(part, static_cast<std::byte>(c.rank()));
    std::vector<std::byte> exchanged(ranks * part);
    std::vector<std::byte> gathered(ranks * part);
    std::vector<float> sums(6, 1.0F);
    c.begin_step(number, no_reducer);
    std::vector<std::unique_ptr<ddp::Pending>> pending;
    pending.push_back(c.start_exchange(parts, exchanged));
    pending.push_back(c.start_sum(std::span(sums).first(5)));
    pending.push_back(c.start_gather(mine, gathered));
    pending.push_back(c.start_sum(std::span(sums).last(1)));
    for (const auto& p : pending)
        while (!p->test()) std::this_thread::yield();
    c.end_step(); // throws when a rank was absent
    expect(complaints, sums == std::vector<float>(6, static_cast<float>(ranks)), "a sum beside them is wrong");
    for (std::size_t from = 0; from < ranks; ++from)
        for (const std::size_t i : {std::size_t{0}, part - 1}) {
            const auto sent = static_cast<std::byte>(10 * from + static_cast<std::size_t>(c.rank()));
            expect(complaints, exchanged[from * part + i] == sent, "an exchange is wrong");
            expect(complaints, gathered[from * part + i] == static_cast<std::byte>(from), "a gather is wrong");
        }
}

inline Complaints mixed_step_contract(ddp::Collective& c) {
    Complaints complaints;
    mixed_step(c, false, complaints);
    for (int failing = 0; c.size() > 1 && failing < c.size(); ++failing) {
        try {
            mixed_step(c, c.rank() == failing, complaints);
            expect(complaints, c.rank() == failing, "the step did not throw");
        } catch (const ddp::PeerFailed&) {
            expect(complaints, c.rank() != failing, "the failing rank was told that it failed");
        }
        mixed_step(c, false, complaints); // the group is usable
    }
    return complaints;
}

inline Complaints collective_contract(ddp::Collective& c) {
    Complaints complaints;
    const int n = c.size();
    const int me = c.rank();
    for (int round = 0; round < 2; ++round) {
        c.barrier();
        for (int root = 0; root < n; ++root) {
            for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{5'000'003}}) {
                std::vector<std::byte> bytes(size, static_cast<std::byte>(me == root ? root + 1 : 99));
                c.broadcast(bytes, root);
                expect(complaints,
                       std::all_of(bytes.begin(), bytes.end(),
                                   [&](auto b) { return b == static_cast<std::byte>(root + 1); }),
                       "a broadcast is wrong");
            }
        }
        std::vector<double> values{1.0, static_cast<double>(me), 0.5};
        c.all_reduce(values);
        expect(complaints, values == std::vector<double>{1.0 * n, n * (n - 1) / 2.0, 0.5 * n}, "a sum is wrong");
        c.all_reduce(std::span<double>());
        constexpr auto top = std::numeric_limits<std::uint64_t>::max();
        constexpr auto middle = std::uint64_t{1} << 63;
        expect(complaints, c.min_max(top) == std::pair(top, top), "min_max of equal numbers is wrong");
        const auto mixed = c.min_max(me == 0 ? middle : middle - 1);
        expect(complaints, mixed == std::pair(n > 1 ? middle - 1 : middle, middle),
               "min_max over the sign bit is wrong");
        expect(complaints,
               c.min_max(static_cast<std::uint64_t>(me)) == std::pair<std::uint64_t, std::uint64_t>(0, n - 1),
               "min_max is wrong");
        expect(complaints, step(c, false, complaints), "a step failed");
    }
    return complaints;
}

inline constexpr int program_length = 7;

/// A trial of seven operations. A rank with `fails` fails before operation `place`, or, with `in_step`, within it if it
/// is a step. Returns the operation at which this rank left because of a failure; program_length: none.
inline int run_program(ddp::Collective& c, bool fails, int place, bool in_step, Complaints& complaints) {
    std::vector<std::byte> bytes(3);
    std::vector<double> values{1.0};
    static_cast<void>(c.announce(step_plan));
    int at = 0;
    try {
        for (; at < program_length; ++at) {
            if (fails && at == place && !in_step) {
                c.fail();
                return at;
            }
            switch (at) {
                case 1:
                    c.broadcast(bytes, c.size() - 1);
                    break;
                case 2:
                    c.all_reduce(values);
                    break;
                case 3:
                    static_cast<void>(c.min_max(7));
                    break;
                case 4:
                case 5:
                    if (!step(c, fails && at == place, complaints)) return at;
                    break;
                default:
                    c.barrier();
            }
        }
    } catch (const ddp::PeerFailed&) {
    }
    return at;
}

/// Each rank fails at each place, alone, with another one, and with all others.
inline Complaints failure_contract(const MakeCollective& make) {
    Complaints complaints;
    const auto run = [&](const std::function<bool(int)>& fails, const std::function<bool(int)>& fails_in_step,
                         int place, const std::string& what) {
        const auto c = make();
        const bool in_step = fails_in_step(c->rank());
        const int left = run_program(*c, fails(c->rank()) || in_step, place, in_step, complaints);
        const bool alone = c->size() == 1;
        expect(complaints, left == place || (alone && !fails(0)),
               what + ": rank " + std::to_string(c->rank()) + " left at operation " + std::to_string(left) +
                   " instead of " + std::to_string(place));
    };
    const auto nobody = [](int) { return false; };
    const int n = make()->size();
    for (int place = 0; place < program_length; ++place) {
        const auto at = " before operation " + std::to_string(place);
        for (int f = 0; f < n; ++f) {
            const auto one = [f](int rank) { return rank == f; };
            const auto next = [f, n](int rank) { return rank == (f + 1) % n; };
            run(one, nobody, place, "rank " + std::to_string(f) + at);
            run([&](int rank) { return one(rank) || next(rank); }, nobody, place, "two ranks" + at);
            if (place != 4 && place != 5) continue;
            run(nobody, one, place, "rank " + std::to_string(f) + " in operation " + std::to_string(place));
            if (n > 1) run(one, next, place, "one rank before and one in operation " + std::to_string(place));
        }
        run([](int) { return true; }, nobody, place, "all ranks" + at);
    }
    const auto c = make();
    expect(complaints, run_program(*c, false, 0, false, complaints) == program_length, "the group did not recover");
    return complaints;
}

/// A trial of the program above; every tenth fails on one rank, at some operation.
inline std::string short_trial(ddp::Collective& c, std::uint32_t trial) {
    Complaints complaints;
    const auto n = static_cast<std::uint32_t>(c.size());
    const bool ill = trial % 10 == 3;
    const int place = static_cast<int>(trial / 10 % program_length);
    const bool in_step = (place == 4 || place == 5) && trial / 70 % 2 == 1;
    const bool fails = ill && trial / 10 % n == static_cast<std::uint32_t>(c.rank());
    const int left = run_program(c, fails, place, in_step, complaints);
    const int expected = ill && (n > 1 || !in_step) ? place : program_length;
    expect(complaints, left == expected || (ill && in_step && left == place),
           "trial " + std::to_string(trial) + " left at " + std::to_string(left));
    return complaints.empty() ? "" : complaints.front();
}

/// Sums of numbers of very different magnitudes, whose rounding reveals every change of order.
inline Complaints reproducibility_contract(const MakeCollective& make) {
    Complaints complaints;
    const auto digest_of_sums = [&](ddp::Collective& c) {
        base::Digest digest;
        for (const std::size_t size : {1, 2, 3, 17, 1000, 4097, 50'000}) {
            base::RngStream stream(1, base::Purpose::fault, static_cast<std::uint32_t>(c.rank()),
                                   static_cast<std::uint32_t>(size));
            std::vector<float> floats(size);
            std::vector<double> doubles(size);
            for (std::size_t i = 0; i < size; ++i) {
                doubles[i] = stream.normal() * std::exp2(stream.normal() * 20.0);
                floats[i] = static_cast<float>(doubles[i]);
            }
            // Two different NaNs: their sum is the first operand.
            doubles[0] = std::copysign(std::numeric_limits<double>::quiet_NaN(), c.rank() % 2 == 0 ? 1.0 : -1.0);
            c.begin_step(c.announce({base::DType::float32, {size}}), no_reducer);
            const auto pending = c.start_sum(floats);
            while (!pending->test()) std::this_thread::yield();
            c.end_step();
            c.all_reduce(doubles);
            digest.add(std::as_bytes(std::span(floats))).add(std::as_bytes(std::span(doubles)));
        }
        return digest.value();
    };
    std::uint64_t first = 0;
    for (int repetition = 0; repetition < 3; ++repetition) {
        const auto c = make();
        const auto digest = digest_of_sums(*c);
        const auto [least, greatest] = c->min_max(digest);
        expect(complaints, least == greatest, "the ranks hold different sums");
        if (repetition == 0) first = digest;
        expect(complaints, digest == first, "a repetition gave other sums");
    }
    return complaints;
}

/// What `call` throws: "PeerFailed", "Aborted", "Error" or "".
inline std::string thrown_by(const std::function<void()>& call) {
    try {
        call();
    } catch (const ddp::PeerFailed&) {
        return "PeerFailed";
    } catch (const ddp::Aborted&) {
        return "Aborted";
    } catch (const base::Error&) {
        return "Error";
    }
    return "";
}

/// A wrong program ends with an error on every rank and never hangs.
inline Complaints mismatch_contract(const MakeCollective& make) {
    Complaints complaints;
    if (make()->size() == 1) return complaints;
    static thread_local std::vector<float> bucket(1000); // outlives the operation in a step that is given up
    const auto steps = [&](ddp::Collective& c) {
        c.begin_step(c.announce({base::DType::float32, {bucket.size()}}), no_reducer);
        const auto pending = c.start_sum(bucket);
        while (!pending->test()) std::this_thread::yield();
        c.end_step();
    };
    {
        const auto c = make();
        std::vector<std::byte> bytes(4);
        expect(complaints, thrown_by([&] { c->rank() == 0 ? c->barrier() : c->broadcast(bytes, 0); }) == "Error",
               "another operation is not found");
        expect(complaints, thrown_by([&] { c->broadcast(bytes, c->rank() == 0 ? 1 : 0); }) == "Error",
               "another root is not found");
        expect(complaints,
               thrown_by([&] { c->broadcast(std::span(bytes).first(c->rank() == 0 ? 3 : 4), 0); }) == "Error",
               "another size is not found");
        expect(complaints, thrown_by([&] { c->barrier(); }).empty(), "the group is not usable after a wrong call");
    }
    {
        const auto c = make();
        expect(complaints, thrown_by([&] { c->rank() == 0 ? c->barrier() : steps(*c); }) == "Error",
               "a step against a barrier is not found");
    }
    {
        const auto c = make();
        if (c->rank() == 0) {
            c->fail();
        } else {
            expect(complaints, thrown_by([&] { steps(*c); }) == "PeerFailed",
                   "a rank that cannot join a step is not found");
            expect(complaints, thrown_by([&] { c->barrier(); }) == "Aborted", "a group that was given up can be used");
        }
    }
    const auto c = make();
    expect(complaints, thrown_by([&] { c->barrier(); }).empty(), "the next group does not work");
    return complaints;
}

inline bool is_lost(const std::function<void()>& call) {
    try {
        call();
    } catch (const ddp::GroupLost&) {
        return true;
    } catch (const base::Error&) { // something else
    }
    return false;
}

/// A rank that comes late: the others wait as long as they may, lose the group, and tell it, in whatever they wait.
inline Complaints patience_contract(const MakeCollective& make) {
    using namespace std::chrono_literals;
    Complaints complaints;
    if (make()->size() == 1) return complaints;
    static thread_local std::vector<float> values(1000); // outlives operations that are given up
    const std::function<void(ddp::Collective&)> waits[] = {
        [](ddp::Collective& c) { c.barrier(); },
        [](ddp::Collective& c) { c.all_reduce(values); },
        [](ddp::Collective& c) {
            c.begin_step(c.announce({base::DType::float32, {values.size()}}), no_reducer);
            const auto pending = c.start_sum(values);
            for (const auto begin = std::chrono::steady_clock::now(); !pending->test(); std::this_thread::yield())
                c.check_wait(begin);
            c.end_step();
        },
        [](ddp::Collective& c) { c.receive(values, c.size() - 1); },
    };
    const auto& receive = waits[3];
    for (const auto& wait : waits) {
        const auto c = make();
        const bool late = c->rank() == c->size() - 1;
        c->limit_waits(200ms);
        if (late) {
            std::this_thread::sleep_for(1s);
            expect(complaints, is_lost([&] { // what all the others had started may still succeed
                       if (&wait != &receive) wait(*c);
                       c->barrier();
                   }),
                   "the late rank does not learn that the group is lost");
        } else {
            const auto begin = std::chrono::steady_clock::now();
            expect(complaints, is_lost([&] { wait(*c); }), "a wait that takes too long does not end");
            expect(complaints, std::chrono::steady_clock::now() - begin >= 90ms, "a wait ends too early");
        }
        expect(complaints, thrown_by([&] { c->barrier(); }) == "Aborted", "a group that is lost can be used");
    }
    const auto c = make();
    c->limit_waits(300ms);
    if (c->rank() == c->size() - 1) std::this_thread::sleep_for(900ms);
    expect(complaints, thrown_by([&] { static_cast<void>(c->min_max(1)); }).empty(),
           "min_max does not wait for the leader, who may wait for the head");
    expect(complaints, thrown_by([&] { c->barrier(); }).empty(), "the group does not go on after min_max");
    return complaints;
}

} // namespace ranktune::test
