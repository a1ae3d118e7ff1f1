// SPDX-License-Identifier: Apache-2.0
#pragma once
// The loops of the multi-layer perceptron that are not matrix products. All matrices are row-major without gaps. Each
// loop is compiled for several instruction sets (multiversion.hpp).

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ranktune::trainables::mlp {

/// y[r, c] = max(y[r, c] + bias[c], 0); NaN stays NaN.
void add_bias_relu(float* y, const float* bias, std::size_t rows, std::size_t columns);
/// y[r, c] = tanh(y[r, c] + bias[c]), within 4e-7 of the exact value; never -0.
void add_bias_tanh(float* y, const float* bias, std::size_t rows, std::size_t columns);
/// y[r, c] += bias[c]
void add_bias(float* y, const float* bias, std::size_t rows, std::size_t columns);

/// Probability and random stream of dropout in one layer and epoch.
struct DropoutMask {
    std::array<std::uint32_t, 2> key{}; ///< of the Philox stream of (seed, dropout, trial, layer, epoch)
    std::uint32_t threshold = 0;        ///< a unit is dropped when its 16-bit number is below; 0: no dropout

    /// 1 / (probability of being kept), of the rounded probability.
    [[nodiscard]] float scale() const { return 65536.0F / static_cast<float>(65536 - threshold); }
};
/// Requires 0 <= probability <= 0.95. The probability is rounded to a multiple of 2^-16.
[[nodiscard]] DropoutMask dropout_mask(double probability, std::uint64_t seed, std::uint32_t trial, std::uint32_t layer,
                                       std::uint64_t epoch);
/// Row r belongs to sample samples[r] (its number in the dataset): drops units (to -0, which marks them) and multiplies
/// the others by mask.scale(). The same sample gets the same mask in any row of any rank.
void drop(float* y, std::span<const std::uint32_t> samples, std::size_t columns, const DropoutMask& mask);

/// d is the loss's gradient with respect to the layer's output y and becomes that with respect to its input;
/// bias_gradient gets the column sums of the result. `scale`: of the dropout applied to y; 1 without dropout.
void relu_backward(float* d, const float* y, float scale, float* bias_gradient, std::size_t rows, std::size_t columns);
void tanh_backward(float* d, const float* y, float scale, float* bias_gradient, std::size_t rows, std::size_t columns);
/// bias_gradient[c] = sum over r of d[r, c]
void column_sums(const float* d, float* bias_gradient, std::size_t rows, std::size_t columns);

/// What a batch adds to the metrics.
struct LossSums {
    double loss = 0.0;         ///< sum over samples
    std::uint64_t correct = 0; ///< classification: samples whose largest output is the right one (lowest index of ties)
};
/// Cross entropy of softmax(z). With gradient: z becomes factor * (softmax(z) - one_hot(class)).
LossSums cross_entropy(float* z, std::span<const std::int32_t> classes, std::size_t columns, bool gradient,
                       float factor);
/// Mean over the columns of (z - target)^2. With gradient: z becomes factor * 2 (z - target) / columns.
LossSums squared_error(float* z, const float* targets, std::size_t rows, std::size_t columns, bool gradient,
                       float factor);

} // namespace ranktune::trainables::mlp
