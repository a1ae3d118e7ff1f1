// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/bell.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <utility>
#include <vector>

#include "process/wake.hpp"
#include "support/catch.hpp"

namespace ranktune::testing::bell_test {

using namespace std::chrono_literals;

TEST_CASE("a bell ends the nap of the rank that it is rung for, once", "[comm]") {
    const auto own = static_cast<std::uint64_t>(::getpid());
    const comm::Bell bell({0, own, own});
    REQUIRE(bell.fd() >= 0);
    process::Waker waker;
    CHECK_FALSE(waker.nap(1us, -1, bell.fd()));
    bell.ring(base::Rank{1});
    bell.ring(base::Rank{2});
    CHECK(waker.nap(1h, -1, bell.fd()));
    CHECK_FALSE(waker.nap(1us, -1, bell.fd()));                // both were read
    for (int i = 0; i < 10'000; ++i) bell.ring(base::Rank{1}); // more than anything holds: none of them waits
    CHECK(waker.nap(1h, -1, bell.fd()));
    CHECK_FALSE(waker.nap(1us, -1, bell.fd()));
}

TEST_CASE("a bell that nobody hears is none", "[comm]") {
    const comm::Bell bell({0, 1, 0});
    bell.ring(base::Rank{2}); // another node's
    bell.ring(base::Rank{1}); // a process that listens to none
    bell.ring(base::Rank{7}); // unknown
    const comm::Bell second({});
    CHECK(second.fd() < 0); // one for each process
    process::Waker waker;
    CHECK_FALSE(waker.nap(1us, -1, second.fd()));
    waker.wake();
    CHECK(waker.nap(1h, -1, bell.fd()));
}

namespace {

/// Keeps what is sent, and has at most one message.
class OneMessage final : public comm::Transport {
  public:
    std::vector<base::Rank> sent;
    std::optional<comm::Packet> arrived;
    bool under_way = false;
    [[nodiscard]] base::Rank rank() const override { return base::Rank{0}; }
    [[nodiscard]] std::uint32_t size() const override { return 3; }
    void send(base::Rank to, std::span<const std::byte>) override { sent.push_back(to); }
    [[nodiscard]] std::optional<comm::Packet> poll() override { return std::exchange(arrived, std::nullopt); }
    [[nodiscard]] bool flushed() override { return true; }
    [[nodiscard]] bool is_quiet() override { return !under_way; }
};

} // namespace

TEST_CASE("messages one after the other ring once, at the next call that is none", "[comm]") {
    const auto own = static_cast<std::uint64_t>(::getpid());
    const comm::Bell bell({0, own, 0});
    REQUIRE(bell.fd() >= 0);
    process::Waker waker;
    OneMessage wire;
    comm::RingingTransport ringing(wire, bell);
    ringing.send(base::Rank{1}, {});
    ringing.send(base::Rank{1}, {});
    CHECK(wire.sent.size() == 2);
    CHECK_FALSE(waker.nap(1us, -1, bell.fd()));
    static_cast<void>(ringing.poll());
    char ring[2];
    CHECK(::recv(bell.fd(), ring, sizeof ring, MSG_DONTWAIT) == 1);
    CHECK(::recv(bell.fd(), ring, sizeof ring, MSG_DONTWAIT) < 0);
    ringing.send(base::Rank{1}, {});
    CHECK(ringing.is_quiet());
    CHECK(waker.nap(1h, -1, bell.fd()));
}

TEST_CASE("a rank is quiet while nothing can come but by the bell", "[comm]") {
    const auto own = static_cast<std::uint64_t>(::getpid());
    const comm::Bell bell({0, own, 0});
    OneMessage wire;
    comm::RingingTransport ringing(wire, bell);
    CHECK(ringing.is_quiet());
    wire.arrived = comm::Packet{base::Rank{1}, {}};
    CHECK(ringing.poll());
    CHECK_FALSE(ringing.is_quiet()); // whether it rings is not known before it is rung for
    ringing.send(base::Rank{1}, {});
    CHECK(ringing.is_quiet());
    wire.under_way = true; // a large message needs to be polled for
    CHECK_FALSE(ringing.is_quiet());
    wire.under_way = false;
    ringing.send(base::Rank{2}, {}); // on another node
    CHECK_FALSE(ringing.is_quiet());
}

} // namespace ranktune::testing::bell_test
