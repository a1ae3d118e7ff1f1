// SPDX-License-Identifier: Apache-2.0
// Where a group goes: one NUMA domain, one host, one switch, and only then anywhere.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ranktune/base/rng.hpp"
#include "support/catch.hpp"
#include "tuner/values/ledger.hpp"

namespace ledger_test {

using namespace ranktune;
using study::Rank;
using study::RankInfo;
using tuner::Ledger;

namespace {

/// Workers 1, 2, ... as a list of {host, domain, switches}.
struct Place {
    std::string host;
    std::uint32_t domain = 0;
    std::string switches = {};
};
std::vector<RankInfo> workers(const std::vector<std::pair<Place, std::uint32_t>>& parts) {
    std::vector<RankInfo> infos;
    for (const auto& [place, count] : parts)
        for (std::uint32_t i = 0; i < count; ++i) {
            const Rank rank(static_cast<std::uint32_t>(infos.size()) + 1);
            infos.push_back({rank, place.host, 0, place.domain, place.switches});
        }
    return infos;
}

Ledger ledger_of(const std::vector<RankInfo>& infos, const std::vector<std::uint32_t>& taken = {}) {
    Ledger ledger;
    ledger.reset(infos);
    for (const std::uint32_t rank : taken) ledger.take(Rank(rank));
    return ledger;
}

std::vector<std::uint32_t> planned(const Ledger& ledger, std::uint32_t size, std::uint32_t largest = 9) {
    std::vector<std::uint32_t> ranks;
    for (const Rank rank : ledger.plan(size, largest)) ranks.push_back(rank.value());
    return ranks;
}
using Ranks = std::vector<std::uint32_t>;

} // namespace

TEST_CASE("a group goes to the host that it fills most tightly, and to the lowest ranks there", "[tuner]") {
    const auto infos = workers({{{"n1"}, 4}, {{"n2"}, 4}});
    CHECK(planned(ledger_of(infos), 2) == Ranks{1, 2});
    CHECK(planned(ledger_of(infos, {5, 6}), 2) == Ranks{7, 8});
    CHECK(planned(ledger_of(infos, {1, 5, 6}), 3) == Ranks{2, 3, 4});
    CHECK(planned(ledger_of(infos, {1}), 5) == Ranks{2, 5, 6, 7, 8}); // the fullest host whole, then the other
    CHECK(planned(ledger_of(infos, {1, 2, 3}), 6).empty());
}

TEST_CASE("a group stays inside one NUMA domain where one has room", "[tuner]") {
    const auto infos = workers({{{"n1", 0}, 2}, {{"n1", 1}, 3}, {{"n2", 0}, 3}, {{"n2", 1}, 2}});
    CHECK(planned(ledger_of(infos), 2) == Ranks{1, 2});
    CHECK(planned(ledger_of(infos), 3) == Ranks{3, 4, 5});
    CHECK(planned(ledger_of(infos, {1}), 2) == Ranks{9, 10}); // not 2 and 3, which are of different domains
    CHECK(planned(ledger_of(infos), 4) == Ranks{1, 3, 4, 5}); // no domain has 4: one host, cut into few parts
    CHECK(planned(ledger_of(infos, {3}), 5) == Ranks{6, 7, 8, 9, 10});
    CHECK(planned(ledger_of(infos), 6) == Ranks{1, 2, 3, 4, 5, 6}); // n1 whole, and the largest part of n2
}

TEST_CASE("a group of several hosts stays below one switch where one has room", "[tuner]") {
    const auto infos = workers({{{"n1", 0, "s0.s1"}, 2},
                                {{"n2", 0, "s0.s2"}, 2},
                                {{"n3", 0, "s0.s1"}, 2},
                                {{"n4", 0, "s0.s2"}, 2},
                                {{"n5", 0, "s9.s3"}, 2}});
    CHECK(planned(ledger_of(infos), 3) == Ranks{1, 2, 5});
    CHECK(planned(ledger_of(infos, {1}), 4) == Ranks{3, 4, 7, 8});           // s1 has only 3
    CHECK(planned(ledger_of(infos, {1}), 3) == Ranks{2, 5, 6});              // and is filled most tightly by them
    CHECK(planned(ledger_of(infos), 5) == Ranks{1, 2, 3, 5, 6});             // below s0, not with n5
    CHECK(planned(ledger_of(infos), 9) == Ranks{1, 2, 3, 4, 5, 6, 7, 8, 9}); // the whole job
}

TEST_CASE("switches with the same name below others are different ones", "[tuner]") {
    const auto infos = workers({{{"n1", 0, "a.s"}, 2}, {{"n2", 0, "b.s"}, 2}, {{"n3", 0, "b.s"}, 2}});
    CHECK(planned(ledger_of(infos), 3) == Ranks{3, 4, 5});
}

TEST_CASE("ranks without switches are placed by host name", "[tuner]") {
    const auto infos = workers({{{"", 0}, 3}});
    CHECK(planned(ledger_of(infos), 2) == Ranks{1, 2});
    CHECK(planned(ledger_of(infos), 4).empty());
}

TEST_CASE("a group begins at a multiple of its size where such a block is free", "[tuner]") {
    const auto infos = workers({{{"n1"}, 8}});
    CHECK(planned(ledger_of(infos, {1}), 2) == Ranks{3, 4});
    CHECK(planned(ledger_of(infos, {1}), 4) == Ranks{5, 6, 7, 8});
    CHECK(planned(ledger_of(infos, {2, 5}), 4) == Ranks{1, 3, 4, 6}); // none is free: the lowest
    CHECK(planned(ledger_of(infos, {1}), 3) == Ranks{4, 5, 6});
    CHECK(planned(ledger_of(infos, {1, 5}), 3) == Ranks{2, 3, 4});
    CHECK(planned(ledger_of(infos), 8) == Ranks{1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("small groups leave larger blocks whole", "[tuner]") {
    const auto infos = workers({{{"n1"}, 8}});
    CHECK(planned(ledger_of(infos, {1, 2}), 2) == Ranks{3, 4});    // not 5 and 6, of a block of four
    CHECK(planned(ledger_of(infos, {1, 2, 5}), 2) == Ranks{3, 4}); // the lowest of equals
    CHECK(planned(ledger_of(infos, {1, 2, 5}), 1) == Ranks{6});    // the pair 3, 4 stays whole
    CHECK(planned(ledger_of(infos, {1, 2, 5}), 1, 1) == Ranks{3}); // nobody needs it
    CHECK(planned(ledger_of(infos, {6}), 1) == Ranks{5});
    CHECK(planned(ledger_of(workers({{{"n1"}, 3}})), 1) == Ranks{1}); // no rank 4: its place counts as free
    CHECK(planned(ledger_of(workers({{{"n1"}, 3}}), {1}), 1) == Ranks{2});
    CHECK(planned(ledger_of(workers({{{"n1"}, 6}}), {1, 2}), 2) == Ranks{3, 4});
}

TEST_CASE("groups of one size always meet in the same ranks", "[tuner]") {
    base::RngStream random(7, base::Purpose::augment);
    for (const std::uint32_t size : {2U, 4U}) {
        Ledger ledger = ledger_of(workers({{{"n1"}, 8}, {{"n2"}, 8}}));
        std::vector<std::vector<Rank>> running;
        std::set<std::vector<Rank>> seen;
        for (int step = 0; step < 1000; ++step) {
            if (const auto ranks = ledger.plan(size, size); !ranks.empty()) {
                for (const Rank rank : ranks) ledger.take(rank);
                running.push_back(ranks);
                seen.insert(ranks);
            } else {
                const auto at = static_cast<std::size_t>(random.uniform() * static_cast<double>(running.size()));
                for (const Rank rank : running[at]) ledger.release(rank);
                running.erase(running.begin() + static_cast<std::ptrdiff_t>(at));
            }
        }
        CHECK(seen.size() == 16 / size); // as many communicators as fit beside each other
    }
}

TEST_CASE("plans do not depend on the order in which ranks became free", "[tuner]") {
    std::vector<std::pair<Place, std::uint32_t>> parts;
    for (std::uint32_t host = 0; host < 12; ++host)
        for (std::uint32_t domain = 0; domain < 1 + host % 3; ++domain)
            parts.push_back({{"n" + std::to_string(host), domain, "s." + std::to_string(host / 4)}, 1 + host % 4});
    const auto infos = workers(parts);
    base::RngStream random(5, base::Purpose::augment);
    Ledger walked = ledger_of(infos);
    std::vector<std::vector<Rank>> running;
    for (int step = 0; step < 2000; ++step) {
        if (random.uniform() < 0.5 || running.empty()) {
            const auto ranks = walked.plan(1 + static_cast<std::uint32_t>(random.uniform() * 9), 9);
            for (const Rank rank : ranks) walked.take(rank);
            if (!ranks.empty()) running.push_back(ranks);
        } else {
            const auto at = static_cast<std::size_t>(random.uniform() * static_cast<double>(running.size()));
            for (const Rank rank : running[at]) walked.release(rank);
            running.erase(running.begin() + static_cast<std::ptrdiff_t>(at));
        }
        Ranks taken;
        for (const auto& ranks : running)
            for (const Rank rank : ranks) taken.push_back(rank.value());
        const Ledger fresh = ledger_of(infos, taken);
        REQUIRE(walked.free() == fresh.free());
        for (const std::uint32_t size : {1U, 2U, 3U, 5U, 8U, 13U})
            REQUIRE(walked.plan(size, 13) == fresh.plan(size, 13));
    }
}

} // namespace ledger_test
