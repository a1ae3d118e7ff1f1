// SPDX-License-Identifier: Apache-2.0
// The ranks of an incarnation: which trials hold them, which are free, which are out of service. (Where a group goes:
// ledger_test.)

#include <optional>
#include <string>
#include <vector>

#include "ranktune/base/rng.hpp"
#include "tuner/values.hpp"
#include "tuner/values/placement.hpp"

namespace ranktune::tuner::placement_test {
namespace {

using testing::broken;
using testing::contradiction;
using testing::ranks;
using testing::workers_on;

/// Ranks 1 and 2 on a, 3 on b, 4 and 5 on a again.
Placement five_ranks() {
    Placement placement;
    placement.begin(workers_on({"a", "a", "b", "a", "a"}));
    return placement;
}

study::Bytes snapshot_of(const Placement& placement) { return testing::written(placement); }

Placement restored(const study::Bytes& bytes) {
    Placement placement;
    testing::read_back(bytes, placement);
    return placement;
}

} // namespace

TEST_CASE("Hosts are numbered by their first ranks, and every rank begins free", "[tuner]") {
    const Placement placement = five_ranks();
    REQUIRE(placement.hosts().size() == 2);
    CHECK(placement.hosts()[0].name == "a");
    CHECK(placement.hosts()[1].name == "b");
    REQUIRE(placement.workers().size() == 5);
    CHECK(placement.worker(Rank{3}).host == 1);
    CHECK(placement.worker(Rank{4}).host == 0);
    CHECK(placement.worker(Rank{4}).info.rank == Rank{4});
    CHECK_FALSE(placement.worker(Rank{1}).trial);
    CHECK(placement.free() == 5);
    CHECK(placement.alive() == 5);
}

TEST_CASE("A GPU is taken out of service alone, with all its ranks", "[tuner]") {
    Placement placement;
    placement.begin(testing::workers_with({{"a", "g0"}, {"a", "g0"}, {"a", "g1"}, {"b", "g0"}, {"b", ""}}));
    REQUIRE(placement.devices().size() == 3); // "g0" of b is another one
    CHECK(placement.worker(Rank{2}).device == 0);
    CHECK(placement.worker(Rank{4}).device == 2);
    CHECK(placement.worker(Rank{5}).device == no_device);
    CHECK(placement.has_neighbour(0));
    CHECK(placement.has_neighbour(2)); // a rank without a GPU
    CHECK(placement.ranks_beside_device(0) == 3);
    placement.take(TrialId{0}, ranks({1, 3}));
    CHECK(placement.retire_device("a", "g0") == 0);
    CHECK(placement.alive() == 3);
    CHECK(placement.free() == 2);
    CHECK_FALSE(placement.are_free(ranks({2})));
    placement.check_invariants();
    placement.release(TrialId{0}, ranks({1, 3})); // rank 1 does not come back
    CHECK(placement.free() == 3);
    CHECK_FALSE(placement.serves(placement.worker(Rank{1})));
    (void)placement.lose({Rank{2}, {}, "gone"}); // out of service already
    CHECK(placement.alive() == 3);
    placement.check_invariants();
    const Placement again = restored(snapshot_of(placement));
    CHECK(snapshot_of(again) == snapshot_of(placement));
    CHECK(again.free() == 3);
    again.check_invariants();
    CHECK(contradiction([&] { (void)placement.retire_device("a", "g0"); }) == "GPU g0 is taken out of service");
    CHECK(contradiction([&] { (void)placement.retire_device("b", "g1"); }) == "GPU g1 is taken out of service");
    CHECK(placement.retire("a") == 0); // the host, with what is left of it
    CHECK(placement.alive() == 2);
    placement.check_invariants();
}

TEST_CASE("Workers with and without a GPU are kept apart where a study says so", "[tuner]") {
    using study::WorkerKind;
    const auto workers = testing::workers_with({{"a", "g0"}, {"a", ""}, {"a", "g1"}, {"b", ""}, {"b", ""}});
    Placement placement;
    placement.keep_kinds_apart();
    placement.begin(workers);
    CHECK(placement.free() == 5);
    CHECK(placement.free(WorkerKind::with_gpu) == 2);
    CHECK(placement.free(WorkerKind::without_gpu) == 3);
    CHECK(placement.plan(2, 2, WorkerKind::with_gpu) == ranks({1, 3}));
    CHECK(placement.plan(2, 2, WorkerKind::without_gpu) == ranks({4, 5})); // of one host
    CHECK(placement.plan(3, 3, WorkerKind::with_gpu).empty());
    placement.take(TrialId{0}, ranks({1}));
    placement.take(TrialId{1}, ranks({4, 5}));
    CHECK(placement.plan(1, 2, WorkerKind::without_gpu) == ranks({2}));
    CHECK(placement.free(WorkerKind::with_gpu) == 1);
    CHECK(placement.lose({Rank{4}, {}, "gone"}) == TrialId{1});
    CHECK(placement.alive(WorkerKind::without_gpu) == 2);
    CHECK(placement.alive(WorkerKind::with_gpu) == 2);
    CHECK(placement.ranks_beside(0, WorkerKind::with_gpu) == 0);
    CHECK(placement.ranks_beside(0, WorkerKind::without_gpu) == 1);
    CHECK(placement.ranks_beside_device(0, WorkerKind::with_gpu) == 1);
    placement.check_invariants();
    Placement again;
    again.keep_kinds_apart();
    testing::read_back(snapshot_of(placement), again);
    again.check_invariants();
    CHECK(again.free(WorkerKind::with_gpu) == 1);
    CHECK(again.free(WorkerKind::without_gpu) == 1);
    placement.release(TrialId{1}, ranks({4, 5}));
    placement.release(TrialId{0}, ranks({1}));
    CHECK(placement.free(WorkerKind::without_gpu) == 2);
    CHECK(placement.free(WorkerKind::with_gpu) == 2);
    CHECK(placement.retire_device("a", "g1") == 1);
    CHECK(placement.alive(WorkerKind::with_gpu) == 1);
    placement.check_invariants();
}

TEST_CASE("The GPU of an attempt is that of the rank that failed, or of all its ranks", "[tuner]") {
    Placement placement;
    placement.begin(testing::workers_with({{"a", "g0"}, {"a", "g0"}, {"a", "g1"}, {"a", ""}}));
    const auto of = [&](const std::vector<std::uint32_t>& on, std::optional<std::uint32_t> failing = {}) {
        return placement.device_of(ranks(on), failing);
    };
    CHECK(of({1, 2}) == 0U);
    CHECK(of({2, 3}) == std::nullopt);
    CHECK(of({2, 3}, 1) == 1U);
    CHECK(of({4}) == std::nullopt);
    CHECK(of({3, 4}, 1) == std::nullopt);
    CHECK(of({3}, 7) == 1U); // a rank that the group does not have: as if none was named
}

TEST_CASE("A new incarnation forgets the ranks of the previous one", "[tuner]") {
    Placement placement = five_ranks();
    placement.take(TrialId{0}, ranks({1}));
    (void)placement.lose({Rank{2}, {}, "gone"});
    (void)placement.retire("b");
    placement.begin(workers_on({"b", "a"}));
    CHECK(placement.hosts()[0].name == "b");
    CHECK_FALSE(placement.hosts()[0].retired);
    CHECK_FALSE(placement.knows(Rank{3}));
    CHECK(placement.free() == 2);
    CHECK(placement.alive() == 2);
    placement.check_invariants();
}

TEST_CASE("Workers are ranks 1, 2, 3 and so on; rank 0 is the head", "[tuner]") {
    Placement placement = five_ranks();
    CHECK_FALSE(placement.knows(Rank{0}));
    CHECK(placement.knows(Rank{1}));
    CHECK(placement.knows(Rank{5}));
    CHECK_FALSE(placement.knows(Rank{6}));
    const std::string said = "worker ranks are not 1, 2, 3, ...";
    CHECK(contradiction([&] { placement.begin({{Rank{0}, "a", 0}}); }) == said);
    CHECK(contradiction([&] { placement.begin({{Rank{1}, "a", 0}, {Rank{3}, "a", 0}}); }) == said);
}

TEST_CASE("Ranks are taken by a trial and come back from it", "[tuner]") {
    Placement placement = five_ranks();
    placement.take(TrialId{7}, ranks({1, 2}));
    CHECK(placement.worker(Rank{1}).trial == TrialId{7});
    CHECK(placement.free() == 3);
    CHECK(placement.alive() == 5);
    CHECK(placement.plan(3, 3) == ranks({3, 4, 5}));
    CHECK(placement.plan(4, 4).empty());
    placement.release(TrialId{7}, ranks({1, 2}));
    CHECK_FALSE(placement.worker(Rank{2}).trial);
    CHECK(placement.free() == 5);
    placement.check_invariants();
}

TEST_CASE("A rank that is not free, or not there, cannot be given away", "[tuner]") {
    Placement placement = five_ranks();
    placement.take(TrialId{0}, ranks({2}));
    CHECK(contradiction([&] { placement.take(TrialId{1}, ranks({2})); }) == "rank 2 is given away but not free");
    CHECK(contradiction([&] { placement.take(TrialId{1}, ranks({6})); }) == "rank 6 is given away but not free");
    CHECK(contradiction([&] { placement.take(TrialId{1}, ranks({0})); }) == "rank 0 is given away but not free");
    (void)placement.lose({Rank{1}, {}, "gone"});
    CHECK(contradiction([&] { placement.take(TrialId{1}, ranks({1})); }) == "rank 1 is given away but not free");
    (void)placement.retire("b");
    CHECK(contradiction([&] { placement.take(TrialId{1}, ranks({3})); }) == "rank 3 is given away but not free");
}

TEST_CASE("A trial releases only the ranks that it still holds", "[tuner]") {
    Placement placement = five_ranks();
    placement.take(TrialId{0}, ranks({1, 2}));
    placement.take(TrialId{1}, ranks({3}));
    CHECK(placement.lose({Rank{1}, {}, "gone"}) == TrialId{0});
    placement.release(TrialId{0}, ranks({1, 2, 3})); // 1 is dead, 3 is another trial's
    CHECK(placement.worker(Rank{3}).trial == TrialId{1});
    CHECK(placement.free() == 3); // 2, 4, 5
    CHECK(placement.plan(3, 3) == ranks({2, 4, 5}));
    placement.release(TrialId{0}, ranks({2})); // once more
    CHECK(placement.free() == 3);
    placement.check_invariants();
}

TEST_CASE("A rank can be lost once, and its holder is returned", "[tuner]") {
    Placement placement = five_ranks();
    placement.take(TrialId{4}, ranks({4, 5}));
    CHECK(placement.lose({Rank{4}, {}, "gone"}) == TrialId{4});
    CHECK_FALSE(placement.worker(Rank{4}).trial);
    CHECK_FALSE(placement.worker(Rank{4}).alive);
    CHECK_FALSE(placement.lose({Rank{1}, {}, "gone"}));
    CHECK(placement.alive() == 3);
    CHECK(placement.free() == 2);
    CHECK(placement.living(ranks({1, 2, 4, 5})) == ranks({2, 5}));
    CHECK(contradiction([&] { (void)placement.lose({Rank{4}, {}, "gone"}); }) == "rank 4 is lost twice");
    CHECK(contradiction([&] { (void)placement.lose({Rank{0}, {}, "gone"}); }) == "an unknown rank is lost");
    CHECK(contradiction([&] { (void)placement.lose({Rank{6}, {}, "gone"}); }) == "an unknown rank is lost");
    placement.check_invariants();
}

TEST_CASE("A retired host gets no more trials, and its current ones may end", "[tuner]") {
    Placement placement = five_ranks();
    placement.take(TrialId{0}, ranks({1}));
    CHECK(placement.retire("a") == 0);
    CHECK(placement.hosts()[0].retired);
    CHECK(placement.worker(Rank{1}).trial == TrialId{0});
    CHECK_FALSE(placement.serves(placement.worker(Rank{1})));
    CHECK(placement.serves(placement.worker(Rank{3})));
    CHECK(placement.alive() == 1); // rank 3
    CHECK(placement.free() == 1);
    placement.release(TrialId{0}, ranks({1}));
    CHECK_FALSE(placement.worker(Rank{1}).trial);
    CHECK(placement.free() == 1);
    CHECK_FALSE(placement.lose({Rank{2}, {}, "gone"})); // dies, too
    CHECK(placement.alive() == 1);
    CHECK(contradiction([&] { (void)placement.retire("a"); }) == "host a is taken out of service");
    CHECK(contradiction([&] { (void)placement.retire("c"); }) == "host c is taken out of service");
    placement.check_invariants();
}

TEST_CASE("Ranks lie on one host or on several, and others lie beside it", "[tuner]") {
    Placement placement = five_ranks();
    CHECK(placement.only_host_of(ranks({3})) == 1U);
    CHECK(placement.only_host_of(ranks({1, 4, 5})) == 0U);
    CHECK_FALSE(placement.only_host_of(ranks({2, 3})));
    CHECK(placement.ranks_beside(0) == 1);
    CHECK(placement.ranks_beside(1) == 4);
    placement.take(TrialId{0}, ranks({1})); // in service, although taken
    (void)placement.lose({Rank{2}, {}, "gone"});
    CHECK(placement.ranks_beside(1) == 3);
    (void)placement.retire("a");
    CHECK(placement.ranks_beside(1) == 0);
}

TEST_CASE("Placement comes back from its snapshot with the same free ranks", "[tuner]") {
    Placement placement = five_ranks();
    placement.take(TrialId{2}, ranks({1, 4}));
    (void)placement.lose({Rank{4}, {}, "gone"});
    (void)placement.lose({Rank{5}, {}, "gone"});
    (void)placement.retire("b");
    const study::Bytes bytes = snapshot_of(placement);
    Placement again = restored(bytes);
    CHECK(snapshot_of(again) == bytes);
    CHECK(again.free() == 1);
    CHECK(again.alive() == 2);
    CHECK(again.plan(1, 1) == ranks({2}));
    CHECK(again.hosts()[1].retired);
    CHECK(broken(again).empty());
    again.release(TrialId{2}, ranks({1, 4}));
    CHECK(again.plan(2, 2) == ranks({1, 2}));
}

TEST_CASE("After random changes the counts equal those of a plain list, before and after a snapshot", "[tuner]") {
    const std::vector<std::string> hosts = {"a", "a", "b", "b", "b", "c", "d", "d"};
    for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
        base::RngStream random(seed, base::Purpose::fault);
        Placement placement;
        placement.begin(workers_on(hosts));
        std::vector<std::optional<TrialId>> holder(hosts.size());
        std::vector<bool> alive(hosts.size(), true);
        std::vector<std::string> retired;
        const auto serves = [&](std::size_t i) {
            return alive[i] && std::find(retired.begin(), retired.end(), hosts[i]) == retired.end();
        };
        for (int step = 0; step < 300; ++step) {
            const auto i = static_cast<std::size_t>(random.below(hosts.size()));
            const Rank rank{static_cast<std::uint32_t>(i + 1)};
            const std::uint64_t what = random.below(100);
            if (what < 60 && serves(i) && !holder[i]) {
                holder[i] = TrialId{static_cast<std::uint32_t>(step)};
                placement.take(*holder[i], std::span(&rank, 1));
            } else if (what < 95 && holder[i]) {
                placement.release(*holder[i], std::span(&rank, 1));
                holder[i].reset();
            } else if (what < 97 && alive[i]) {
                CHECK(placement.lose({rank, {}, "gone"}) == holder[i]);
                alive[i] = false;
                holder[i].reset();
            } else if (what == 99 && retired.size() < 2 && serves(i)) {
                (void)placement.retire(hosts[i]);
                retired.push_back(hosts[i]);
            }
            std::uint32_t in_service = 0;
            std::uint32_t free = 0;
            for (std::size_t k = 0; k < hosts.size(); ++k) {
                in_service += serves(k) ? 1 : 0;
                free += serves(k) && !holder[k] ? 1 : 0;
            }
            REQUIRE(placement.alive() == in_service);
            REQUIRE(placement.free() == free);
            REQUIRE(broken(placement).empty());
            const Placement again = restored(snapshot_of(placement));
            REQUIRE(again.free() == free);
            REQUIRE(again.alive() == in_service);
            for (const std::uint32_t size : {1U, 2U, 3U, 5U})
                REQUIRE(again.plan(size, size) == placement.plan(size, size));
        }
    }
}

TEST_CASE("spares get no trial until others are lost, and take their places one by one", "[tuner]") {
    Placement placement;
    placement.begin(workers_on({"a", "a", "b", "b"}), 2);
    CHECK(placement.alive() == 2);
    CHECK(placement.plan(2, 2) == std::vector<Rank>{Rank{1}, Rank{2}});
    CHECK(placement.plan(3, 3).empty());
    placement.take(TrialId{7}, ranks({1, 2}));
    CHECK(placement.lose({Rank{2}, {}, "gone"}) == TrialId{7});
    CHECK(placement.alive() == 2);
    CHECK(placement.plan(1, 1) == std::vector<Rank>{Rank{3}});
    CHECK_FALSE(placement.lose({Rank{4}, {}, "gone"})); // a spare itself
    CHECK(placement.alive() == 2);
    CHECK_FALSE(placement.lose({Rank{3}, {}, "gone"})); // none is left
    CHECK(placement.alive() == 1);
    placement.check_invariants();
}

TEST_CASE("A side task holds its rank beside trials, and helpers are for side tasks alone", "[tuner]") {
    Placement placement;
    placement.begin(workers_on({"a", "a", "b", "b"}), 1, 1); // rank 4 is the spare
    CHECK(placement.worker(Rank{3}).helper);
    CHECK(placement.alive() == 2);
    const TrialId unit = unit_of({study::SideTask::Kind::before, {}});
    CHECK(placement.place_aside() == Rank{3});
    placement.take_aside(unit, Rank{3});
    CHECK(placement.free() == 2);
    CHECK(placement.place_aside() == Rank{2});
    placement.take_aside(TrialId{unit.value() - 1}, Rank{2});
    CHECK(placement.free() == 1);
    CHECK_FALSE(placement.are_free(ranks({2})));
    placement.take(TrialId{0}, ranks({1}));
    CHECK_FALSE(placement.place_aside());
    CHECK(contradiction([&] { placement.take_aside(unit, Rank{1}); }) == "rank 1 is given to a side task but not free");
    placement.check_invariants();
    const Placement again = restored(snapshot_of(placement));
    CHECK(snapshot_of(again) == snapshot_of(placement));
    again.check_invariants();
    // A helper that dies is replaced by no spare; a rank out of service does not come back.
    CHECK_FALSE(placement.lose({Rank{3}, {}, "gone"}));
    placement.release_aside(Rank{3});
    CHECK(placement.worker(Rank{4}).spare);
    (void)placement.retire("a");
    placement.release_aside(Rank{2});
    placement.release(TrialId{0}, ranks({1}));
    CHECK(placement.free() == 0);
    CHECK_FALSE(placement.place_aside());
    placement.check_invariants();
}

} // namespace ranktune::tuner::placement_test
