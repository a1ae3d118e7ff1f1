// SPDX-License-Identifier: Apache-2.0
#include "launch/overdue.hpp"

#include "support/catch.hpp"

namespace overdue_test {

using namespace ranktune;
using namespace ranktune::launch;
using namespace std::chrono_literals;
using launch::Overdue;

namespace {

std::optional<storage::LeaseHolder> lease(const std::string& nonce, std::uint64_t counter) {
    storage::LeaseHolder holder;
    holder.nonce = nonce;
    holder.counter = counter;
    return holder;
}

/// The number of the first reading that reports overdue, of `readings` with the same lease; 0: none.
int says_so(Overdue& overdue, const std::optional<storage::LeaseHolder>& now, int readings) {
    for (int n = 1; n <= readings; ++n)
        if (overdue.next({true, now, false, {}})) return n;
    return 0;
}

} // namespace

TEST_CASE("A launcher is overdue when the lease was released for the whole wait", "[launch]") {
    Overdue overdue(30s, std::nullopt);
    CHECK(says_so(overdue, std::nullopt, 1000) == 0); // Slurm has not started it yet
    CHECK_FALSE(overdue.next({true, lease("a", 1), false, {}}));
    CHECK(says_so(overdue, std::nullopt, 5) == 0);
    CHECK_FALSE(overdue.next({true, lease("b", 1), false, {}})); // `ranktune run` twice in one script
    CHECK(says_so(overdue, std::nullopt, 5) == 0);
    CHECK_FALSE(overdue.next({false, {}, false, {}})); // the file system is not visible
    CHECK(says_so(overdue, std::nullopt, 10) == 6);
}

TEST_CASE("A launcher is overdue when its head stopped renewing the lease", "[launch]") {
    Overdue overdue(90s, lease("earlier", 7));
    CHECK(says_so(overdue, lease("earlier", 7), 1000) == 0); // left by a head that was killed before this step
    for (std::uint64_t n = 0; n < 100; ++n) CHECK_FALSE(overdue.next({true, lease("a", n), false, {}}));
    CHECK(says_so(overdue, lease("a", 99), 17) == 0);
    CHECK_FALSE(overdue.next({true, lease("a", 100), false, {}})); // it was slow, but lives
    CHECK(says_so(overdue, lease("a", 100), 100) == 18);

    Overdue impatient(1s, std::nullopt);
    CHECK(says_so(impatient, lease("a", 1), 100) == 1 + storage::lease_periods + 1); // never before the lease is stale
    CHECK(says_so(impatient, std::nullopt, 100) == 1);
}

TEST_CASE("A launcher is not overdue while its head waits for a disk", "[launch]") {
    Overdue overdue(90s, std::nullopt);
    const auto with = [&](bool head_lives) {
        return overdue.next({.lease = lease("a", 1), .children = {}, .head_lives = head_lives});
    };
    for (int n = 0; n < 1000; ++n) CHECK_FALSE(with(true));
    for (int n = 0; n < 17; ++n) CHECK_FALSE(with(false));
    CHECK(with(false));
}

TEST_CASE("A head that came and went between two readings has left its outcome", "[launch]") {
    Overdue overdue(10s, std::nullopt);
    CHECK_FALSE(overdue.next({}));
    CHECK(overdue.next({true, {}, true, {}}));
}

TEST_CASE("A launcher that outlives ranks may not return: it gets less time after the head has ended", "[launch]") {
    Overdue overdue(90s, std::nullopt, {}, 5s);
    CHECK_FALSE(overdue.next({true, lease("a", 1), false, {}}));
    CHECK(says_so(overdue, std::nullopt, 10) == 0); // no outcome: it may be between two starts of a script
    Overdue ended(90s, std::nullopt, {}, 5s);
    CHECK_FALSE(ended.next({true, lease("a", 1), true, {}})); // it writes its outcome before it releases the lease
    CHECK(ended.next({true, std::nullopt, true, {}}));
}

TEST_CASE("A launcher is overdue when all its children are gone, whether or not there was a head", "[launch]") {
    Overdue overdue(20s, std::nullopt);
    const auto with = [&](std::optional<bool> children) { return overdue.next({false, {}, false, children}); };
    for (int n = 0; n < 100; ++n) CHECK_FALSE(with(false)); // it has not started anything yet
    CHECK_FALSE(with(true));
    for (int n = 0; n < 3; ++n) CHECK_FALSE(with(false));
    CHECK_FALSE(with(std::nullopt)); // unknown
    for (int n = 0; n < 3; ++n) CHECK_FALSE(with(false));
    CHECK(with(false));
}

TEST_CASE("A launcher that never starts anything is overdue after its start limit", "[launch]") {
    Overdue overdue(20s, std::nullopt, 60s);
    const auto with = [&](std::optional<bool> children) { return overdue.next({false, {}, false, children}); };
    for (int n = 0; n < 11; ++n) CHECK_FALSE(with(false));
    CHECK(with(false));
}

TEST_CASE("A launcher without a limit is never overdue", "[launch]") {
    Overdue overdue(0s, std::nullopt);
    CHECK_FALSE(overdue.next({true, lease("a", 1), false, {}}));
    CHECK(says_so(overdue, std::nullopt, 10'000) == 0);
}

} // namespace overdue_test
