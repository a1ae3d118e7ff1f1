// SPDX-License-Identifier: Apache-2.0
#include "simulate/cluster/deterministic.hpp"

#include <set>

#include "support/catch.hpp"

namespace deterministic_test {

using namespace ranktune::simulate;

TEST_CASE(
    "A deterministic study admits the same sequence for every number of ranks, delay, death and kill, and whatever "
    "cannot "
    "be read",
    "[sim]") {
    std::uint64_t lost = 0;
    std::uint64_t killed = 0;
    std::uint64_t held = 0;
    std::uint64_t lives = 0;
    std::uint64_t unreadable = 0;
    std::uint64_t unreachable = 0;
    std::set<std::uint64_t> digests;
    constexpr std::uint64_t cases = 500;
    for (std::uint64_t seed = 0; seed < cases; ++seed) {
        const DeterministicResult result = run_deterministic_case(draw_deterministic_spec(seed), seed, 3);
        INFO("seed " << seed << ": " << result.description);
        for (const std::string& problem : result.problems) UNSCOPED_INFO(problem);
        CHECK(result.problems.empty());
        lost += result.ranks_lost;
        killed += result.heads_killed;
        held += result.held;
        lives += result.lives;
        unreadable += result.unreadable;
        unreachable += result.unreachable;
        digests.insert(result.digest);
    }
    // Otherwise the cases have too few faults to test anything.
    CHECK(lost > 200);
    CHECK(killed > 50);
    CHECK(held > 1000);
    CHECK(lives > 4 * cases);
    CHECK(unreadable > 200);
    CHECK(unreachable > 200);
    CHECK(digests.size() > cases * 9 / 10);
}

TEST_CASE("In a deterministic population everybody takes over the same, whatever happens", "[sim][pbt]") {
    std::uint64_t lost = 0;
    std::uint64_t killed = 0;
    std::uint64_t takeovers = 0;
    for (std::uint64_t seed = 0; seed < 150; ++seed) {
        const DeterministicResult result = run_deterministic_case(draw_deterministic_population(seed), seed, 3);
        INFO("seed " << seed << ": " << result.description);
        for (const std::string& problem : result.problems) UNSCOPED_INFO(problem);
        CHECK(result.problems.empty());
        lost += result.ranks_lost;
        killed += result.heads_killed;
        takeovers += result.takeovers;
    }
    CHECK(lost > 60);
    CHECK(killed > 15);
    CHECK(takeovers > 1000);
}

TEST_CASE("Side tasks change nothing that a deterministic study decides", "[sim]") {
    std::uint64_t prepared = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        ranktune::study::StudySpec spec = draw_deterministic_spec(seed);
        const DeterministicResult without = run_deterministic_case(spec, seed, 1);
        spec.before.command = seed % 2 == 0 ? "prepare" : "";
        spec.after_trial.command = seed % 3 == 0 ? "evaluate" : "evaluate {checkpoint}";
        spec.after.command = "plot";
        const DeterministicResult with = run_deterministic_case(spec, seed, 2);
        INFO("seed " << seed << ": " << with.description);
        for (const std::string& problem : with.problems) UNSCOPED_INFO(problem);
        CHECK(with.problems.empty());
        if (with.admitted == 0 && without.admitted > 0) continue; // it could not be prepared
        ++prepared;
        CHECK(with.digest == without.digest);
        CHECK(with.attempts > without.attempts);
    }
    CHECK(prepared > 40);
}

} // namespace deterministic_test
