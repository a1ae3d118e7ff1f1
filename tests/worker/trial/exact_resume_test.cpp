// SPDX-License-Identifier: Apache-2.0
// A trial resumed from a checkpoint file equals one that never stopped: the built-in mlp. (Without files, on more
// numbers of ranks: tests/trainables/mlp_test.cpp.)

#include "storage/file_system.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "worker/checkpoints/store_io.hpp"
#include "worker/trial/trial_cluster.hpp"

namespace ranktune::testing {

using namespace ranktune::worker;
namespace {

const std::string digits = RANKTUNE_JOBS "/digits/digits.h5";

/// Uses every random stream, the optimiser's moments and counters, and a learning rate that depends on the epoch.
space::Configuration configuration() {
    return space::Configuration({{"data", digits},
                                 {"hidden", space::Value::List{32, 16}},
                                 {"dropout", 0.2},
                                 {"batch_size", 50},
                                 {"optimizer", "adamw"},
                                 {"lr", 0.01},
                                 {"weight_decay", 0.01},
                                 {"lr_schedule", "cosine"}});
}

struct Trial {
    explicit Trial(const std::string& directory)
        : store(storage::posix_file_system(), directory),
          cluster(3, trainables::find_trainable("mlp"), nullptr, &store) {
        cluster.configuration = configuration();
        cluster.spec().checkpoint.interval = study::CheckpointSpec::Interval::none;
        cluster.spec().max_iterations = 10;
    }
    /// Trains up to `iteration` and returns rank 0's log.
    RankLog train(int ranks, base::Iteration iteration, study::StartFrom from = study::Fresh{}) {
        cluster.prepare(ranks, iteration, std::move(from));
        return cluster.run_until(iteration)[0];
    }
    StoreIo store;
    TrialCluster cluster;
};

bool same_bytes(const study::MemoryState& a, const study::MemoryState& b) {
    const auto tensors = [](const auto& x, const auto& y) { return x.info == y.info && x.bytes == y.bytes; };
    const auto blobs = [](const auto& x, const auto& y) { return x.name == y.name && x.bytes == y.bytes; };
    return std::ranges::equal(a.stored_tensors(), b.stored_tensors(), tensors) &&
           std::ranges::equal(a.stored_blobs(), b.stored_blobs(), blobs);
}

} // namespace

TEST_CASE("mlp resumed from a file is bit for bit the mlp that was never interrupted", "[trial]") {
    const ranktune::testing::TemporaryDirectory home;
    Trial trial(home.path());
    for (const int ranks : {1, 3}) {
        const RankLog whole = trial.train(ranks, 4);
        const RankLog first = trial.train(ranks, 2);
        const RankLog second = trial.train(ranks, 4, first.saved.back());
        REQUIRE(whole.saved.size() == 1);
        REQUIRE(second.saved.size() == 1);
        CHECK(second.reports.front().iteration == 3);
        CHECK(same_bytes(trial.store.load(whole.saved[0], {}), trial.store.load(second.saved[0], {})));
        CHECK(second.reports.back().metrics == whole.reports.back().metrics);

        // From a checkpoint that was written during training.
        trial.cluster.spec().checkpoint.interval = study::CheckpointSpec::Interval::iterations;
        trial.cluster.spec().checkpoint.iterations = 1;
        const RankLog along = trial.train(ranks, 3);
        trial.cluster.spec().checkpoint.interval = study::CheckpointSpec::Interval::none;
        REQUIRE(along.saved.size() >= 2);
        const RankLog third = trial.train(ranks, 4, along.saved.front());
        CHECK(same_bytes(trial.store.load(whole.saved[0], {}), trial.store.load(third.saved[0], {})));
    }
}

} // namespace ranktune::testing
