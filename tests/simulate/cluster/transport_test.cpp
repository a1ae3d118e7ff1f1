// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <thread>

#include "comm/transport_contract.hpp"
#include "simulate/transport/fault.hpp"
#include "simulate/transport/loopback.hpp"
#include "support/catch.hpp"

namespace transport_test {

using namespace ranktune;
using namespace ranktune::comm;
using namespace ranktune::simulate;

namespace {

std::vector<std::byte> bytes_of(std::uint32_t value) {
    std::vector<std::byte> bytes(4);
    std::memcpy(bytes.data(), &value, 4);
    return bytes;
}

std::uint32_t value_of(const comm::Packet& message) {
    std::uint32_t value = 0;
    REQUIRE(message.bytes.size() == 4);
    std::memcpy(&value, message.bytes.data(), 4);
    return value;
}

/// One thread per rank; `make` builds the endpoint under test around the wire.
std::vector<std::string> contract_in_threads(
    std::uint32_t size, const std::function<std::unique_ptr<Transport>(std::unique_ptr<Transport>)>& make) {
    LoopbackHub hub(size);
    std::vector<std::vector<std::string>> complaints(size);
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
        threads.emplace_back([&, rank] {
            const auto endpoint = make(hub.endpoint(base::Rank{rank}));
            complaints[rank] = test::transport_contract(*endpoint, [] { std::this_thread::yield(); });
        });
    }
    for (auto& thread : threads) thread.join();
    std::vector<std::string> all;
    for (const auto& list : complaints) all.insert(all.end(), list.begin(), list.end());
    return all;
}

base::StudyTime at(std::int64_t us) { return base::from_ns(us * 1000); }

/// Two ranks in one thread: rank 1 sends through faults, rank 0 receives.
struct FaultyLink {
    explicit FaultyLink(const FaultPlan& plan)
        : sender(hub.endpoint(base::Rank{1}), plan), receiver(hub.endpoint(base::Rank{0})) {}

    std::vector<std::uint32_t> receive_all() {
        std::vector<std::uint32_t> values;
        while (const auto message = receiver->poll()) values.push_back(value_of(*message));
        return values;
    }

    LoopbackHub hub{2};
    FaultTransport sender;
    std::unique_ptr<Transport> receiver;
};

std::vector<std::uint32_t> numbers(std::uint32_t count) {
    std::vector<std::uint32_t> values(count);
    for (std::uint32_t i = 0; i < count; ++i) values[i] = i;
    return values;
}

FaultPlan stormy(std::uint64_t seed) {
    FaultPlan plan;
    plan.seed = seed;
    plan.min_delay = std::chrono::microseconds(1);
    plan.max_delay = std::chrono::microseconds(50);
    plan.drop = 0.1;
    return plan;
}

} // namespace

TEST_CASE("the loopback transport fulfils the contract on 1, 2, 3 and 7 threads", "[comm]") {
    for (const std::uint32_t size : {1U, 2U, 3U, 7U}) {
        CHECK(contract_in_threads(size, [](auto wire) { return wire; }) == std::vector<std::string>{});
    }
}

TEST_CASE("the loopback transport carries hundreds of ranks in one thread", "[comm]") {
    constexpr std::uint32_t size = 600;
    LoopbackHub hub(size);
    std::vector<std::unique_ptr<Transport>> endpoints;
    for (std::uint32_t rank = 0; rank < size; ++rank) endpoints.push_back(hub.endpoint(base::Rank{rank}));
    for (std::uint32_t rank = 1; rank < size; ++rank) endpoints[rank]->send(base::head_rank, bytes_of(rank));
    CHECK(hub.in_flight() == size - 1);
    std::uint64_t sum = 0;
    while (const auto message = endpoints[0]->poll()) {
        CHECK(value_of(*message) == message->from.value());
        sum += message->from.value();
    }
    CHECK(sum == std::uint64_t{size} * (size - 1) / 2);
}

TEST_CASE("the fault transport without faults passes messages on at once", "[comm]") {
    FaultyLink link(FaultPlan{});
    for (const auto i : numbers(3)) link.sender.send(base::head_rank, bytes_of(i));
    CHECK(link.receive_all() == numbers(3));
    CHECK(link.sender.flushed());
}

TEST_CASE("delayed messages arrive by the caller's clock, in order", "[comm]") {
    FaultPlan plan;
    plan.min_delay = std::chrono::microseconds(10);
    plan.max_delay = std::chrono::microseconds(20);
    FaultyLink link(plan);
    for (const auto i : numbers(50)) link.sender.send(base::head_rank, bytes_of(i));
    link.sender.advance(at(9));
    CHECK(link.receive_all().empty());
    CHECK_FALSE(link.sender.flushed());
    REQUIRE(link.sender.next_due());
    CHECK(*link.sender.next_due() >= at(10));
    link.sender.advance(at(20));
    CHECK(link.receive_all() == numbers(50));
    CHECK(link.sender.flushed());
    CHECK_FALSE(link.sender.next_due());
}

TEST_CASE("faults are the same for the same seed and others for another", "[comm]") {
    const auto run = [](std::uint64_t seed) {
        FaultyLink link(stormy(seed));
        for (const auto i : numbers(200)) link.sender.send(base::head_rank, bytes_of(i));
        link.sender.advance(at(1000));
        return link.receive_all();
    };
    CHECK(run(1) == run(1));
    CHECK(run(1) != run(2));
}

TEST_CASE("the faults of a link do not depend on other links", "[comm]") {
    const auto run = [](bool chatter) {
        LoopbackHub hub(3);
        FaultTransport sender(hub.endpoint(base::Rank{2}), stormy(5));
        const auto receiver = hub.endpoint(base::head_rank);
        for (const auto i : numbers(100)) {
            if (chatter) sender.send(base::Rank{1}, bytes_of(i));
            sender.send(base::head_rank, bytes_of(i));
        }
        sender.advance(at(1000));
        std::vector<std::uint32_t> values;
        while (const auto message = receiver->poll()) values.push_back(value_of(*message));
        return values;
    };
    CHECK(run(false) == run(true));
}

TEST_CASE("the fault transport drops as planned, and the others arrive in order", "[comm]") {
    FaultyLink link(stormy(7));
    constexpr std::uint32_t count = 2000;
    for (const auto i : numbers(count)) link.sender.send(base::head_rank, bytes_of(i));
    link.sender.advance(at(1000));
    const auto values = link.receive_all();
    const auto& counts = link.sender.counts();
    CHECK(counts.sent == count);
    CHECK(values.size() == count - counts.dropped);
    CHECK(static_cast<double>(counts.dropped) == Approx(200).margin(60));
    CHECK(std::is_sorted(values.begin(), values.end()));
}

TEST_CASE("a rank that dies sends nothing later than its death and receives nothing", "[comm]") {
    FaultPlan plan;
    plan.min_delay = plan.max_delay = std::chrono::microseconds(10);
    plan.death = at(15);
    FaultyLink link(plan);
    link.sender.send(base::head_rank, bytes_of(0)); // due at 10: before the death
    link.sender.advance(at(8));
    link.sender.send(base::head_rank, bytes_of(1)); // due at 18: lost
    link.receiver->send(base::Rank{1}, bytes_of(9));
    link.sender.advance(at(40)); // one step past both times
    CHECK(link.sender.dead());
    link.sender.send(base::head_rank, bytes_of(2));
    link.sender.advance(at(80));
    CHECK(link.receive_all() == numbers(1));
    CHECK_FALSE(link.sender.poll());
}

} // namespace transport_test
