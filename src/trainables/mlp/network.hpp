// SPDX-License-Identifier: Apache-2.0
#pragma once
// Network: layers, activations and gradients of a multi-layer perceptron on one rank. No communication.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ranktune/base/huge_pages.hpp"
#include "trainables/mlp/kernels.hpp"

namespace ranktune::trainables::mlp {

enum class Activation : std::uint8_t { relu, tanh };

/// The layers of a network.
struct Shape {
    std::size_t features = 0;
    std::vector<std::size_t> hidden; ///< sizes of the hidden layers; may be empty
    std::size_t outputs = 0;
    Activation activation = Activation::relu;

    [[nodiscard]] std::size_t layers() const { return hidden.size() + 1; }
    [[nodiscard]] std::size_t inputs_of(std::size_t layer) const { return layer == 0 ? features : hidden[layer - 1]; }
    [[nodiscard]] std::size_t outputs_of(std::size_t layer) const {
        return layer < hidden.size() ? hidden[layer] : outputs;
    }
};

/// A parameter tensor, with PyTorch's name and layout: `layers.<i>.weight` [outputs, inputs], `layers.<i>.bias`
/// [outputs]. Tensors 2i and 2i + 1 belong to layer i.
struct TensorShape {
    std::string name;
    std::vector<std::uint64_t> shape;
    std::size_t size = 0;
    std::size_t padded = 0; ///< size rounded up to a cache line, as stored and reduced; the padding stays zero
};
[[nodiscard]] std::vector<TensorShape> tensors_of(const Shape& shape);

/// Fills one tensor as torch.nn.Linear does: uniform in +-1/sqrt(inputs), weights and biases, from the stream (seed,
/// initialise, trial, number of the tensor).
void initialise(std::span<float> values, std::size_t inputs, std::uint64_t seed, std::uint32_t trial,
                std::uint32_t tensor);

/// Forward and backward passes over blocks of rows. Owns its work memory, which is allocated once.
class Network {
  public:
    /// `parameters`: per tensor, `size` floats that outlive this object. At most `rows` rows at a time.
    Network(Shape shape, std::vector<std::span<float>> parameters, std::size_t rows);
    /// Where backward() writes: per tensor, `size` floats that outlive this object.
    void set_gradients(std::vector<std::span<float>> gradients);

    [[nodiscard]] const Shape& shape() const { return shape_; }
    [[nodiscard]] std::size_t rows() const { return rows_; }
    /// Buffer for the inputs of the next forward pass: [rows, features].
    [[nodiscard]] std::span<float> inputs() { return outputs_[0]; }

    /// Computes the outputs [count, outputs] of the first `count` rows of inputs(). The caller may overwrite them with
    /// their gradient. `masks`: one per hidden layer, or none; `samples`: the numbers of the rows' samples (only used
    /// with masks).
    std::span<float> forward(std::size_t count, std::span<const DropoutMask> masks,
                             std::span<const std::uint32_t> samples);

    struct Hooks {
        std::function<void(std::size_t tensor)> ready; ///< the gradient of this tensor is complete
        std::function<void()> poll;                    ///< between pieces of work
    };
    /// Computes the gradients of all parameters from the gradient with respect to the outputs, which is in the span
    /// that forward() returned: last tensor first, calling hooks.ready after each. With count == 0 they are zeros.
    /// Overwrites what forward() stored.
    void backward(std::size_t count, std::span<const DropoutMask> masks, const Hooks& hooks);

  private:
    void weight_gradient(std::size_t layer, std::size_t count, const float* delta, const Hooks& hooks);
    void input_gradient(std::size_t layer, std::size_t count, const float* delta, float* result, const Hooks& hooks);

    Shape shape_;
    std::vector<std::span<float>> parameters_;
    std::vector<std::span<float>> gradients_;
    std::size_t rows_;
    std::vector<base::LargeVector<float>> outputs_; ///< [0] inputs, [i + 1] outputs of layer i
    base::LargeVector<float> delta_[2]; ///< gradients with respect to the outputs of two neighbouring layers
};

} // namespace ranktune::trainables::mlp
