// SPDX-License-Identifier: Apache-2.0
#pragma once
// Compute: matrix products and the loops of networks in device memory, issued on one stream of a device.

#include <cstddef>
#include <cstdint>

#include "ranktune/base/half.hpp"

namespace ranktune::device {

/// What products of matrices multiply. They are added in float32 in all cases.
enum class Precision : std::uint8_t {
    fp32,
    tf32, ///< float32 of which the GPU uses 10 bits of the fraction
    bf16, ///< bfloat16, which has 7 bits
};

enum class Activation : std::uint8_t { none, relu, tanh };

/// A block of a row-major matrix in device memory: row r begins at data + r * stride.
template <class Number>
struct Block {
    Number* data = nullptr;
    std::size_t stride = 0; ///< in numbers
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
/// input gives the same bits on the same device. Where there is a `narrow`, it gets the result in bfloat16, too; null:
/// nothing does. Functions issue work and return; they throw DeviceError.
class Compute {
  public:
    virtual ~Compute() = default;
    /// C = op(A) op(B): op(A) is [m, k], op(B) [k, n]; a transposed matrix is stored as [k, m] or [n, k]. `precision`:
    /// fp32 or tf32.
    virtual void multiply(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k,
                          Block<const float> a, Block<const float> b, Block<float> c, Precision precision) = 0;
    /// The same for factors in bfloat16.
    virtual void multiply(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k,
                          Block<const base::BFloat16> a, Block<const base::BFloat16> b, Block<float> c) = 0;
    /// y = f(y + bias), then dropout of the rows' samples when `dropout` is not null (in device memory, as all
    /// pointers) and its threshold > 0.
    virtual void activate(Activation f, float* y, const float* bias, std::size_t rows, std::size_t columns,
                          const Dropout* dropout, const std::uint32_t* samples, base::BFloat16* narrow) = 0;
    /// d becomes the gradient with respect to the input of f (y: its output, with dropout of `scale`); bias_gradient
    /// gets the column sums. `Activation::none` only sums.
    virtual void activate_backward(Activation f, float* d, const float* y, float scale, float* bias_gradient,
                                   std::size_t rows, std::size_t columns, base::BFloat16* narrow) = 0;
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
