// SPDX-License-Identifier: Apache-2.0
#include "trainables/mlp/trainer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>

#include "ranktune/base/error.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"
#include "trainer_fixture.hpp"

namespace trainer_test {

using namespace ranktune;
using namespace ranktune::trainables::mlp;
using namespace ranktune::testing;

namespace {

/// Rank 0's parameters after five epochs of ten steps on `size` ranks. Checks that every rank has the same bits.
std::vector<float> train_on(int size, bool classification, const TrainerOptions& options) {
    const auto dataset = made_up_dataset(250, classification);
    std::vector<std::vector<float>> results(static_cast<std::size_t>(size));
    const auto thrown = on_ranks(size, [&](ddp::Group& group) {
        Trainer trainer(dataset, options, group);
        for (int epoch = 0; epoch < 5; ++epoch) static_cast<void>(trainer.train_epoch());
        results[static_cast<std::size_t>(group.rank())] = parameters(trainer);
    });
    CHECK(thrown == all_well(size));
    for (const std::vector<float>& result : results) CHECK(result == results[0]);
    return results[0];
}

// 50 steps of single precision: other shapes of products and another order of sums.
constexpr double tolerance = 2e-4;

} // namespace

TEST_CASE("one, two, three and five ranks train to the same parameters, dropout on", "[trainables]") {
    for (const bool classification : {true, false}) {
        for (const auto activation : {Activation::relu, Activation::tanh}) {
            TrainerOptions options = trainer_options();
            options.activation = activation;
            const std::vector<float> one = train_on(1, classification, options);
            for (const int size : {2, 3, 5}) {
                const std::vector<float> several = train_on(size, classification, options);
                CHECK(relative_difference(one, several) < tolerance);
                CHECK(train_on(size, classification, options) == several); // bit by bit
            }
        }
    }
}

TEST_CASE("the same holds for Adam with weight decay and a cosine schedule", "[trainables]") {
    TrainerOptions options = trainer_options();
    options.optimizer.kind = OptimizerOptions::Kind::adam;
    options.optimizer.weight_decay = 1e-3;
    options.lr = 0.003;
    options.cosine = true;
    options.epochs = 5;
    const std::vector<float> one = train_on(1, true, options);
    // Adam divides by the gradient's size, which amplifies rounding where gradients are near zero.
    CHECK(relative_difference(one, train_on(2, true, options)) < 10 * tolerance);
    CHECK(relative_difference(one, train_on(3, true, options)) < 10 * tolerance);
}

TEST_CASE("ranks without samples take part", "[trainables]") {
    TrainerOptions options = trainer_options();
    options.batch = 3; // five ranks: two of them empty; the last batch of 250 has one sample
    CHECK(relative_difference(train_on(1, true, options), train_on(5, true, options)) < 10 * tolerance);
}

TEST_CASE("a batch larger than the dataset is the dataset", "[trainables]") {
    TrainerOptions options = trainer_options();
    options.batch = 250;
    const std::vector<float> exact = train_on(2, true, options);
    options.batch = 100'000;
    CHECK(train_on(2, true, options) == exact);
}

TEST_CASE("training reduces the loss, and validation is the same on any number of ranks", "[trainables]") {
    const auto dataset = made_up_dataset(500, true);
    std::vector<Validation> results(4);
    for (int size = 1; size <= 3; ++size) {
        std::mutex mutex;
        const auto thrown = on_ranks(size, [&](ddp::Group& group) {
            TrainerOptions options = trainer_options();
            options.dropout = 0.0;
            Trainer trainer(dataset, options, group);
            const double before = trainer.validate().loss;
            const double first = trainer.train_epoch();
            double last = first;
            for (int epoch = 0; epoch < 30; ++epoch) last = trainer.train_epoch();
            const Validation validation = trainer.validate();
            if (!(last < 0.5 * first) || !(validation.loss < before)) throw base::Error("nothing was learned");
            const std::lock_guard lock(mutex);
            results[static_cast<std::size_t>(size)] = validation;
        });
        CHECK(thrown == all_well(size));
    }
    CHECK(results[1].accuracy > 0.7);
    CHECK(results[2].loss == Approx(results[1].loss).epsilon(1e-2));
    CHECK(results[3].loss == Approx(results[1].loss).epsilon(1e-2));
}

TEST_CASE("regression metrics are in the units of the file", "[trainables]") {
    const auto dataset = made_up_dataset(400, false);
    const auto group = ddp::make_self_group();
    TrainerOptions options = trainer_options();
    options.dropout = 0.0;
    Trainer trainer(dataset, options, *group);
    for (int epoch = 0; epoch < 40; ++epoch) static_cast<void>(trainer.train_epoch());
    const Validation validation = trainer.validate();
    // The factor of both targets is 0.5: one unit in memory is two units of the file.
    CHECK(validation.rmse == Approx(2.0 * std::sqrt(validation.loss)));
    CHECK(validation.r2 > 0.3);
    CHECK(validation.r2 < 1.0);
}

TEST_CASE("a trainer resumes bitwise equally from its checkpoint, also in another trainer's memory", "[trainables]") {
    const auto dataset = made_up_dataset(250, true);
    for (const auto rule : {OptimizerOptions::Kind::sgd, OptimizerOptions::Kind::adam}) {
        for (int size = 1; size <= 3; ++size) {
            TrainerOptions options = trainer_options();
            options.optimizer.kind = rule;
            const auto thrown = on_ranks(size, [&](ddp::Group& group) {
                Trainer whole(dataset, options, group);
                for (int epoch = 0; epoch < 3; ++epoch) static_cast<void>(whole.train_epoch());
                study::MemoryState state;
                whole.save(state);
                TrainerOptions other_buckets = options;
                other_buckets.bucket_floats = 100'000; // the checkpoint's limit wins
                Trainer resumed(dataset, other_buckets, group);
                resumed.load(state);
                study::MemoryState again;
                resumed.save(again);
                if (again.digest() != state.digest()) throw base::Error("wrong state, or limit of the buckets");
                for (int epoch = 0; epoch < 3; ++epoch) {
                    if (whole.train_epoch() != resumed.train_epoch()) throw base::Error("losses differ");
                }
                if (parameters(whole) != parameters(resumed)) throw base::Error("parameters differ");
            });
            CHECK(thrown == all_well(size));
        }
    }
}

TEST_CASE("the study's size of buckets comes before that of a checkpoint, and older checkpoints have no first one",
          "[trainables]") {
    const auto dataset = made_up_dataset(50, true);
    const auto thrown = on_ranks(1, [&](ddp::Group& group) {
        TrainerOptions options = trainer_options();
        options.first_bucket_floats = 100;
        Trainer whole(dataset, options, group);
        study::MemoryState state;
        whole.save(state);
        const auto buckets_after = [&](const study::MemoryState& from, std::size_t chosen) {
            TrainerOptions others = options;
            others.bucket_floats = 7000;
            others.first_bucket_floats = 50;
            others.gradients.bucket_bytes = chosen;
            Trainer loaded(dataset, others, group);
            study::MemoryState copy = from;
            loaded.load(copy);
            study::MemoryState again;
            loaded.save(again);
            std::vector<std::uint64_t> counters(5);
            again.get<std::uint64_t>("trainer.counters", counters);
            return std::pair(counters[3], counters[4]);
        };
        if (buckets_after(state, 0) != std::pair<std::uint64_t, std::uint64_t>(options.bucket_floats, 100))
            throw base::Error("not the checkpoint's");
        if (buckets_after(state, 28'000) != std::pair<std::uint64_t, std::uint64_t>(7000, 50))
            throw base::Error("not the study's");
        study::MemoryState older;
        for (const study::MemoryState::Tensor& tensor : state.stored_tensors())
            if (tensor.info.name != "trainer.counters") older.tensor(tensor.info, tensor.values());
        older.put<std::uint64_t>("trainer.counters", std::vector<std::uint64_t>{1, 2, 0, 300}, {4});
        if (buckets_after(older, 0) != std::pair<std::uint64_t, std::uint64_t>(300, 0))
            throw base::Error("not those of before");
    });
    CHECK(thrown == all_well(1));
}

TEST_CASE("a checkpoint of two ranks can be resumed on three", "[trainables]") {
    const auto dataset = made_up_dataset(250, true);
    study::MemoryState state;
    std::vector<float> expected;
    CHECK(on_ranks(2, [&](ddp::Group& group) {
              Trainer trainer(dataset, trainer_options(), group);
              static_cast<void>(trainer.train_epoch());
              if (group.rank() == 0) trainer.save(state);
              static_cast<void>(trainer.train_epoch());
              if (group.rank() == 0) expected = parameters(trainer);
          }) == all_well(2));
    CHECK(on_ranks(3, [&](ddp::Group& group) {
              Trainer trainer(dataset, trainer_options(), group);
              study::MemoryState copy = state;
              trainer.load(copy);
              static_cast<void>(trainer.train_epoch());
              if (relative_difference(expected, parameters(trainer)) > tolerance)
                  throw base::Error("parameters differ");
          }) == all_well(3));
}

TEST_CASE("a checkpoint names its tensors as PyTorch does", "[trainables]") {
    const auto group = ddp::make_self_group();
    Trainer trainer(made_up_dataset(20, false), trainer_options(), *group);
    study::MemoryState state;
    trainer.save(state);
    std::vector<std::string> names;
    for (const study::TensorInfo& info : state.tensors()) names.push_back(info.name);
    const auto has = [&](const char* name) { return std::find(names.begin(), names.end(), name) != names.end(); };
    CHECK(has("layers.0.weight"));
    CHECK(has("layers.2.bias"));
    CHECK(has("optimizer.momentum.layers.1.weight"));
    CHECK(has("input.factor"));
    CHECK(has("output.shift"));
    CHECK(state.stored_tensors()[0].info.shape == std::vector<std::uint64_t>{24, 8});
}

TEST_CASE("a loss that is NaN on one rank ends the step on all of them", "[trainables]") {
    const auto good = made_up_dataset(250, true);
    auto bad = std::make_shared<data::Dataset>(*good);
    // One sample of the training set: exactly one rank of a step sees it.
    bad->train.x[100 * 8] = std::numeric_limits<float>::quiet_NaN();
    const auto thrown = on_ranks(3, [&](ddp::Group& group) {
        Trainer trainer(bad, trainer_options(), group);
        static_cast<void>(trainer.train_epoch());
    });
    CHECK(std::count(thrown.begin(), thrown.end(), "loss is NaN at iteration 1") == 1);
    CHECK(std::count(thrown.begin(), thrown.end(), "PeerFailed") == 2);
}

TEST_CASE("a learning rate that is far too large ends in a message, not in NaN metrics", "[trainables]") {
    const auto group = ddp::make_self_group();
    TrainerOptions options = trainer_options();
    options.lr = 1e30;
    Trainer trainer(made_up_dataset(250, true), options, *group);
    std::string message;
    try {
        for (int epoch = 0; epoch < 3; ++epoch) static_cast<void>(trainer.train_epoch());
    } catch (const base::Error& error) {
        message = error.what();
    }
    CHECK(message == "loss is NaN at iteration 1");
}

TEST_CASE("ranks that read different datasets get an error", "[trainables]") {
    const auto thrown = on_ranks(2, [&](ddp::Group& group) {
        Trainer trainer(made_up_dataset(group.rank() == 0 ? 250 : 251, true), trainer_options(), group);
    });
    for (const std::string& text : thrown) CHECK(text.find("the datasets differ") == 0);
}

TEST_CASE("mlp predicts what its validation counts, in units of the file", "[trainables]") {
    for (const bool classification : {true, false}) {
        const auto dataset = made_up_dataset(250, classification);
        const auto group = ddp::make_self_group();
        Trainer trained(dataset, trainer_options(), *group);
        for (int epoch = 0; epoch < 3; ++epoch) static_cast<void>(trained.train_epoch());
        const Validation expected = trained.validate();
        study::MemoryState state;
        trained.save(state);
        // Other scales: those of the state count.
        data::Dataset rescaled = *dataset;
        for (float& shift : rescaled.x_scale.shift) shift += 1.0F;
        for (float& factor : rescaled.y_scale.factor) factor *= 3.0F;
        Trainer loaded(std::make_shared<const data::Dataset>(rescaled), trainer_options(), *group);
        loaded.load(state);
        const data::Split& val = dataset->val;
        std::vector<float> y(val.count * dataset->outputs);
        loaded.predict(val.x, y);
        double correct = 0.0;
        double squares = 0.0;
        for (std::size_t row = 0; row < val.count; ++row) {
            const auto of_row = std::span(y).subspan(row * dataset->outputs, dataset->outputs);
            if (classification) {
                CHECK(std::abs(std::accumulate(of_row.begin(), of_row.end(), 0.0) - 1.0) < 1e-5);
                correct += std::ranges::max_element(of_row) - of_row.begin() == val.classes[row] ? 1.0 : 0.0;
            } else {
                for (std::size_t i = 0; i < of_row.size(); ++i) { // the scale of the targets is 0.5
                    const auto target = static_cast<double>(val.targets[row * dataset->outputs + i]) / 0.5;
                    squares += std::pow(static_cast<double>(of_row[i]) - target, 2);
                }
            }
        }
        if (classification)
            CHECK(correct / static_cast<double>(val.count) == expected.accuracy);
        else
            CHECK(std::abs(std::sqrt(squares / static_cast<double>(y.size())) - expected.rmse) < 1e-5);
    }
}

} // namespace trainer_test
