// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <thread>

#include "comm/transport/mpi_transport.hpp"
#include "ddp/collective/mpi_collective.hpp"
#include "mpi_world.hpp"
#include "support/catch.hpp"

namespace threads_test {

using namespace ranktune;

namespace {

const std::atomic<bool> never{false};
constexpr std::uint32_t beats = 300;

std::uint32_t value_of(const comm::Packet& message) {
    std::uint32_t value = 0;
    if (message.bytes.size() == sizeof value) std::memcpy(&value, message.bytes.data(), sizeof value);
    return value;
}

/// The loop of a service thread: rank 0 answers every number with its successor, the others count up to `beats`.
/// Returns the number of wrong messages.
std::uint32_t serve(comm::Transport& transport) {
    const auto send = [&](base::Rank to, std::uint32_t value) {
        transport.send(to, std::as_bytes(std::span(&value, 1)));
    };
    std::uint32_t wrong = 0;
    const bool head = transport.rank() == base::head_rank;
    std::uint32_t left = head ? beats * (transport.size() - 1) : beats;
    std::uint32_t expected = 1;
    if (!head) send(base::head_rank, 0);
    while (left > 0 || !transport.flushed()) {
        const auto message = transport.poll();
        if (!message) {
            std::this_thread::sleep_for(std::chrono::microseconds(100));
            continue;
        }
        --left;
        const auto value = value_of(*message);
        if (head) {
            send(message->from, value + 1);
        } else {
            wrong += value == expected ? 0 : 1;
            if (left > 0) send(base::head_rank, value);
            ++expected;
        }
    }
    return wrong;
}

} // namespace

TEST_CASE("a service thread talks to the head while the trial thread forms groups and reduces", "[comm][ddp][mpi]") {
    const auto transport = comm::make_mpi_transport(test::world());
    comm::GroupFactory factory(test::world(), 1);
    const auto roster = test::roster_of(test::world().rank(), test::world().size());
    std::uint32_t wrong = 1;
    std::thread service([&] { wrong = serve(*transport); });
    bool sums_are_right = true;
    struct : ddp::OpenStep {
        void fail() noexcept override {}
    } step;
    for (std::uint64_t trial = 1; trial <= 100; ++trial) {
        const auto collective = ddp::form_mpi_collective(factory, roster, trial, never);
        std::vector<float> bucket(trial % 10 == 0 ? 100'000 : 100, 1.0F);
        collective->begin_step(collective->announce({base::DType::float32, {bucket.size()}}), step);
        const auto pending = collective->start_sum(bucket);
        while (!pending->test()) std::this_thread::yield();
        collective->end_step();
        sums_are_right = sums_are_right && bucket.back() == static_cast<float>(roster.size());
    }
    service.join();
    CHECK(wrong == 0);
    CHECK(sums_are_right);
}

} // namespace threads_test
