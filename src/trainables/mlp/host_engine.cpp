// SPDX-License-Identifier: Apache-2.0
// The network on the cores of this rank.

#include <cstring>
#include <utility>

#include "trainables/mlp/engine.hpp"

namespace ranktune::trainables::mlp {

namespace {

class HostEngine final : public Engine {
  public:
    explicit HostEngine(EngineOptions options)
        : options_(std::move(options)),
          flat_(options_.size),
          network_(options_.shape, parts(flat_), options_.rows),
          optimizer_(options_.optimizer, flat_.size()) {}

    [[nodiscard]] base::Buffer parameters() override { return flat_; }
    [[nodiscard]] std::vector<Moment> moments() override {
        std::vector<Moment> all;
        for (Optimizer::Moment& moment : optimizer_.moments()) all.push_back({moment.name, moment.values});
        return all;
    }
    [[nodiscard]] std::uint64_t steps() const override { return optimizer_.steps(); }
    void set_steps(std::uint64_t steps) override { optimizer_.set_steps(steps); }

    void attach(ddp::GradientReducer& reducer, ddp::Group&) override {
        gradients_ = reducer.gradients();
        network_.set_gradients(parts(gradients_));
    }

    double compute(const Batch& batch, const Hooks& hooks) override {
        const std::size_t count = batch.rows.places.size();
        gather(batch.rows);
        const std::span<float> z = network_.forward(count, batch.masks, batch.rows.numbers);
        const double loss = loss_of(z, batch);
        hooks.check(loss);
        network_.backward(count, batch.masks, {hooks.ready, hooks.poll});
        return loss;
    }

    void update(double lr) override { optimizer_.update(flat_, gradients_, lr); }

    [[nodiscard]] std::size_t rows() const override { return network_.rows(); }
    [[nodiscard]] std::span<float> outputs(std::span<const float> inputs) override {
        std::memcpy(network_.inputs().data(), inputs.data(), inputs.size_bytes());
        return network_.forward(inputs.size() / options_.shape.features, {}, {});
    }
    void settle() override {}

  private:
    [[nodiscard]] std::vector<std::span<float>> parts(std::span<float> flat) const {
        const auto tensors = tensors_of(options_.shape);
        std::vector<std::span<float>> result;
        for (std::size_t i = 0; i < tensors.size(); ++i)
            result.push_back(flat.subspan(options_.places[i], tensors[i].size));
        return result;
    }

    void gather(const Rows& rows) {
        const std::size_t features = options_.shape.features;
        float* row = network_.inputs().data();
        for (const std::uint32_t place : rows.places) {
            std::memcpy(row, rows.from.x.data() + place * features, features * sizeof(float));
            row += features;
        }
    }

    double loss_of(std::span<float> z, const Batch& batch) {
        const std::size_t width = options_.shape.outputs;
        const auto& [from, places, numbers] = batch.rows;
        if (!from.classes.empty()) {
            classes_.resize(places.size());
            for (std::size_t i = 0; i < classes_.size(); ++i) classes_[i] = from.classes[places[i]];
            return cross_entropy(z.data(), classes_, width, true, batch.factor).loss;
        }
        targets_.resize(places.size() * width);
        for (std::size_t i = 0; i < places.size(); ++i)
            std::memcpy(targets_.data() + i * width, from.targets.data() + places[i] * width, width * sizeof(float));
        return squared_error(z.data(), targets_.data(), places.size(), width, true, batch.factor).loss;
    }

    EngineOptions options_;
    base::LargeVector<float> flat_;
    Network network_;
    Optimizer optimizer_;
    std::span<float> gradients_;
    std::vector<std::int32_t> classes_; ///< of a batch
    std::vector<float> targets_;
};

} // namespace

std::unique_ptr<Engine> make_host_engine(EngineOptions options) {
    return std::make_unique<HostEngine>(std::move(options));
}

} // namespace ranktune::trainables::mlp
