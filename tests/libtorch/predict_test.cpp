// SPDX-License-Identifier: Apache-2.0
// What a LibTorch model predicts, against its weights and plain loops.

#include <cmath>

#include "models.hpp"
#include "ranktune/base/error.hpp"

namespace predict_test {

using namespace ranktune;
using namespace ranktune::libtorch_test;
using ranktune::testing::run_trial;
using ranktune::testing::TrialRun;

namespace {

constexpr std::size_t features = 6;
constexpr std::size_t count = 5;

/// A batch with one column of float32.
data::Batch batch_of(const torch::Tensor& x) {
    data::Batch batch;
    batch.samples.resize(count);
    data::Column column;
    column.field = {"x", data::ElementType::float32, {features}};
    column.count = count;
    column.memory = std::make_unique<std::byte[]>(count * features * sizeof(float));
    std::copy_n(x.contiguous().data_ptr<float>(), count * features, column.as<float>().begin());
    batch.columns.push_back(std::move(column));
    return batch;
}

/// Trains, and predicts after each iteration.
class Asked final : public trainables::Trainable {
  public:
    Asked(libtorch::MakeTraining make, study::MemoryState& said) : model_(std::move(make)), said_(said) {}
    void setup(TrialContext& context) override { model_.setup(context); }
    Metrics step(TrialContext& context) override {
        Metrics metrics = model_.step(context);
        said_.reset();
        model_.predict(context, batch_of(samples(count).inputs), said_);
        return metrics;
    }
    void save(study::StateSink& sink) const override { model_.save(sink); }
    void load(study::StateSource& source) override { model_.load(source); }

  private:
    ModuleTrainable model_;
    study::MemoryState& said_;
};

TrialRun run_asked(const libtorch::MakeTraining& make, study::MemoryState& said) {
    testing::TrialOptions options;
    options.max_iterations = 2;
    return run_trial({{}, [&] { return std::make_unique<Asked>(make, said); }, {}}, options);
}

/// Linear, batch normalisation, tanh, linear; three outputs.
libtorch::MakeTraining maker(bool classifies, torch::ScalarType type = torch::kFloat32) {
    return [classifies, type](TrialContext&) {
        torch::nn::Sequential net(torch::nn::Linear(6, 16), torch::nn::BatchNorm1d(16), torch::nn::Tanh(),
                                  torch::nn::Dropout(0.5), torch::nn::Linear(16, 3));
        Training training =
            training_of(net, std::make_unique<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(0.1)));
        training.predict = [net, type](const torch::Tensor& inputs) mutable {
            const torch::Tensor y = net->forward(inputs);
            if (y.requires_grad() || net->is_training()) throw base::Error("predicts as if it trained");
            return y.to(type);
        };
        training.predicts_classes = classifies;
        return training;
    };
}

/// The same by plain loops in double.
torch::Tensor by_hand(const study::MemoryState& state) {
    const auto of = [&](const char* name) { return tensor_of(state, name); };
    const torch::Tensor x = samples(count).inputs.to(torch::kFloat64);
    const auto w0 = of("0.weight"), b0 = of("0.bias"), w4 = of("4.weight"), b4 = of("4.bias"), scale = of("1.weight"),
               shift = of("1.bias"), mean = of("1.running_mean"), variance = of("1.running_var");
    torch::Tensor y = torch::zeros({count, 3}, torch::kFloat64);
    for (std::size_t n = 0; n < count; ++n)
        for (int out = 0; out < 3; ++out) {
            double sum = b4[out].item<double>();
            for (int h = 0; h < 16; ++h) {
                double z = b0[h].item<double>();
                for (std::size_t i = 0; i < features; ++i)
                    z += w0[h][static_cast<int>(i)].item<double>() *
                         x[static_cast<int>(n)][static_cast<int>(i)].item<double>();
                z = (z - mean[h].item<double>()) / std::sqrt(variance[h].item<double>() + 1e-5);
                sum += w4[out][h].item<double>() * std::tanh(z * scale[h].item<double>() + shift[h].item<double>());
            }
            y[static_cast<int>(n)][out] = sum;
        }
    return y;
}

} // namespace

TEST_CASE("a model predicts what its weights say, in evaluation mode and without gradients", "[libtorch]") {
    study::MemoryState said;
    const TrialRun run = run_asked(maker(true), said);
    REQUIRE(run.failure.empty());
    const torch::Tensor expected = by_hand(run.checkpoint().state);
    CHECK((tensor_of(said, "y") - expected).abs().max().item<double>() < 1e-5);
    const auto& classes = said.stored_tensors().at(1);
    REQUIRE(classes.info.name == "class");
    const auto largest = classes.values().as<std::int32_t>();
    for (std::size_t n = 0; n < count; ++n)
        CHECK(largest[n] == expected.argmax(1)[static_cast<int>(n)].item<std::int64_t>());
}

TEST_CASE("predictions in half precision become float32, and others than numbers name no class", "[libtorch]") {
    study::MemoryState said;
    REQUIRE(run_asked(maker(false, torch::kBFloat16), said).failure.empty());
    REQUIRE(said.stored_tensors().size() == 1);
    CHECK(said.stored_tensors()[0].info.type == base::DType::float32);
    CHECK(said.stored_tensors()[0].info.shape == std::vector<std::uint64_t>{count, 3});
    REQUIRE(run_asked(maker(false, torch::kFloat64), said).failure.empty());
    CHECK(said.stored_tensors()[0].info.type == base::DType::float64);
}

TEST_CASE("a training without predict, or with classes that are no rows, says so", "[libtorch]") {
    study::MemoryState said;
    const auto without = [](TrialContext& context) {
        Training training = maker(false)(context);
        training.predict = {};
        return training;
    };
    CHECK(run_asked(without, said).failure.find("it cannot predict: set Training::predict") != std::string::npos);
    const auto flat = [](TrialContext& context) {
        Training training = maker(true)(context);
        training.predict = [](const torch::Tensor& inputs) { return inputs.sum(1); };
        return training;
    };
    CHECK(run_asked(flat, said).failure.find("has to return [samples, classes]") != std::string::npos);
}

} // namespace predict_test
