// SPDX-License-Identifier: Apache-2.0
// NCCL communicators whose ranks are threads, each with a device of its own: needs two devices or more.

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <optional>

#include "device_case.hpp"
#include "ranktune/base/half.hpp"
#include "support/catch.hpp"

namespace nccl_test {

using namespace ranktune;
using device::CommunicatorError;
using testing::OnAccelerator;

namespace {

std::vector<device::Accelerator*> devices_for(std::size_t ranks) {
    auto& runtime = testing::runtime_or_skip();
    if (runtime.devices().size() < ranks) {
        std::printf("skipped: needs %zu GPUs\n", ranks);
        std::fflush(stdout);
        _exit(77);
    }
    std::vector<device::Accelerator*> all;
    for (std::size_t r = 0; r < ranks; ++r) all.push_back(&runtime.open(static_cast<int>(r)));
    return all;
}

void settle(device::Communicator& communicator) {
    while (!communicator.settled()) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

/// Calls `body(rank, communicator, device)` on a thread per rank, before the communicator has settled.
void on_ranks(int ranks,
              const std::function<void(int, std::unique_ptr<device::Communicator>, device::Accelerator&)>& body) {
    const auto devices = devices_for(static_cast<std::size_t>(ranks));
    const auto id = testing::runtime_or_skip().make_id();
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
        threads.emplace_back([&, rank] {
            auto& on = *devices[static_cast<std::size_t>(rank)];
            body(rank, on.make_communicator(id, ranks, rank, "test"), on);
        });
    for (auto& thread : threads) thread.join();
}

void close(device::Communicator& communicator) {
    while (!communicator.close()) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

/// Waits until the sums are complete or one of the communicator's failures is reported; returns its cause, if any.
std::optional<CommunicatorError::Cause> outcome(device::Communicator& communicator, device::Stream& stream,
                                                std::chrono::milliseconds most) {
    const auto end = std::chrono::steady_clock::now() + most;
    try {
        while (!communicator.settled() || !stream.idle()) {
            if (std::chrono::steady_clock::now() > end) return CommunicatorError::Cause::timeout;
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
    } catch (const CommunicatorError& error) {
        return error.cause();
    }
    return std::nullopt;
}

bool on_stand_in() { return testing::is_stand_in(testing::runtime_or_skip()); }

} // namespace

TEST_CASE("ranks sum numbers in device memory, in the order of streams", "[device]") {
    for (const int ranks : {2, 3, 4}) {
        if (static_cast<std::size_t>(ranks) > testing::runtime_or_skip().devices().size()) break;
        std::atomic<int> wrong{0};
        on_ranks(ranks, [&](int rank, auto communicator, auto& on) {
            settle(*communicator);
            auto& stream = on.communication_stream();
            const std::size_t count = 70'001; // several chunks
            std::vector<float> mine(count);
            for (std::size_t i = 0; i < count; ++i) mine[i] = static_cast<float>((i + 1) * (rank + 1) % 1000);
            const OnAccelerator<float> numbers(on, mine);
            const OnAccelerator<double> wide(on, std::vector<double>{0.5, static_cast<double>(rank)});
            communicator->sum(numbers.data(), count, base::DType::float32, stream);
            settle(*communicator);
            communicator->sum(wide.data(), 2, base::DType::float64, stream);
            settle(*communicator);
            const auto sums = numbers.values();
            for (std::size_t i = 0; i < count; ++i) {
                float expected = 0.0F;
                for (int r = 0; r < ranks; ++r) expected += static_cast<float>((i + 1) * (r + 1) % 1000);
                wrong += sums[i] == expected ? 0 : 1;
            }
            wrong += wide.values() == std::vector<double>{0.5 * ranks, ranks * (ranks - 1) / 2.0} ? 0 : 1;
            close(*communicator);
        });
        CHECK(wrong == 0);
    }
}

namespace {

/// Byte i of what rank `from` has for rank `to`.
std::uint8_t byte_of(int from, int to, std::size_t i) {
    return static_cast<std::uint8_t>(31 * from + 7 * to + static_cast<int>(i % 251) + 1);
}

/// How many bytes of `all`, parts of `bytes` from the ranks 0 to ranks - 1, are not what they sent to rank `to`.
int wrong_bytes(const std::vector<std::uint8_t>& all, int ranks, int to, std::size_t bytes) {
    int wrong = all.size() == static_cast<std::size_t>(ranks) * bytes ? 0 : 1;
    for (int from = 0; from < ranks; ++from)
        for (std::size_t i = 0; i < bytes; ++i)
            wrong += all[static_cast<std::size_t>(from) * bytes + i] == byte_of(from, to, i) ? 0 : 1;
    return wrong;
}

} // namespace

TEST_CASE("every rank gets its part of what the others have", "[device]") {
    for (const int ranks : {2, 3, 4}) {
        if (static_cast<std::size_t>(ranks) > testing::runtime_or_skip().devices().size()) break;
        for (const std::size_t bytes : {std::size_t{1}, std::size_t{6}, std::size_t{300'002}}) {
            std::atomic<int> wrong{0};
            on_ranks(ranks, [&](int rank, auto communicator, auto& on) {
                settle(*communicator);
                std::vector<std::uint8_t> parts;
                for (int to = 0; to < ranks; ++to)
                    for (std::size_t i = 0; i < bytes; ++i) parts.push_back(byte_of(rank, to, i));
                const OnAccelerator<std::uint8_t> sent(on, parts);
                const OnAccelerator<std::uint8_t> received(on, parts.size());
                communicator->exchange(sent.data(), received.data(), bytes, on.communication_stream());
                settle(*communicator);
                wrong += wrong_bytes(received.values(), ranks, rank, bytes);
                wrong += sent.values() == parts ? 0 : 1;
                close(*communicator);
            });
            CHECK(wrong == 0);
        }
    }
}

TEST_CASE("every rank gets what all ranks have, in the order of ranks", "[device]") {
    for (const int ranks : {2, 3, 4}) {
        if (static_cast<std::size_t>(ranks) > testing::runtime_or_skip().devices().size()) break;
        for (const std::size_t bytes : {std::size_t{1}, std::size_t{6}, std::size_t{300'002}}) {
            std::atomic<int> wrong{0};
            on_ranks(ranks, [&](int rank, auto communicator, auto& on) {
                settle(*communicator);
                std::vector<std::uint8_t> own;
                for (std::size_t i = 0; i < bytes; ++i) own.push_back(byte_of(rank, 0, i));
                const OnAccelerator<std::uint8_t> mine(on, own);
                const OnAccelerator<std::uint8_t> all(on, bytes * static_cast<std::size_t>(ranks));
                communicator->gather(mine.data(), all.data(), bytes, on.communication_stream());
                settle(*communicator);
                wrong += wrong_bytes(all.values(), ranks, 0, bytes);
                wrong += mine.values() == own ? 0 : 1;
                close(*communicator);
            });
            CHECK(wrong == 0);
        }
    }
}

TEST_CASE("every rank gets what rank 0 has, and bfloat16 is rounded by every rank that adds", "[device]") {
    for (const int ranks : {2, 3}) {
        if (static_cast<std::size_t>(ranks) > testing::runtime_or_skip().devices().size()) break;
        std::atomic<int> wrong{0};
        on_ranks(ranks, [&](int rank, auto communicator, auto& on) {
            settle(*communicator);
            auto& stream = on.communication_stream();
            const std::vector<std::uint8_t> mine(300'002, static_cast<std::uint8_t>(rank + 5));
            const OnAccelerator<std::uint8_t> bytes(on, mine);
            communicator->broadcast(bytes.data(), mine.size(), stream);
            settle(*communicator);
            wrong += bytes.values() == std::vector<std::uint8_t>(mine.size(), 5) ? 0 : 1;
            const OnAccelerator<base::BFloat16> numbers(
                on, std::vector<base::BFloat16>{base::BFloat16(rank == 0 ? 256.0F : 1.0F), base::BFloat16(2.0F)});
            communicator->sum(numbers.data(), 2, base::DType::bfloat16, stream);
            settle(*communicator);
            const auto sums = numbers.values();
            wrong += static_cast<float>(sums[1]) == 2.0F * static_cast<float>(ranks) ? 0 : 1;
            if (on_stand_in()) wrong += static_cast<float>(sums[0]) == 256.0F ? 0 : 1; // bits of 1 are lost at 256
            close(*communicator);
        });
        CHECK(wrong == 0);
    }
}

TEST_CASE("sums, exchanges and gathers follow each other in the order of their stream", "[device]") {
    constexpr int rounds = 20;
    std::atomic<int> wrong{0};
    on_ranks(2, [&](int rank, auto communicator, auto& on) {
        settle(*communicator);
        auto& stream = on.communication_stream();
        const OnAccelerator<float> numbers(on, std::vector<float>{1.0F + static_cast<float>(rank), 10.0F});
        const OnAccelerator<float> others(on, 2);
        for (int round = 0; round < rounds; ++round) { // each reads what the one before has written
            communicator->sum(numbers.data(), 2, base::DType::float32, stream);
            settle(*communicator);
            communicator->exchange(numbers.data(), others.data(), sizeof(float), stream);
            settle(*communicator);
            communicator->gather(others.data() + rank, numbers.data(), sizeof(float), stream);
            settle(*communicator);
        }
        // Both ranks have (a, b) after the sum. Rank r gets (x_r, x_r) by the exchange, and (a, b) by the gather.
        const auto all = numbers.values();
        const float factor = std::ldexp(1.0F, rounds);
        wrong += all == std::vector<float>{1.5F * factor, 10.0F * factor} ? 0 : 1;
        close(*communicator);
    });
    CHECK(wrong == 0);
}

TEST_CASE("an exchange or a gather that a peer never joins ends with the abort, and the device goes on", "[device]") {
    for (const bool gathers : {false, true})
        on_ranks(2, [&](int rank, auto communicator, auto& on) {
            settle(*communicator);
            if (rank == 1) return; // aborts its own
            const OnAccelerator<float> from(on, std::vector<float>(100));
            const OnAccelerator<float> to(on, std::vector<float>(200));
            auto& stream = on.communication_stream();
            if (gathers)
                communicator->gather(from.data(), to.data(), 400, stream);
            else
                communicator->exchange(from.data(), to.data(), 200, stream);
            static_cast<void>(outcome(*communicator, stream, std::chrono::milliseconds(30)));
            communicator->abort();
            testing::wait_for(stream);
            on.compute_stream().fill_zero(to.data(), 800);
            CHECK(to.values() == std::vector<float>(200));
        });
}

TEST_CASE("a communicator that a rank never joins is aborted", "[device]") {
    const auto devices = devices_for(2);
    const auto id = testing::runtime_or_skip().make_id();
    const auto communicator = devices[0]->make_communicator(id, 2, 0, "test");
    for (int i = 0; i < 20; ++i) {
        CHECK_FALSE(communicator->settled());
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    communicator->abort();
    CHECK_THROWS_AS(communicator->settled(), CommunicatorError);
}

TEST_CASE("a sum that a peer never joins ends with the abort, and the device goes on", "[device]") {
    on_ranks(2, [&](int rank, auto communicator, auto& on) {
        settle(*communicator);
        if (rank == 1) return; // aborts its own
        const OnAccelerator<float> numbers(on, std::vector<float>(100));
        communicator->sum(numbers.data(), 100, base::DType::float32, on.communication_stream());
        static_cast<void>(outcome(*communicator, on.communication_stream(), std::chrono::milliseconds(30)));
        communicator->abort();
        testing::wait_for(on.communication_stream());
        on.compute_stream().fill_zero(numbers.data(), 400);
        static_cast<void>(numbers.values());
    });
}

TEST_CASE("failures of NCCL have a cause", "[stand-in]") {
    if (!on_stand_in()) return;
    using Cause = CommunicatorError::Cause;
    {
        const testing::With fault("NCCL", "1:0:fail"); // rank 1 cannot form it
        const auto devices = devices_for(2);
        const auto id = testing::runtime_or_skip().make_id();
        CHECK_THROWS_AS(devices[1]->make_communicator(id, 2, 1, "test"), CommunicatorError);
    }
    std::vector<std::optional<Cause>> causes(2);
    const auto sum_on_both = [&] {
        on_ranks(2, [&](int rank, auto communicator, auto& on) {
            settle(*communicator);
            const OnAccelerator<float> numbers(on, std::vector<float>(4));
            auto& cause = causes[static_cast<std::size_t>(rank)];
            cause.reset();
            try {
                communicator->sum(numbers.data(), 4, base::DType::float32, on.communication_stream());
                cause = outcome(*communicator, on.communication_stream(), std::chrono::milliseconds(200));
            } catch (const CommunicatorError& error) {
                cause = error.cause();
            }
            communicator->abort();
            testing::wait_for(on.communication_stream());
        });
    };
    {
        const testing::With fault("NCCL", "1:next:fail");
        sum_on_both();
        CHECK(causes[1] == Cause::system);
        CHECK(causes[0] == Cause::timeout); // nobody tells it
    }
    {
        const testing::With fault("NCCL", "1:next:hang");
        sum_on_both();
        CHECK(causes[1] == Cause::timeout);
        CHECK(causes[0] == Cause::timeout);
    }
    {
        const testing::With fault("NCCL", "1:next:async");
        sum_on_both();
        CHECK(causes[1] == Cause::peer);
    }
}

TEST_CASE("failures of exchanges and gathers have a cause", "[stand-in]") {
    if (!on_stand_in()) return;
    using Cause = CommunicatorError::Cause;
    for (const auto& [fault, expected] :
         {std::pair("1:next:fail", Cause::system), std::pair("1:next:hang", Cause::timeout),
          std::pair("1:next:async", Cause::peer)}) {
        for (const bool gathers : {false, true}) {
            INFO(fault << (gathers ? " gather" : " exchange"));
            const testing::With with("NCCL", fault);
            std::optional<Cause> cause;
            on_ranks(2, [&](int rank, auto communicator, auto& on) {
                settle(*communicator);
                const OnAccelerator<float> from(on, std::vector<float>(4));
                const OnAccelerator<float> to(on, std::vector<float>(8));
                auto& stream = on.communication_stream();
                std::optional<Cause> mine;
                try {
                    if (gathers)
                        communicator->gather(from.data(), to.data(), 16, stream);
                    else
                        communicator->exchange(from.data(), to.data(), 8, stream);
                    mine = outcome(*communicator, stream, std::chrono::milliseconds(200));
                } catch (const CommunicatorError& error) {
                    mine = error.cause();
                }
                if (rank == 1) cause = mine;
                communicator->abort();
                testing::wait_for(stream);
            });
            CHECK(cause == expected);
        }
    }
}

TEST_CASE("a send that fails ends its group: its thread goes on with other communicators", "[stand-in]") {
    if (!on_stand_in()) return;
    std::atomic<int> failed{0};
    std::atomic<int> wrong{0};
    const auto devices = devices_for(2);
    const auto first = testing::runtime_or_skip().make_id();
    const auto second = testing::runtime_or_skip().make_id();
    std::vector<std::thread> threads;
    const testing::With fault("NCCL", "1:next:send");
    for (int rank = 0; rank < 2; ++rank)
        threads.emplace_back([&, rank] {
            auto& on = *devices[static_cast<std::size_t>(rank)];
            auto& stream = on.communication_stream();
            const OnAccelerator<float> numbers(on, std::vector<float>{1.0F, 2.0F});
            const OnAccelerator<float> received(on, 2);
            auto communicator = on.make_communicator(first, 2, rank, "test");
            settle(*communicator);
            if (rank == 1) {
                try {
                    communicator->exchange(numbers.data(), received.data(), sizeof(float), stream);
                } catch (const CommunicatorError& error) {
                    failed += error.cause() == CommunicatorError::Cause::system ? 1 : 0;
                }
            }
            communicator->abort();
            communicator = on.make_communicator(second, 2, rank, "test");
            settle(*communicator);
            communicator->sum(numbers.data(), 2, base::DType::float32, stream);
            settle(*communicator);
            wrong += numbers.values() == std::vector<float>{2.0F, 4.0F} ? 0 : 1;
            close(*communicator);
        });
    for (auto& thread : threads) thread.join();
    CHECK(failed == 1);
    CHECK(wrong == 0);
}

TEST_CASE("a thousand communicators leave nothing behind", "[device]") {
    const int rounds = on_stand_in() ? 1000 : 20;
    const auto round = [](bool abort) {
        on_ranks(2, [&](int, auto communicator, auto& on) {
            settle(*communicator);
            const OnAccelerator<float> numbers(on, std::vector<float>(4));
            communicator->sum(numbers.data(), 4, base::DType::float32, on.communication_stream());
            settle(*communicator);
            testing::wait_for(on.communication_stream());
            abort ? communicator->abort() : close(*communicator);
        });
    };
    for (int i = 0; i < 20; ++i) round(i % 2 == 0);
    const auto before = testing::process_entries();
    for (int i = 0; i < rounds; ++i) round(i % 2 == 0);
    const auto after = testing::process_entries();
    CHECK(after.files <= before.files + 2);
    CHECK(after.threads <= before.threads + 2);
    CHECK(after.mappings <= before.mappings + 20);
}

} // namespace nccl_test
