// SPDX-License-Identifier: Apache-2.0
// The contract of groups with their users, over MPI with all ranks of the launch.
#include <algorithm>
#include <atomic>

#include "comm/kept.hpp"
#include "ddp/collective/mpi_collective.hpp"
#include "group_contract.hpp"
#include "mpi_world.hpp"
#include "support/catch.hpp"

namespace group_test {

using namespace ranktune;
using test::Complaints;

namespace {

const std::atomic<bool> never{false};

/// Forms the group of all ranks, any number of times on the same communicator.
struct Former {
    Former() : factory(test::world()) {
        for (int rank = 0; rank < test::world().size(); ++rank) ranks.emplace_back(static_cast<std::uint32_t>(rank));
    }
    std::unique_ptr<ddp::Collective> operator()() { return ddp::form_mpi_collective(factory, ranks, ++ticket, never); }
    comm::GroupFactory factory;
    std::vector<base::Rank> ranks;
    std::uint64_t ticket = 0;
};

} // namespace

TEST_CASE("groups over MPI keep the contract with their users", "[ddp][mpi]") {
    Former form;
    const auto group = form();
    CHECK(test::reduction_contract(*group) == Complaints{});
    CHECK(test::copy_contract(*group) == Complaints{});
    CHECK(test::message_contract(*group) == Complaints{});
    CHECK(test::refusal_contract(*group) == Complaints{});
    CHECK(test::disagreement_contract(*group) == Complaints{});
    CHECK(test::gradient_contract(*group) == Complaints{});
    CHECK(form.factory.counts().lost == 0);
}

TEST_CASE("a rank that waits for a message over MPI hears of a failure", "[ddp][mpi]") {
    Former form;
    CHECK(test::message_failure_contract([&] { return form(); }) == Complaints{});
    CHECK(test::second_failure_contract([&] { return form(); }) == Complaints{});
    CHECK(form.factory.counts().lost == 0);
}

TEST_CASE("messages of one trial over MPI are none of the next on the same communicator", "[ddp][mpi]") {
    Former form;
    CHECK(test::remains_contract([&] { return form(); }) == Complaints{});
    CHECK(form.factory.counts().lost == 0);
    CHECK(form.factory.counts().made <= 1);
}

// Needs 13 GB with 2 ranks: run it by hand, as `mpirun -n 2 test_mpi_group '[.large]'`.
TEST_CASE("operations on more than 2^31 bytes", "[.large]") {
    Former form;
    const auto group = form();
    const std::size_t count = (std::size_t{1} << 31U) + 5;
    const auto filled = [](std::uint8_t with, std::size_t size) { return std::vector<std::uint8_t>(size, with); };
    const auto me = static_cast<std::uint8_t>(group->rank());
    const auto is = [](std::span<const std::uint8_t> values, std::uint8_t what) {
        return std::ranges::all_of(values, [what](std::uint8_t value) { return value == what; });
    };
    {
        auto values = filled(me, count);
        group->broadcast(values, group->size() - 1);
        CHECK(is(values, static_cast<std::uint8_t>(group->size() - 1)));
    }
    {
        group->send(filled(me, count), (group->rank() + 1) % group->size());
        auto values = filled(99, count);
        const int from = (group->rank() + group->size() - 1) % group->size();
        group->receive(values, from);
        CHECK(is(values, static_cast<std::uint8_t>(from)));
    }
    {
        const auto mine = filled(me, count / 2);
        auto all = filled(99, mine.size() * static_cast<std::size_t>(group->size()));
        group->all_gather(mine, all);
        for (std::size_t r = 0; r < static_cast<std::size_t>(group->size()); ++r)
            CHECK(is(std::span(all).subspan(r * mine.size(), mine.size()), static_cast<std::uint8_t>(r)));
    }
    {
        std::vector<float> values((std::size_t{1} << 29U) + 3, 1.0F);
        group->all_reduce(values);
        CHECK(std::ranges::all_of(values, [&](float v) { return v == static_cast<float>(group->size()); }));
    }
}

} // namespace group_test
