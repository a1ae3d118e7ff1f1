// SPDX-License-Identifier: Apache-2.0
#include "trainables/mlp/network.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "ranktune/base/rng.hpp"
#include "trainables/blas.hpp"

namespace ranktune::trainables::mlp {

using blas::Transpose;

std::vector<TensorShape> tensors_of(const Shape& shape) {
    constexpr std::size_t line = 16; // floats
    std::vector<TensorShape> tensors;
    for (std::size_t layer = 0; layer < shape.layers(); ++layer) {
        const std::string name = "layers." + std::to_string(layer);
        const std::uint64_t in = shape.inputs_of(layer);
        const std::uint64_t out = shape.outputs_of(layer);
        tensors.push_back({name + ".weight", {out, in}, in * out, 0});
        tensors.push_back({name + ".bias", {out}, out, 0});
    }
    for (TensorShape& tensor : tensors) tensor.padded = (tensor.size + line - 1) / line * line;
    return tensors;
}

void initialise(std::span<float> values, std::size_t inputs, std::uint64_t seed, std::uint32_t trial,
                std::uint32_t tensor) {
    base::RngStream random(seed, base::Purpose::initialise, trial, tensor);
    const double bound = 1.0 / std::sqrt(static_cast<double>(inputs));
    for (float& value : values) value = static_cast<float>((2.0 * random.uniform() - 1.0) * bound);
}

Network::Network(Shape shape, std::vector<std::span<float>> parameters, std::size_t rows)
    : shape_(std::move(shape)), parameters_(std::move(parameters)), rows_(std::max<std::size_t>(rows, 1)) {
    assert(parameters_.size() == 2 * shape_.layers());
    std::size_t widest = 0;
    outputs_.emplace_back(rows_ * shape_.features);
    for (std::size_t layer = 0; layer < shape_.layers(); ++layer) {
        outputs_.emplace_back(rows_ * shape_.outputs_of(layer));
        if (layer > 0) widest = std::max(widest, shape_.inputs_of(layer));
    }
    for (base::LargeVector<float>& delta : delta_) delta.resize(rows_ * widest);
}

void Network::set_gradients(std::vector<std::span<float>> gradients) {
    assert(gradients.size() == parameters_.size());
    gradients_ = std::move(gradients);
}

std::span<float> Network::forward(std::size_t count, std::span<const DropoutMask> masks,
                                  std::span<const std::uint32_t> samples) {
    assert(count <= rows_);
    const std::size_t last = shape_.layers() - 1;
    for (std::size_t layer = 0; layer <= last; ++layer) {
        const std::size_t in = shape_.inputs_of(layer);
        const std::size_t out = shape_.outputs_of(layer);
        const float* bias = parameters_[2 * layer + 1].data();
        float* y = outputs_[layer + 1].data();
        blas::multiply(Transpose::no, Transpose::yes, count, out, in, outputs_[layer].data(),
                       parameters_[2 * layer].data(), 0.0F, y);
        if (layer == last)
            add_bias(y, bias, count, out);
        else if (shape_.activation == Activation::relu)
            add_bias_relu(y, bias, count, out);
        else
            add_bias_tanh(y, bias, count, out);
        if (layer < last && !masks.empty() && masks[layer].threshold > 0) drop(y, samples, out, masks[layer]);
    }
    return std::span(outputs_.back()).first(count * shape_.outputs);
}

namespace {

/// Rows or columns of the weights per product between two polls: some milliseconds of work on one core, in pieces of
/// about equal size. The weights are split, not the batch: a library packs both factors for every product, and the
/// weights are the larger factor.
std::size_t piece(std::size_t extent, std::size_t work_each) {
    constexpr std::size_t work = 150'000'000; // multiply-adds
    constexpr std::size_t least = 128;
    constexpr std::size_t multiple = 16; // floats of a cache line, so that pieces are aligned for vectors
    const std::size_t most = std::max(work / std::max<std::size_t>(work_each, 1), least);
    const std::size_t pieces = (extent + most - 1) / most;
    return ((extent + pieces - 1) / pieces + multiple - 1) / multiple * multiple;
}

} // namespace

void Network::weight_gradient(std::size_t layer, std::size_t count, const float* delta, const Hooks& hooks) {
    const std::size_t in = shape_.inputs_of(layer);
    const std::size_t out = shape_.outputs_of(layer);
    const std::size_t rows = piece(out, in * count);
    for (std::size_t begin = 0; begin < out; begin += rows) {
        if (begin > 0) hooks.poll();
        blas::multiply(Transpose::yes, Transpose::no, std::min(rows, out - begin), in, count, {delta + begin, out},
                       {outputs_[layer].data(), in}, 0.0F, {gradients_[2 * layer].data() + begin * in, in});
    }
    hooks.ready(2 * layer);
}

void Network::input_gradient(std::size_t layer, std::size_t count, const float* delta, float* result,
                             const Hooks& hooks) {
    const std::size_t in = shape_.inputs_of(layer);
    const std::size_t out = shape_.outputs_of(layer);
    const std::size_t columns = piece(in, out * count);
    for (std::size_t begin = 0; begin < in; begin += columns) {
        blas::multiply(Transpose::no, Transpose::no, count, std::min(columns, in - begin), out, {delta, out},
                       {parameters_[2 * layer].data() + begin, in}, 0.0F, {result + begin, in});
        hooks.poll();
    }
}

void Network::backward(std::size_t count, std::span<const DropoutMask> masks, const Hooks& hooks) {
    const std::size_t last = shape_.layers() - 1;
    const float* delta = outputs_.back().data();
    column_sums(delta, gradients_[2 * last + 1].data(), count, shape_.outputs);
    hooks.ready(2 * last + 1);
    for (std::size_t layer = last + 1; layer-- > 0;) {
        weight_gradient(layer, count, delta, hooks);
        if (layer == 0) break;
        float* below = delta_[layer % 2].data();
        input_gradient(layer, count, delta, below, hooks);
        const float scale = masks.empty() ? 1.0F : masks[layer - 1].scale();
        const auto activation_backward = shape_.activation == Activation::relu ? relu_backward : tanh_backward;
        activation_backward(below, outputs_[layer].data(), scale, gradients_[2 * layer - 1].data(), count,
                            shape_.inputs_of(layer));
        hooks.ready(2 * layer - 1);
        delta = below;
    }
}

} // namespace ranktune::trainables::mlp
