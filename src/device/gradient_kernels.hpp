// SPDX-License-Identifier: Apache-2.0
#pragma once
// GradientKernels: the arithmetic of compressed gradients in device memory.

#include <cstddef>
#include <cstdint>

#include "ranktune/base/dtype.hpp"

namespace ranktune::device {

/// A number of a gradient that travels, with its place in the bucket.
struct ChosenNumber {
    std::uint32_t place = 0;
    float value = 0.0F;
};

/// A tensor of a bucket: `kept` of its numbers [begin, begin + size) travel, as chosen[first] and those after it.
struct ChoiceSlot {
    std::uint64_t begin = 0;
    std::uint64_t size = 0;
    std::uint64_t kept = 0;
    std::uint64_t first = 0;
};

/// All pointers are device memory; matrices are row-major without gaps. The order of additions is fixed: the same bits
/// on all ranks with the same kind of GPU, and the same bits again. The rules are those of
/// ddp/compression/half_hook.cpp, top_hook.cpp and low_rank.hpp. Functions issue work to the stream for which they were
/// made; they throw DeviceError.
class GradientKernels {
  public:
    virtual ~GradientKernels() = default;
    /// float16 or bfloat16: to[i] = the sum of part r's number i over the `ranks` parts of `count` numbers, added in
    /// float in the order of ranks, divided by `divisor` and rounded once.
    virtual void add_parts(void* to, const void* parts, std::size_t count, std::size_t ranks, base::DType type,
                           float divisor) = 0;
    /// to[i] = factor * from[i], in float.
    virtual void widen_times(float* to, const void* from, std::size_t count, base::DType from_type, float factor) = 0;

    /// Adds `gradient` to `error`; moves the numbers of each slot with the largest magnitudes to `chosen`, of equal
    /// ones the first; zeros stay in `error`. NaN counts as larger than any number.
    virtual void choose(float* error, const float* gradient, const ChoiceSlot* slots, std::size_t slot_count,
                        ChosenNumber* chosen) = 0;
    /// to[place] += value for `count` numbers with different places.
    virtual void scatter(float* to, const ChosenNumber* from, std::size_t count) = 0;

    /// Makes the columns of X, [rows, rank], orthonormal, as ddp::orthonormalise does.
    virtual void orthonormalise(float* x, std::size_t rows, std::size_t rank) = 0;
    /// How often zero columns are filled again.
    static constexpr std::size_t refills = 4;
    /// The same; columns that became zero are filled from `random`, [refills, rows, rank], and tried again.
    virtual void orthonormalise_or_refill(float* x, const float* random, std::size_t rows, std::size_t rank) = 0;
    /// M = P Q^T: M is [rows, columns], P [rows, rank], Q [columns, rank].
    virtual void expand(float* m, const float* p, const float* q, std::size_t rows, std::size_t columns,
                        std::size_t rank) = 0;
    /// M -= P Q^T.
    virtual void subtract_expanded(float* m, const float* p, const float* q, std::size_t rows, std::size_t columns,
                                   std::size_t rank) = 0;
};

} // namespace ranktune::device
