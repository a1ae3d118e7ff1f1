// SPDX-License-Identifier: Apache-2.0
// The mlp over MPI on all ranks of the launch, compared with one rank in the same process.

#include <atomic>

#include "comm/groups/group_factory.hpp"
#include "ddp/collective/mpi_collective.hpp"
#include "mpi_world.hpp"
#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"
#include "support/catch.hpp"
#include "trainables/blas.hpp"
#include "trainer_fixture.hpp"

namespace ddp_test {

using namespace ranktune;
using namespace ranktune::testing;
using trainables::mlp::Trainer;
using trainables::mlp::TrainerOptions;

namespace {

/// All ranks of the world as one trial.
struct World {
    World() : factory(test::world()) {
        for (int rank = 0; rank < test::world().size(); ++rank) ranks.emplace_back(static_cast<std::uint32_t>(rank));
        trainables::blas::use_threads(1);
    }
    std::unique_ptr<ddp::Collective> group() { return ddp::form_mpi_collective(factory, ranks, ++ticket, abort); }

    comm::GroupFactory factory;
    std::vector<base::Rank> ranks;
    std::uint64_t ticket = 0;
    std::atomic<bool> abort{false};
};

std::vector<float> train(ddp::Group& group, const TrainerOptions& options) {
    Trainer trainer(made_up_dataset(250, true), options, group);
    for (int epoch = 0; epoch < 5; ++epoch) static_cast<void>(trainer.train_epoch());
    return parameters(trainer);
}

} // namespace

TEST_CASE("50 steps over MPI give the parameters of one rank, dropout on, and the same bits again", "[mpi][ddp]") {
    World world;
    const auto group = world.group();
    const auto alone = ddp::make_self_group();
    const std::vector<float> one = train(*alone, trainer_options());
    const std::vector<float> all = train(*group, trainer_options());
    CHECK(relative_difference(one, all) < 2e-4);
    CHECK(train(*group, trainer_options()) == all);
    base::Digest digest;
    digest.add(std::as_bytes(std::span(all)));
    const auto [low, high] = group->min_max(digest.value());
    CHECK(low == high);
}

TEST_CASE("shards that are empty take part over MPI", "[mpi][ddp]") {
    World world;
    const auto group = world.group();
    const auto alone = ddp::make_self_group();
    TrainerOptions options = trainer_options();
    options.batch = 2;
    CHECK(relative_difference(train(*alone, options), train(*group, options)) < 2e-3);
}

TEST_CASE("a rank that fails within a step leaves a group that trains the next trial", "[mpi][ddp]") {
    World world;
    for (int failing = 0; failing < test::world().size(); ++failing) {
        const auto group = world.group();
        auto dataset = std::make_shared<data::Dataset>(*made_up_dataset(250, true));
        // The first batch has 25 samples; this rank's shard starts with a NaN in the first epoch's order.
        std::vector<std::uint32_t> order;
        const TrainerOptions options = trainer_options();
        data::shuffle_epoch(order, 250, options.seed, options.trial, 0);
        const data::Range mine = data::shard({0, 25}, failing, group->size());
        dataset->train.x[order[mine.begin] * 8] = std::nanf("");
        Trainer trainer(dataset, options, *group);
        std::string thrown;
        try {
            static_cast<void>(trainer.train_epoch());
        } catch (const ddp::PeerFailed&) {
            thrown = "PeerFailed";
        } catch (const base::Error& error) {
            thrown = error.what();
        }
        CHECK(thrown == (group->rank() == failing ? "loss is NaN at iteration 1" : "PeerFailed"));
        // The communicator is clean: the next trial can use it.
        const std::vector<float> first = train(*group, options);
        CHECK(train(*group, options) == first);
    }
    CHECK(world.factory.counts().lost == 0);
}

TEST_CASE("a rank that fails between steps is replaced by zeros in the next one", "[mpi][ddp]") {
    World world;
    const auto group = world.group();
    const int failing = group->size() - 1;
    Trainer trainer(made_up_dataset(250, true), trainer_options(), *group);
    static_cast<void>(trainer.train_epoch());
    std::string thrown;
    if (group->rank() == failing && group->size() > 1) {
        group->fail();
    } else {
        try {
            static_cast<void>(trainer.train_epoch());
        } catch (const ddp::PeerFailed&) {
            thrown = "PeerFailed";
        }
        CHECK(thrown == (group->size() > 1 ? "PeerFailed" : ""));
    }
    const std::vector<float> first = train(*group, trainer_options());
    CHECK_FALSE(first.empty());
}

} // namespace ddp_test
