// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/bell.hpp"

#include <unistd.h>

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

} // namespace ranktune::testing::bell_test
