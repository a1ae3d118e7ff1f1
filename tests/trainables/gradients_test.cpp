// SPDX-License-Identifier: Apache-2.0
// How mlp's gradients travel: accumulation, clipping, compression, metrics.

#include <cmath>

#include "ranktune/testing/run_trial.hpp"
#include "ranktune/trainables/gradient_options.hpp"
#include "support/catch.hpp"
#include "trainables/mlp_examples.hpp"

namespace gradients_test {

using namespace ranktune;
using testing::digits;
using testing::mlp;
using testing::run_trial;
using testing::TrialOptions;
using testing::TrialRun;
using Entries = std::vector<std::pair<std::string, space::Value>>;

namespace {

/// mlp on the digits, with further options.
TrialOptions trial(Entries more, base::Iteration epochs, int ranks) {
    Entries entries{{"data", digits},
                    {"hidden", space::Value::List{256, 128}},
                    {"batch_size", 32},
                    {"lr", 0.05},
                    {"comm_metrics", true}};
    for (auto& entry : more) entries.push_back(std::move(entry));
    TrialOptions result;
    result.configuration = space::Configuration(std::move(entries));
    result.max_iterations = epochs;
    result.ranks = ranks;
    return result;
}

double megabytes(const TrialRun& run) {
    double sum = 0.0;
    for (const auto& report : run.reports) sum += report.at("comm/MB");
    return sum;
}

const std::vector<std::string> times{"comm/exposed_ms", "comm/GBps"};

} // namespace

TEST_CASE("with powersgd or topk mlp learns the digits to within 1 %, with a tenth of the bytes", "[trainables]") {
    const TrialRun plain = run_trial(mlp(), trial({}, 12, 2));
    const double accuracy = plain.last("val_accuracy");
    CHECK(accuracy > 0.95);
    for (const Entries& compression : {Entries{{"compression", "powersgd"}, {"compression_rank", 1}},
                                       Entries{{"compression", "topk"}, {"compression_density", 0.01}}}) {
        const TrialRun run = run_trial(mlp(), trial(compression, 12, 2));
        INFO(compression[0].second.as_string() << ": " << run.last("val_accuracy") << " of " << accuracy << ", "
                                               << megabytes(run) << " MB of " << megabytes(plain));
        CHECK(run.failure.empty());
        CHECK(run.last("val_accuracy") >= accuracy - 0.01);
        CHECK(megabytes(run) * 10.0 <= megabytes(plain));
    }
}

TEST_CASE("in 16 bits mlp learns the digits as well, with half of the bytes", "[trainables]") {
    const TrialRun plain = run_trial(mlp(), trial({}, 4, 3));
    for (const char* kind : {"fp16", "bf16"}) {
        const TrialRun run = run_trial(mlp(), trial({{"compression", kind}}, 4, 3));
        CHECK(run.last("val_loss") == Approx(plain.last("val_loss")).epsilon(0.05));
        CHECK(megabytes(run) == Approx(megabytes(plain) / 2.0).epsilon(1e-3));
    }
}

TEST_CASE("a batch in parts gives the same model, up to rounding, on any number of ranks", "[trainables]") {
    const TrialRun whole = run_trial(mlp(), trial({{"dropout", 0.2}}, 3, 1));
    for (const int ranks : {1, 2, 3})
        for (const int parts : {2, 5, 50}) { // 50: some have no samples
            const TrialRun run = run_trial(mlp(), trial({{"dropout", 0.2}, {"accumulate", parts}}, 3, ranks));
            CHECK(run.last("train_loss") == Approx(whole.last("train_loss")).epsilon(1e-3));
            CHECK(run.last("val_loss") == Approx(whole.last("val_loss")).epsilon(1e-3));
        }
    const TrialRun two = run_trial(mlp(), trial({}, 2, 2));
    const TrialRun accumulated = run_trial(mlp(), trial({{"accumulate", 4}}, 2, 2));
    CHECK(megabytes(accumulated) == megabytes(two)); // one reduction per batch
}

TEST_CASE("clipping bounds the gradient, the same on any number of ranks", "[trainables]") {
    const Entries wild{{"lr", 1.0}, {"momentum", 0.0}};
    const auto clipped = [&](double norm, int ranks) {
        TrialOptions some = trial({{"clip_norm", norm}}, 2, ranks);
        for (const auto& [name, value] : wild) some.configuration.set(name, value);
        return run_trial(mlp(), some);
    };
    const double tight = clipped(0.05, 1).last("val_loss");
    CHECK(clipped(0.05, 3).last("val_loss") == Approx(tight).epsilon(1e-3));
    CHECK(clipped(1e9, 1).last("val_loss") != Approx(tight).epsilon(1e-2));
    CHECK(clipped(1e9, 1).last("val_loss") == clipped(0.0, 1).last("val_loss"));
}

TEST_CASE("a trial with compressed, accumulated, clipped gradients resumes bitwise equally", "[trainables]") {
    for (const char* kind : {"fp16", "bf16", "powersgd", "topk"})
        for (const int ranks : {1, 3}) {
            const TrialOptions some =
                trial({{"compression", kind}, {"accumulate", 2}, {"clip_norm", 1.0}, {"optimizer", "adamw"}}, 4, ranks);
            CHECK(testing::resume_difference(mlp(), some, 2, times).empty());
        }
}

TEST_CASE("a checkpoint of compressed gradients is one for any compression and number of ranks", "[trainables]") {
    TrialOptions first = trial({{"compression", "topk"}}, 4, 3);
    first.pause_after = 2;
    const TrialRun paused = run_trial(mlp(), first);
    for (const char* kind : {"none", "topk", "powersgd"})
        for (const int ranks : {1, 2}) {
            TrialOptions second = trial({{"compression", kind}}, 4, ranks);
            second.from = paused.checkpoint();
            const TrialRun resumed = run_trial(mlp(), second);
            CHECK(resumed.failure.empty());
            CHECK(resumed.last("val_accuracy") > 0.85);
        }
}

TEST_CASE("what gradients cost is reported when the study asks for it", "[trainables]") {
    const TrialRun run = run_trial(mlp(), trial({}, 1, 2));
    CHECK(run.last("comm/exposed_ms") >= 0.0);
    CHECK(run.last("comm/GBps") > 0.0);
    const double steps = std::ceil(run.last("comm/MB") * 1e6 / (4.0 * 51'000));
    CHECK(steps > 30); // about 50,000 parameters, twice half of the bytes
    TrialOptions quiet = trial({}, 1, 2);
    quiet.configuration.set("comm_metrics", false);
    CHECK_THROWS_AS(run_trial(mlp(), quiet).last("comm/MB"), base::UsageError);
    CHECK(run_trial(mlp(), trial({}, 1, 1)).last("comm/MB") == 0.0);
}

TEST_CASE("options of gradients are refused by name, with what is accepted", "[trainables]") {
    const auto refused = [](std::string name, space::Value value) {
        TrialOptions some = trial({}, 1, 1);
        some.configuration.set(std::move(name), std::move(value));
        return run_trial(mlp(), some).failure;
    };
    CHECK(refused("compression", "powersdg") ==
          "rank 0: mlp.compression: 'powersdg' is not one of none, fp16, bf16, bf16_nccl, powersgd, topk; did you mean "
          "'powersgd'?");
    CHECK(refused("compression_rank", 0).starts_with("rank 0: mlp.compression_rank: "));
    CHECK(refused("compression_density", 1.5).starts_with("rank 0: mlp.compression_density"));
    CHECK(refused("accumulate", 0).starts_with("rank 0: mlp.accumulate"));
    CHECK(refused("clip_norm", -1.0).starts_with("rank 0: mlp.clip_norm"));
    CHECK(refused("comm_metrics", 1).starts_with("rank 0: mlp.comm_metrics: true or false"));
}

} // namespace gradients_test
