// SPDX-License-Identifier: Apache-2.0
// mlp on data that stay in their file.
#include <algorithm>
#include <cmath>
#include <mutex>

#include "ranktune/base/error.hpp"
#include "ranktune/data/order.hpp"
#include "ranktune/testing/run_trial.hpp"
#include "support/catch.hpp"
#include "support/hdf5_file.hpp"
#include "support/ranks.hpp"
#include "trainables/mlp/training_data.hpp"
#include "trainables/mlp_examples.hpp"

namespace streamed_test {

using namespace ranktune;
using namespace ranktune::trainables::mlp;
using testing::all_well;
using testing::diabetes;
using testing::digits;
using testing::mlp;
using testing::on_ranks;
using testing::run_trial;
using testing::TrialOptions;
using testing::TrialRun;

namespace {

const std::vector<std::string> waits{"data_wait", "data_wait/disk", "data_wait/decode"};

/// Every random stream, and gradients of several parts.
TrialOptions trial(const std::string& data, double in_memory_gb, base::Iteration epochs, int ranks) {
    TrialOptions result;
    result.configuration =
        space::Configuration(std::vector<std::pair<std::string, space::Value>>{{"data", data},
                                                                               {"in_memory_gb", in_memory_gb},
                                                                               {"hidden", space::Value::List{16}},
                                                                               {"dropout", 0.2},
                                                                               {"batch_size", 50},
                                                                               {"accumulate", 2},
                                                                               {"optimizer", "adamw"},
                                                                               {"lr", 0.01}});
    result.max_iterations = epochs;
    result.ranks = ranks;
    result.cpus_per_rank = 3; // two threads read
    return result;
}

data::LoaderOptions loading(const ddp::Group& group, std::uint64_t batch) {
    data::LoaderOptions options;
    options.batch = batch;
    options.rank = group.rank();
    options.ranks = group.size();
    options.seed = 4;
    options.trial = 2;
    return options;
}

} // namespace

TEST_CASE("streamed data train a model as good as data in memory, and report the wait", "[trainables]") {
    for (const auto& [data, metric] : {std::pair(digits, "val_accuracy"), std::pair(diabetes, "val_r2")}) {
        const TrialRun memory = run_trial(mlp(), trial(data, 16.0, 8, 2));
        const TrialRun file = run_trial(mlp(), trial(data, 0.0, 8, 2));
        REQUIRE(file.failure.empty());
        CHECK(file.last(metric) == Approx(memory.last(metric)).margin(0.05));
        CHECK(file.last("data_wait") >= file.last("data_wait/disk") + file.last("data_wait/decode") - 1e-9);
        CHECK_THROWS_AS(memory.last("data_wait"), base::UsageError);
        CHECK(file.last("train_loss") != memory.last("train_loss")); // another order
    }
}

TEST_CASE("a streamed trial resumes bitwise equally, and trains the same on other ranks", "[trainables]") {
    const TrialRun whole = run_trial(mlp(), trial(digits, 0.0, 4, 1));
    for (const int before : {1, 2, 3}) {
        CHECK(testing::resume_difference(mlp(), trial(digits, 0.0, 4, before), 2, waits).empty());
        TrialOptions first = trial(digits, 0.0, 4, before);
        first.pause_after = 2;
        const TrialRun paused = run_trial(mlp(), first);
        for (const int after : {2, 5}) {
            TrialOptions second = trial(digits, 0.0, 4, after);
            second.from = paused.checkpoint();
            const TrialRun resumed = run_trial(mlp(), second);
            REQUIRE(resumed.failure.empty());
            CHECK(resumed.last("train_loss") == Approx(whole.last("train_loss")).epsilon(1e-3));
            CHECK(resumed.last("val_loss") == Approx(whole.last("val_loss")).epsilon(1e-3));
        }
    }
}

TEST_CASE("scales of streamed data are the same bits on any number of ranks, and nearly those of data in memory",
          "[trainables]") {
    const data::Dataset in_memory = data::load_dataset(diabetes, data::Scaling::standard);
    std::vector<data::Scale> x;
    std::vector<data::Scale> y;
    std::mutex mutex;
    for (const int size : {1, 2, 5}) {
        // Another name is another file: nothing is known of it yet.
        const testing::TemporaryHdf5 copy;
        std::filesystem::copy_file(diabetes, copy.path());
        CHECK(on_ranks(size, [&](ddp::Group& group) {
                  const auto data = streamed(copy.path(), data::Scaling::standard, loading(group, 10));
                  data->prepare(group);
                  const std::lock_guard lock(mutex);
                  x.push_back(data->x_scale());
                  y.push_back(data->y_scale());
              }) == all_well(size));
    }
    REQUIRE(x.size() == 8);
    for (std::size_t i = 0; i < x.size(); ++i) {
        CHECK(x[i].shift == x[0].shift);
        CHECK(x[i].factor == x[0].factor);
        CHECK(y[i].shift == y[0].shift);
        CHECK(y[i].factor == y[0].factor);
    }
    for (std::size_t column = 0; column < in_memory.features; ++column) {
        CHECK(x[0].shift[column] == Approx(in_memory.x_scale.shift[column]).margin(1e-6));
        CHECK(x[0].factor[column] == Approx(in_memory.x_scale.factor[column]).epsilon(1e-5));
    }
}

TEST_CASE("the shares of all ranks are the batches of the loader's order, wherever they begin", "[trainables]") {
    const auto group = ddp::make_self_group();
    const data::DatasetShape shape = data::read_dataset_shape(digits);
    for (const int size : {1, 3}) {
        for (const std::uint64_t epoch : {0U, 1U}) {
            data::Order order({.samples = shape.train}, 4, 2, epoch);
            std::vector<std::unique_ptr<TrainingData>> ranks;
            for (int rank = 0; rank < size; ++rank) {
                data::LoaderOptions options = loading(*group, 100);
                options.rank = rank;
                options.ranks = size;
                ranks.push_back(streamed(digits, data::Scaling::none, std::move(options)));
                ranks.back()->prepare(*group);
            }
            for (const std::size_t begin :
                 {std::size_t{300}, std::size_t{400}, std::size_t{0}}) { // 0: from there again
                std::vector<std::uint32_t> seen;
                std::vector<std::uint32_t> expected;
                for (const auto& rank : ranks) {
                    const Rows rows = rank->share(epoch, {begin, begin + 100});
                    seen.insert(seen.end(), rows.numbers.begin(), rows.numbers.end());
                }
                for (std::size_t p = begin; p < begin + 100; ++p)
                    expected.push_back(static_cast<std::uint32_t>(order(p)));
                std::ranges::sort(seen);
                std::ranges::sort(expected);
                CHECK(seen == expected);
            }
        }
    }
}

TEST_CASE("a number that is not finite in streamed data ends the trial on all ranks, with its place", "[trainables]") {
    const testing::TemporaryHdf5 file;
    std::vector<float> x(40, 1.0F);
    x[25] = NAN;
    testing::Hdf5Writer(file.path())
        .floats("train/x", {20, 2}, std::vector<float>(40, 1.0F))
        .floats("train/y", {20}, std::vector<float>(20, 1.0F))
        .floats("val/x", {20, 2}, x)
        .floats("val/y", {20}, std::vector<float>(20, 1.0F));
    const TrialRun run = run_trial(mlp(), trial(file.path(), 0.0, 1, 3));
    CHECK(run.failure.find("val/x holds NaN or infinity") != std::string::npos);
}

TEST_CASE("batches of streamed data mix as many chunks as shuffle_memory_gb holds", "[trainables]") {
    const testing::TemporaryHdf5 file;
    constexpr std::size_t rows = 1024; // of 1 KiB
    testing::Hdf5Writer(file.path())
        .floats("train/x", {rows, 255}, std::vector<float>(rows * 255, 1.0F), 256)
        .floats("train/y", {rows}, std::vector<float>(rows, 1.0F), 256)
        .floats("val/x", {1, 255}, std::vector<float>(255, 1.0F))
        .floats("val/y", {1}, {1.0F});
    const auto lines = [&](double gibibytes) {
        TrialOptions options = trial(file.path(), 0.0, 1, 1);
        options.configuration.set("shuffle_memory_gb", gibibytes);
        const TrialRun run = run_trial(mlp(), options);
        CHECK(run.failure.empty());
        return run.log;
    };
    CHECK(lines(1.0).empty());
    const std::vector<std::string> fewer = lines(0x1p-11); // half of the file
    REQUIRE(fewer.size() == 1);
    CHECK_THAT(fewer[0], Catch::Contains("batches mix 2 of 4 chunks, as no more of them fit into shuffle_memory"));
}

} // namespace streamed_test
