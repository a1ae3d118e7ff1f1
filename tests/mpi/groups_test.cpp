// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "comm/groups/worker_group.hpp"
#include "mpi_world.hpp"
#include "support/catch.hpp"

namespace groups_test {

using namespace ranktune;
using namespace ranktune::comm;
using test::Roster;

namespace {

const std::atomic<bool> never{false};
const std::atomic<bool> always{true};

Roster my_roster() { return test::roster_of(test::world().rank(), test::world().size()); }

/// Sum of the world ranks of the members, by a reduction over the group.
int sum_of_ranks(const WorkerGroup& group) {
    int sum = test::world().rank();
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, group.communicator());
    return sum;
}

int expected_sum(const Roster& roster) {
    int sum = 0;
    for (const auto rank : roster) sum += static_cast<int>(rank.value());
    return sum;
}

} // namespace

TEST_CASE("groups of uneven sizes form at the same time, without the other ranks", "[comm][mpi]") {
    GroupFactory factory(test::world());
    const auto roster = my_roster();
    const auto group = factory.form(roster, 1, never);
    CHECK(group->size() == static_cast<int>(roster.size()));
    CHECK(roster[static_cast<std::size_t>(group->rank())].value() == static_cast<std::uint32_t>(test::world().rank()));
    CHECK(sum_of_ranks(*group) == expected_sum(roster));
}

TEST_CASE("the order of the roster is the order of the group", "[comm][mpi]") {
    GroupFactory factory(test::world());
    auto roster = my_roster();
    std::reverse(roster.begin(), roster.end());
    const auto group = factory.form(roster, 1, never);
    int rank = -1;
    MPI_Comm_rank(group->communicator(), &rank);
    CHECK(rank == group->rank());
    CHECK(roster[static_cast<std::size_t>(rank)].value() == static_cast<std::uint32_t>(test::world().rank()));
}

TEST_CASE("a roster that comes back finds its communicator", "[comm][mpi]") {
    GroupFactory factory(test::world());
    const auto roster = my_roster();
    for (std::uint64_t ticket = 1; ticket <= 10; ++ticket) {
        CHECK(sum_of_ranks(*factory.form(roster, ticket, never)) == expected_sum(roster));
    }
    const bool alone = roster.size() == 1;
    CHECK(factory.counts().made == (alone ? 0 : 1));
    CHECK(factory.counts().reused == (alone ? 0 : 9));
    CHECK(factory.counts().kept == (alone ? 0 : 1));
}

TEST_CASE("one rank without room is enough for a communicator to be freed after use", "[comm][mpi]") {
    const auto roster = my_roster();
    const bool last = roster.back().value() == static_cast<std::uint32_t>(test::world().rank());
    GroupFactory factory(test::world(), last ? 0 : 8);
    const auto before = mpi::Communicator::live();
    std::set<MPI_Fint> handles;
    // Creating a communicator blocks, which is slow when more ranks than cores wait without yielding.
    const std::uint64_t cycles = test::world().size() <= 2 ? 10'000 : 500;
    for (std::uint64_t ticket = 1; ticket <= cycles; ++ticket) {
        const auto group = factory.form(roster, ticket, never);
        if (roster.size() > 1) handles.insert(MPI_Comm_c2f(group->communicator()));
    }
    CHECK(mpi::Communicator::live() == before);
    CHECK(factory.counts().kept == 0);
    CHECK(factory.counts().made == (roster.size() > 1 ? cycles : 0));
    CHECK(handles.size() <= 8); // the library reuses its handles, too
}

TEST_CASE("a poisoned group is never used again by any of its ranks, and its successor works", "[comm][mpi]") {
    GroupFactory factory(test::world());
    const auto roster = my_roster();
    for (std::uint64_t round = 0; round < roster.size(); ++round) {
        const auto before = factory.counts();
        {
            const auto group = factory.form(roster, 2 * round + 1, never);
            if (group->rank() == static_cast<int>(round)) group->poison();
        }
        const auto group = factory.form(roster, 2 * round + 2, never);
        CHECK(sum_of_ranks(*group) == expected_sum(roster));
        if (roster.size() > 1) {
            CHECK(factory.counts().lost == before.lost + 1);
            CHECK(factory.counts().kept == 1);
        }
    }
}

TEST_CASE("when one rank is told to give up while a group forms, all of its ranks agree on what happens",
          "[comm][mpi]") {
    for (const std::size_t keep : {std::size_t{0}, std::size_t{8}}) {
        GroupFactory factory(test::world(), keep);
        const auto roster = my_roster();
        std::uint64_t ticket = 0;
        for (std::size_t round = 0; round < 50; ++round) {
            const bool gives_up = roster.size() > 1 && roster[round % roster.size()].value() ==
                                                           static_cast<std::uint32_t>(test::world().rank());
            int formed = 1;
            try {
                // If the group formed, use it: that would hang if only some ranks had it.
                const auto group = factory.form(roster, ++ticket, gives_up ? always : never);
                CHECK(sum_of_ranks(*group) == expected_sum(roster));
            } catch (const FormationAborted&) {
                formed = 0;
            }
            // Messages of the failed formation do not disturb the next one.
            const auto group = factory.form(roster, ++ticket, never);
            int least = formed;
            int most = formed;
            MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, group->communicator());
            MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT, MPI_MAX, group->communicator());
            CHECK(least == most);
            if (round % roster.size() == 0 && roster.size() > 1) CHECK(most == 0); // the leader aborted
        }
    }
}

TEST_CASE("ranks may move from group to group", "[comm][mpi]") {
    GroupFactory factory(test::world(), 2);
    const auto size = static_cast<std::uint32_t>(test::world().size());
    const auto me = static_cast<std::uint32_t>(test::world().rank());
    // Pairs (0,1)(2,3).., then (1,2)(3,4).., then everybody: more rosters per rank than the factory keeps.
    for (std::uint64_t round = 0; round < 60; ++round) {
        const std::uint32_t phase = round % 3;
        Roster roster;
        if (phase == 2) {
            for (std::uint32_t rank = 0; rank < size; ++rank) roster.push_back(base::Rank{rank});
        } else {
            const std::uint32_t first = me < phase ? me : me - (me - phase) % 2;
            for (auto rank = first; rank < std::min(size, me < phase ? me + 1 : first + 2); ++rank) {
                roster.push_back(base::Rank{rank});
            }
        }
        CHECK(sum_of_ranks(*factory.form(roster, round + 1, never)) == expected_sum(roster));
        CHECK(factory.counts().kept <= 2);
    }
}

} // namespace groups_test
