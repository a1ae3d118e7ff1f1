// SPDX-License-Identifier: Apache-2.0
#include "trainables/mlp/network.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ranktune/base/rng.hpp"
#include "support/catch.hpp"

namespace network_test {

using namespace ranktune;
using namespace ranktune::trainables::mlp;

namespace {

/// A network with its parameters and gradients, and a batch of random samples.
struct Fixture {
    explicit Fixture(Shape s, std::size_t count, bool classes, double dropout = 0.0)
        : shape(std::move(s)), rows(count), classification(classes) {
        base::RngStream random(3, base::Purpose::initialise, 9, 9);
        for (const TensorShape& tensor : tensors_of(shape)) {
            values.emplace_back(tensor.size);
            gradients.emplace_back(tensor.size, 99.0F);
        }
        for (std::size_t i = 0; i < values.size(); ++i)
            initialise(values[i], shape.inputs_of(i / 2), 1, 2, static_cast<std::uint32_t>(i));
        network = std::make_unique<Network>(shape, std::vector<std::span<float>>(values.begin(), values.end()), rows);
        network->set_gradients({gradients.begin(), gradients.end()});
        for (std::size_t i = 0; i < rows * shape.features; ++i) x.push_back(static_cast<float>(random.normal()));
        for (std::size_t i = 0; i < rows; ++i) labels.push_back(static_cast<std::int32_t>(random.below(shape.outputs)));
        for (std::size_t i = 0; i < rows * shape.outputs; ++i) targets.push_back(static_cast<float>(random.normal()));
        samples.resize(rows);
        std::iota(samples.begin(), samples.end(), 100U);
        if (dropout > 0.0)
            for (std::size_t layer = 0; layer < shape.hidden.size(); ++layer)
                masks.push_back(dropout_mask(dropout, 1, 2, static_cast<std::uint32_t>(layer), 0));
    }

    /// Mean loss of the batch; with `gradient`, also the outputs' gradient in place.
    double loss(bool gradient) {
        std::copy(x.begin(), x.end(), network->inputs().begin());
        const std::span<float> z = network->forward(rows, masks, samples);
        const float factor = 1.0F / static_cast<float>(rows);
        const LossSums sums = classification
                                  ? cross_entropy(z.data(), labels, shape.outputs, gradient, factor)
                                  : squared_error(z.data(), targets.data(), rows, shape.outputs, gradient, factor);
        return sums.loss / static_cast<double>(rows);
    }

    std::vector<std::size_t> backward() {
        std::vector<std::size_t> order;
        network->backward(rows, masks, {[&](std::size_t tensor) { order.push_back(tensor); }, [] {}});
        return order;
    }

    Shape shape;
    std::size_t rows;
    bool classification;
    std::vector<std::vector<float>> values;
    std::vector<std::vector<float>> gradients;
    std::unique_ptr<Network> network;
    std::vector<float> x;
    std::vector<std::int32_t> labels;
    std::vector<float> targets;
    std::vector<std::uint32_t> samples;
    std::vector<DropoutMask> masks;
};

/// Largest difference between the gradients and central differences of the loss, relative to the largest gradient.
double gradient_error(Fixture& f) {
    static_cast<void>(f.loss(true));
    static_cast<void>(f.backward());
    const std::vector<std::vector<float>> gradients = f.gradients;
    double largest = 0.0;
    double worst = 0.0;
    constexpr float step = 1e-3F;
    for (std::size_t tensor = 0; tensor < f.values.size(); ++tensor) {
        for (std::size_t i = 0; i < f.values[tensor].size(); ++i) {
            const float kept = f.values[tensor][i];
            f.values[tensor][i] = kept + step;
            const double above = f.loss(false);
            f.values[tensor][i] = kept - step;
            const double below = f.loss(false);
            f.values[tensor][i] = kept;
            const double expected = (above - below) / (2.0 * static_cast<double>(step));
            largest = std::max(largest, std::abs(expected));
            worst = std::max(worst, std::abs(static_cast<double>(gradients[tensor][i]) - expected));
        }
    }
    return worst / largest;
}

} // namespace

TEST_CASE("tensors have PyTorch's names, layouts and order", "[trainables]") {
    const std::vector<TensorShape> tensors = tensors_of({.features = 3, .hidden = {5}, .outputs = 2});
    REQUIRE(tensors.size() == 4);
    CHECK(tensors[0].name == "layers.0.weight");
    CHECK(tensors[0].shape == std::vector<std::uint64_t>{5, 3});
    CHECK(tensors[0].size == 15);
    CHECK(tensors[0].padded == 16);
    CHECK(tensors[1].name == "layers.0.bias");
    CHECK(tensors[3].name == "layers.1.bias");
    CHECK(tensors[3].shape == std::vector<std::uint64_t>{2});
}

TEST_CASE("gradients agree with finite differences of the loss", "[trainables]") {
    SECTION("classifier with tanh") {
        Fixture f({.features = 4, .hidden = {6, 5}, .outputs = 3, .activation = Activation::tanh}, 7, true);
        CHECK(gradient_error(f) < 2e-3);
    }
    SECTION("regressor with tanh and two targets") {
        Fixture f({.features = 4, .hidden = {6}, .outputs = 2, .activation = Activation::tanh}, 5, false);
        CHECK(gradient_error(f) < 2e-3);
    }
    SECTION("tanh with dropout") {
        Fixture f({.features = 4, .hidden = {12, 9}, .outputs = 3, .activation = Activation::tanh}, 7, true, 0.4);
        CHECK(gradient_error(f) < 2e-3);
    }
    SECTION("relu, with kinks within some of the differences") {
        Fixture f({.features = 4, .hidden = {8, 7}, .outputs = 3}, 9, true, 0.25);
        CHECK(gradient_error(f) < 3e-2);
    }
    SECTION("no hidden layer") {
        Fixture f({.features = 6, .hidden = {}, .outputs = 4}, 8, true);
        CHECK(gradient_error(f) < 2e-3);
    }
}

TEST_CASE("gradients become ready from the last tensor to the first", "[trainables]") {
    Fixture f({.features = 4, .hidden = {6, 5}, .outputs = 3}, 7, true);
    static_cast<void>(f.loss(true));
    CHECK(f.backward() == std::vector<std::size_t>{5, 4, 3, 2, 1, 0});
}

TEST_CASE("a batch without rows has zeros for gradients", "[trainables]") {
    Fixture f({.features = 4, .hidden = {6}, .outputs = 3}, 2, true, 0.5);
    static_cast<void>(f.network->forward(0, f.masks, {}));
    f.network->backward(0, f.masks, {[](std::size_t) {}, [] {}});
    for (const std::vector<float>& gradient : f.gradients)
        CHECK(std::all_of(gradient.begin(), gradient.end(), [](float g) { return g == 0.0F; }));
}

TEST_CASE("initial parameters are within 1/sqrt(inputs) and differ per tensor and trial", "[trainables]") {
    std::vector<float> a(1000);
    std::vector<float> b(1000);
    initialise(a, 25, 1, 2, 0);
    const auto [low, high] = std::minmax_element(a.begin(), a.end());
    CHECK(*low >= -0.2F);
    CHECK(*high <= 0.2F);
    CHECK(*low < -0.19F);
    CHECK(*high > 0.19F);
    initialise(b, 25, 1, 2, 0);
    CHECK(a == b);
    initialise(b, 25, 1, 2, 1);
    CHECK(a != b);
    initialise(b, 25, 1, 3, 0);
    CHECK(a != b);
}

} // namespace network_test
