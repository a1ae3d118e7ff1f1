// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include "ranktune/base/error.hpp"
#include "ranktune/testing/run_trial.hpp"
#include "support/catch.hpp"
#include "trainables/mlp_examples.hpp"

namespace mlp_test {

using namespace ranktune;
using testing::diabetes;
using testing::digits;
using testing::mlp;
using testing::run_trial;
using testing::TrialOptions;
using testing::TrialRun;

namespace {

TrialOptions options(std::vector<std::pair<std::string, space::Value>> entries, base::Iteration epochs = 1,
                     int ranks = 1) {
    TrialOptions result;
    result.configuration = space::Configuration(std::move(entries));
    result.max_iterations = epochs;
    result.ranks = ranks;
    return result;
}

/// Every random stream, the optimiser's moments and counters, and a learning rate that depends on the epoch.
TrialOptions whole_mlp(base::Iteration epochs, int ranks) {
    return options({{"data", digits},
                    {"hidden", space::Value::List{32, 16}},
                    {"dropout", 0.2},
                    {"batch_size", 50},
                    {"optimizer", "adamw"},
                    {"lr", 0.01},
                    {"weight_decay", 0.01},
                    {"lr_schedule", "cosine"}},
                   epochs, ranks);
}

} // namespace

TEST_CASE("mlp learns the digits on two ranks", "[trainables]") {
    const TrialRun run =
        run_trial(mlp(), options({{"data", digits}, {"lr", 0.1}, {"hidden", space::Value::List{64}}}, 8, 2));
    CHECK(run.failure.empty());
    CHECK(run.last("val_accuracy") >= 0.95);
    CHECK(run.last("train_loss") <= 0.1);
    CHECK(run.last("val_loss") > 0.0);
    CHECK(run.unread.empty());
}

TEST_CASE("mlp recognises a regression task by its targets", "[trainables]") {
    const TrialRun run = run_trial(mlp(), options({{"data", diabetes},
                                                   {"lr", 0.01},
                                                   {"hidden", space::Value::List{32}},
                                                   {"activation", "tanh"},
                                                   {"weight_decay", 0.01}},
                                                  20));
    CHECK(run.last("val_r2") > 0.3);
    CHECK(run.last("val_rmse") < 70.0);
}

TEST_CASE("mlp gives its matrix library the cores of the rank", "[trainables]") {
    auto* const threads = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_num_threads"));
    if (threads == nullptr) {
        WARN("not shown: only OpenBLAS is asked how many threads it has");
        return;
    }
    for (const int cpus : {2, 1}) {
        TrialOptions some = options({{"data", digits}});
        some.cpus_per_rank = cpus;
        static_cast<void>(run_trial(mlp(), some));
        CHECK(threads() == cpus);
    }
}

TEST_CASE("mlp resumes bitwise equally from a saved state, on 1, 2 and 3 ranks", "[trainables]") {
    for (const int ranks : {1, 2, 3}) CHECK(testing::resume_difference(mlp(), whole_mlp(4, ranks), 2).empty());
}

TEST_CASE("mlp resumed on another number of ranks trains the same", "[trainables]") {
    const TrialRun whole = run_trial(mlp(), whole_mlp(4, 1));
    for (const int before : {1, 2, 3}) {
        TrialOptions first = whole_mlp(4, before);
        first.pause_after = 2;
        const TrialRun paused = run_trial(mlp(), first);
        for (const int after : {1, 2, 3}) {
            TrialOptions second = whole_mlp(4, after);
            second.from = paused.checkpoint();
            const TrialRun resumed = run_trial(mlp(), second);
            REQUIRE(resumed.failure.empty());
            CHECK(resumed.reports.front().iteration == 3);
            // The sums over the ranks are rounded in another order; the samples, the masks and the rates are the same.
            CHECK(resumed.last("train_loss") == Approx(whole.last("train_loss")).epsilon(1e-3));
            CHECK(resumed.last("val_loss") == Approx(whole.last("val_loss")).epsilon(1e-3));
        }
    }
}

TEST_CASE("the size of mlp's state is known before it runs", "[trainables]") {
    for (const std::string optimizer : {"sgd", "adam"}) {
        for (const auto& data : {digits, diabetes}) {
            const TrialOptions some =
                options({{"data", data}, {"hidden", space::Value::List{24, 7}}, {"optimizer", optimizer}});
            const std::uint64_t saved = run_trial(mlp(), some).checkpoint().state.bytes();
            CHECK(trainables::state_bytes("mlp", some.configuration) == saved - 5 * sizeof(std::uint64_t));
        }
    }
    CHECK(!trainables::state_bytes("somebody's", {}));
}

TEST_CASE("mlp names the option when it refuses a value", "[trainables]") {
    const auto message_of = [&](std::vector<std::pair<std::string, space::Value>> entries) {
        return run_trial(mlp(), options(std::move(entries))).failure;
    };
    CHECK(message_of({}).starts_with("rank 0: mlp.data"));
    CHECK(message_of({{"data", "/nowhere.h5"}}).find("/nowhere.h5") != std::string::npos);
    CHECK(message_of({{"data", digits}, {"optimizer", "adm"}}).starts_with("rank 0: mlp.optimizer"));
    CHECK(message_of({{"data", digits}, {"dropout", 1.0}}).starts_with("rank 0: mlp.dropout"));
    CHECK(message_of({{"data", digits}, {"hidden", space::Value::List{0}}}).starts_with("rank 0: mlp.hidden"));
    CHECK(message_of({{"data", digits}, {"batch_size", 0}}).starts_with("rank 0: mlp.batch_size"));
}

} // namespace mlp_test
