// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernels. One source for two compilers: nvcc, and the host compiler for the stand-in device (tests/device), which
// defines the words of CUDA, SHARED_ARRAY among them. Nothing here depends on which it is. Kernels take pointers to
// device memory and plain values; structures hold no pointers.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>

#include "device/compute.hpp"
#include "device/rational_tanh.hpp"

/// An array that the threads of a block share. Undefined at the beginning of a block.
#ifndef SHARED_ARRAY
#define SHARED_ARRAY(type, name, count) __shared__ type name[count]
#endif

namespace ranktune::device::cuda {

/// Threads of a block of the kernels below.
constexpr unsigned block_threads = 256;
/// Blocks that add squares.
constexpr unsigned norm_blocks = 256;
/// Kernels that sum columns: a block has so many columns, and so many rows at a time.
constexpr unsigned tile_columns = 32;
constexpr unsigned tile_rows = 8;
/// Kernels with a block per row of a matrix.
constexpr unsigned row_threads = 32;

__device__ inline std::size_t first_element() { return std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ inline std::size_t elements_of_grid() { return std::size_t{gridDim.x} * blockDim.x; }

// ---- numbers of 16 bits ----

__device__ inline float widened(__half number) { return __half2float(number); }
__device__ inline float widened(__nv_bfloat16 number) { return __bfloat162float(number); }
__device__ inline void narrow_to(__half& to, float number) { to = __float2half_rn(number); }
__device__ inline void narrow_to(__nv_bfloat16& to, float number) { to = __float2bfloat16_rn(number); }

template <class Narrow>
__global__ void widen(float* to, const Narrow* from, std::size_t count) {
    for (std::size_t i = first_element(); i < count; i += elements_of_grid()) to[i] = widened(from[i]);
}

template <class Narrow>
__global__ void narrow(Narrow* to, const float* from, std::size_t count) {
    for (std::size_t i = first_element(); i < count; i += elements_of_grid()) narrow_to(to[i], from[i]);
}

// ---- gradients ----

__global__ void add_numbers(float* to, const float* from, std::size_t count) {
    for (std::size_t i = first_element(); i < count; i += elements_of_grid()) to[i] += from[i];
}

/// numbers[1 + b] = the squares that block b of `norm_blocks` adds.
__global__ void sum_squares(const float* values, std::size_t count, double* numbers) {
    SHARED_ARRAY(double, part, block_threads);
    double sum = 0.0;
    for (std::size_t i = first_element(); i < count; i += elements_of_grid())
        sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    part[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (unsigned t = 1; t < block_threads; ++t) sum += part[t];
    numbers[1 + blockIdx.x] = sum;
}

/// Every block adds the sums of all blocks, in the same order. NaN spreads.
__global__ void scale_to_norm(float* values, std::size_t count, double most, double* numbers) {
    SHARED_ARRAY(double, norm, 1);
    if (threadIdx.x == 0) {
        double sum = 0.0;
        for (unsigned b = 0; b < norm_blocks; ++b) sum += numbers[1 + b];
        norm[0] = sqrt(sum);
        if (blockIdx.x == 0) numbers[0] = norm[0];
    }
    __syncthreads();
    const double factor = most / (norm[0] + 1e-6);
    if (factor >= 1.0) return;
    for (std::size_t i = first_element(); i < count; i += elements_of_grid()) values[i] *= static_cast<float>(factor);
}

// ---- activations ----

/// Word `word` of Philox4x32-10 of the counter {block, sample, 0, 0}.
__device__ inline std::uint32_t philox_word(std::uint32_t block, std::uint32_t sample, std::uint32_t key0,
                                            std::uint32_t key1, unsigned word) {
    std::uint32_t c[4] = {block, sample, 0, 0};
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t product0 = std::uint64_t{0xD2511F53U} * c[0];
        const std::uint64_t product1 = std::uint64_t{0xCD9E8D57U} * c[2];
        c[0] = static_cast<std::uint32_t>(product1 >> 32) ^ c[1] ^ key0;
        c[1] = static_cast<std::uint32_t>(product1);
        c[2] = static_cast<std::uint32_t>(product0 >> 32) ^ c[3] ^ key1;
        c[3] = static_cast<std::uint32_t>(product0);
        key0 += 0x9E3779B9U;
        key1 += 0xBB67AE85U;
    }
    return c[word];
}

/// Whether unit `column` of `sample` is dropped, as trainables/mlp/kernels.cpp numbers the units: a group of 16 Philox
/// blocks has 128 units, the low halves of the words first.
__device__ inline bool is_dropped(std::size_t column, std::uint32_t sample, const Dropout& dropout) {
    const auto unit = static_cast<unsigned>(column % 128);
    const unsigned position = unit % 64;
    const auto block = static_cast<std::uint32_t>(column / 128 * 16 + position % 16);
    const std::uint32_t word = philox_word(block, sample, dropout.key0, dropout.key1, position / 16);
    return ((word >> (unit < 64 ? 0 : 16)) & 0xFFFFU) < dropout.threshold;
}

/// `dropout` and `narrow` may be nullptr.
__global__ void activate_rows(Activation f, float* y, const float* bias, std::size_t count, std::size_t columns,
                              const Dropout* dropout, const std::uint32_t* samples, __nv_bfloat16* narrow) {
    const bool drops = dropout != nullptr && dropout->threshold > 0;
    for (std::size_t i = first_element(); i < count; i += elements_of_grid()) {
        const std::size_t column = i % columns;
        float z = y[i] + bias[column];
        if (f == Activation::relu) z = z < 0.0F ? 0.0F : z; // NaN stays NaN
        if (f == Activation::tanh) z = rational_tanh(z);
        if (drops) // -0 marks dropped units
            z = is_dropped(column, samples[i / columns], *dropout) ? -0.0F : z * dropout->scale;
        y[i] = z;
        if (narrow != nullptr) narrow[i] = __float2bfloat16_rn(z);
    }
}

__device__ inline float slope(Activation f, float gradient, float output, float scale) {
    if (f == Activation::none) return gradient;
    if (f == Activation::relu) return output > 0.0F ? gradient * scale : 0.0F;
    const float t = output * (1.0F / scale);
    const bool dropped = output == 0.0F && signbit(output);
    return dropped ? 0.0F : gradient * scale * (1.0F - t * t);
}

/// A block has `tile_columns` columns, and adds up all rows: every thread its own ones, then one thread per column.
/// `narrow` may be nullptr.
__global__ void activate_backward_rows(Activation f, float* d, const float* y, float scale, float* bias_gradient,
                                       std::size_t rows, std::size_t columns, __nv_bfloat16* narrow) {
    SHARED_ARRAY(float, part, tile_rows* tile_columns);
    const std::size_t column = std::size_t{blockIdx.x} * tile_columns + threadIdx.x;
    float sum = 0.0F;
    for (std::size_t row = threadIdx.y; column < columns && row < rows; row += tile_rows) {
        const std::size_t i = row * columns + column;
        const float gradient = slope(f, d[i], f == Activation::none ? 0.0F : y[i], scale);
        if (f != Activation::none) d[i] = gradient;
        if (narrow != nullptr) narrow[i] = __float2bfloat16_rn(gradient);
        sum += gradient;
    }
    part[threadIdx.y * tile_columns + threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || column >= columns) return;
    for (unsigned r = 1; r < tile_rows; ++r) sum += part[r * tile_columns + threadIdx.x];
    bias_gradient[column] = sum;
}

// ---- losses: a block per row ----

__global__ void cross_entropy_rows(float* z, const std::int32_t* classes, std::size_t columns, float factor,
                                   double* losses) {
    SHARED_ARRAY(float, part, row_threads);
    SHARED_ARRAY(float, logit, 1);
    float* const row = z + std::size_t{blockIdx.x} * columns;
    const auto right = static_cast<std::size_t>(classes[blockIdx.x]);
    float top = row[0];
    for (std::size_t c = threadIdx.x; c < columns; c += row_threads) top = row[c] > top ? row[c] : top;
    part[threadIdx.x] = top;
    if (threadIdx.x == 0) logit[0] = row[right];
    __syncthreads();
    for (unsigned t = 0; t < row_threads; ++t) top = part[t] > top ? part[t] : top;
    __syncthreads(); // all have read the parts
    float sum = 0.0F;
    for (std::size_t c = threadIdx.x; c < columns; c += row_threads) {
        const float e = expf(row[c] - top);
        sum += e;
        row[c] = e;
    }
    part[threadIdx.x] = sum;
    __syncthreads();
    sum = 0.0F;
    for (unsigned t = 0; t < row_threads; ++t) sum += part[t];
    const float normalise = factor / sum;
    for (std::size_t c = threadIdx.x; c < columns; c += row_threads)
        row[c] = row[c] * normalise - (c == right ? factor : 0.0F);
    if (threadIdx.x == 0) losses[blockIdx.x] = static_cast<double>(logf(sum) - (logit[0] - top));
}

__global__ void squared_error_rows(float* z, const float* targets, std::size_t columns, float factor, double* losses) {
    SHARED_ARRAY(double, part, row_threads);
    const std::size_t first = std::size_t{blockIdx.x} * columns;
    const float slope_of_all = 2.0F * factor / static_cast<float>(columns);
    double squares = 0.0;
    for (std::size_t c = threadIdx.x; c < columns; c += row_threads) {
        const float difference = z[first + c] - targets[first + c];
        squares += static_cast<double>(difference) * static_cast<double>(difference);
        z[first + c] = slope_of_all * difference;
    }
    part[threadIdx.x] = squares;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (unsigned t = 1; t < row_threads; ++t) squares += part[t];
    losses[blockIdx.x] = squares / static_cast<double>(columns);
}

/// One block.
__global__ void total_of(const double* values, std::size_t count, double* result) {
    SHARED_ARRAY(double, part, block_threads);
    double sum = 0.0;
    for (std::size_t i = threadIdx.x; i < count; i += block_threads) sum += values[i];
    part[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (unsigned t = 1; t < block_threads; ++t) sum += part[t];
    result[0] = sum;
}

// ---- optimizers ----

/// `m` is nullptr without momentum.
__global__ void sgd_step(float* p, const float* g, float* m, std::size_t size, SgdStep step) {
    for (std::size_t i = first_element(); i < size; i += elements_of_grid()) {
        const float gradient = g[i] + step.weight_decay * p[i];
        float move = gradient;
        if (m != nullptr) {
            const float v = step.momentum * m[i] + gradient;
            m[i] = v;
            move = step.nesterov ? gradient + step.momentum * v : v;
        }
        p[i] -= step.lr * move;
    }
}

__global__ void adam_step(float* p, const float* g, float* m, float* v, std::size_t size, AdamStep step) {
    for (std::size_t i = first_element(); i < size; i += elements_of_grid()) {
        const float gradient = g[i] + step.gradient_decay * p[i];
        const float first = step.beta1 * m[i] + (1.0F - step.beta1) * gradient;
        const float second = step.beta2 * v[i] + (1.0F - step.beta2) * gradient * gradient;
        m[i] = first;
        v[i] = second;
        p[i] = step.parameter_factor * p[i] -
               step.step_size * first / (sqrtf(second) * step.root_correction + step.epsilon);
    }
}

} // namespace ranktune::device::cuda
