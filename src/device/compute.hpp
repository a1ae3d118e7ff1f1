// SPDX-License-Identifier: Apache-2.0
#pragma once
// Compute: matrix products and the loops of networks in device memory, issued on one stream of a device.

#include <cstddef>
#include <cstdint>

namespace ranktune::device {

enum class Activation : std::uint8_t { none, relu, tanh };

/// A block of a row-major float matrix in device memory: row r begins at data + r * stride.
template <class Float>
struct Block {
    Float* data = nullptr;
    std::size_t stride = 0; ///< in floats
};

/// Dropout of one layer: the constants of trainables/mlp/kernels.hpp.
struct Dropout {
    std::uint32_t key0 = 0;
    std::uint32_t key1 = 0;
    std::uint32_t threshold = 0; ///< 0: none
    float scale = 1.0F;
};

/// The constants of a step of stochastic gradient descent.
struct SgdStep {
    float lr = 0.0F;
    float momentum = 0.0F;
    float weight_decay = 0.0F;
    bool nesterov = false;
};

/// The constants of a step of Adam or AdamW.
struct AdamStep {
    float beta1 = 0.0F;
    float beta2 = 0.0F;
    float step_size = 0.0F;
    float root_correction = 0.0F;
    float epsilon = 0.0F;
    float gradient_decay = 0.0F;
    float parameter_factor = 1.0F;
};

/// All pointers are device memory; matrices are row-major without gaps unless they are blocks. The rules are those of
/// trainables/mlp/kernels.hpp and optimizer.hpp, in float32; only the order of sums differs, and it is fixed: the same
/// input gives the same bits on the same device. Functions issue work and return; they throw DeviceError.
class Compute {
  public:
    virtual ~Compute() = default;
    /// C = op(A) op(B): op(A) is [m, k], op(B) [k, n]; a transposed matrix is stored as [k, m] or [n, k].
    virtual void multiply(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k,
                          Block<const float> a, Block<const float> b, Block<float> c) = 0;
    /// y = f(y + bias), then dropout of the rows' samples when `dropout.threshold` > 0.
    virtual void activate(Activation f, float* y, const float* bias, std::size_t rows, std::size_t columns,
                          const Dropout& dropout, const std::uint32_t* samples) = 0;
    /// d becomes the gradient with respect to the input of f (y: its output, with dropout of `scale`); bias_gradient
    /// gets the column sums. `Activation::none` only sums.
    virtual void activate_backward(Activation f, float* d, const float* y, float scale, float* bias_gradient,
                                   std::size_t rows, std::size_t columns) = 0;
    /// Cross entropy of softmax(z) and its gradient in z; `losses` gets the loss of every row (double).
    virtual void cross_entropy(float* z, const std::int32_t* classes, std::size_t rows, std::size_t columns,
                               float factor, double* losses) = 0;
    virtual void squared_error(float* z, const float* targets, std::size_t rows, std::size_t columns, float factor,
                               double* losses) = 0;
    /// result[0] = the sum of `count` numbers.
    virtual void total(const double* values, std::size_t count, double* result) = 0;
    /// `momentum` is nullptr when step.momentum is 0.
    virtual void sgd(float* parameters, const float* gradients, float* momentum, std::size_t size,
                     const SgdStep& step) = 0;
    virtual void adam(float* parameters, const float* gradients, float* first, float* second, std::size_t size,
                      const AdamStep& step) = 0;
};

} // namespace ranktune::device
