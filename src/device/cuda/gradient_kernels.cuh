// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernels of compressed gradients, in the same form as kernels.cuh.

#include "device/cuda/kernels.cuh"
#include "device/gradient_kernels.hpp"

namespace ranktune::device::cuda {

// ---- 16 bits ----

template <class Narrow>
__global__ void add_narrow_parts(Narrow* to, const Narrow* parts, std::size_t count, std::size_t ranks, float divisor) {
    for (std::size_t i = first_element(); i < count; i += elements_of_grid()) {
        float sum = 0.0F;
        for (std::size_t r = 0; r < ranks; ++r) sum += widened(parts[r * count + i]);
        narrow_to(to[i], sum / divisor);
    }
}

template <class Narrow>
__global__ void widen_times(float* to, const Narrow* from, std::size_t count, float factor) {
    for (std::size_t i = first_element(); i < count; i += elements_of_grid()) to[i] = factor * widened(from[i]);
}

// ---- the largest numbers ----

__device__ inline std::uint32_t magnitude_of(float value) {
    return static_cast<std::uint32_t>(__float_as_int(value)) & 0x7FFFFFFFU;
}

/// What the threads of a block know of the slot: `smallest` magnitude that travels, and how many of that one do.
struct Threshold {
    std::uint32_t smallest;
    std::uint64_t ties;
};

/// Radix selection, eight bits of the magnitude at a time. All threads of the block call it; `counts` has 256 numbers
/// and `found` two, shared by the block.
__device__ inline Threshold threshold_of(const float* values, const ChoiceSlot& slot, unsigned long long* counts,
                                         unsigned long long* found) {
    std::uint32_t prefix = 0;
    std::uint32_t mask = 0;
    std::uint64_t wanted = slot.kept;
    for (int shift = 24; shift >= 0; shift -= 8) {
        counts[threadIdx.x] = 0;
        __syncthreads();
        for (std::uint64_t i = threadIdx.x; i < slot.size; i += block_threads) {
            const std::uint32_t mine = magnitude_of(values[slot.begin + i]);
            if ((mine & mask) == prefix) atomicAdd(&counts[(mine >> shift) & 0xFFU], 1ULL);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            unsigned digit = 255;
            while (digit > 0 && counts[digit] < wanted) wanted -= counts[digit--];
            found[0] = digit;
            found[1] = wanted;
        }
        __syncthreads();
        prefix |= static_cast<std::uint32_t>(found[0]) << shift;
        mask |= 0xFFU << shift;
        wanted = found[1];
        __syncthreads(); // all have read what was found
    }
    return {prefix, wanted};
}

/// A block per slot. Every thread has a piece of consecutive numbers, so that what travels is in the order of places.
__global__ void choose_largest(float* error, const float* gradient, const ChoiceSlot* slots, ChosenNumber* chosen) {
    SHARED_ARRAY(unsigned long long, counts, block_threads);
    SHARED_ARRAY(unsigned long long, found, 2);
    SHARED_ARRAY(unsigned long long, first, block_threads);
    SHARED_ARRAY(unsigned long long, ties, block_threads);
    const ChoiceSlot slot = slots[blockIdx.x];
    for (std::uint64_t i = threadIdx.x; i < slot.size; i += block_threads)
        error[slot.begin + i] += gradient[slot.begin + i];
    __syncthreads();
    const Threshold threshold = threshold_of(error, slot, counts, found);
    const std::uint64_t piece = (slot.size + block_threads - 1) / block_threads;
    const std::uint64_t begin = threadIdx.x * piece < slot.size ? threadIdx.x * piece : slot.size;
    const std::uint64_t end = begin + piece < slot.size ? begin + piece : slot.size;
    std::uint64_t larger = 0;
    std::uint64_t equal = 0;
    for (std::uint64_t i = begin; i < end; ++i) {
        const std::uint32_t mine = magnitude_of(error[slot.begin + i]);
        larger += mine > threshold.smallest ? 1 : 0;
        equal += mine == threshold.smallest ? 1 : 0;
    }
    first[threadIdx.x] = larger;
    ties[threadIdx.x] = equal;
    __syncthreads();
    if (threadIdx.x == 0) { // turns counts into the first place in `chosen`, and the ties that travel, of each thread
        std::uint64_t next = slot.first;
        std::uint64_t left = threshold.ties;
        for (unsigned t = 0; t < block_threads; ++t) {
            const std::uint64_t taken = ties[t] < left ? ties[t] : left;
            const std::uint64_t count = first[t] + taken;
            first[t] = next;
            ties[t] = taken;
            next += count;
            left -= taken;
        }
    }
    __syncthreads();
    std::uint64_t to = first[threadIdx.x];
    std::uint64_t left = ties[threadIdx.x];
    for (std::uint64_t i = begin; i < end; ++i) {
        const float value = error[slot.begin + i];
        const std::uint32_t mine = magnitude_of(value);
        if (mine < threshold.smallest || (mine == threshold.smallest && left == 0)) continue;
        if (mine == threshold.smallest) --left;
        chosen[to].place = static_cast<std::uint32_t>(slot.begin + i);
        chosen[to].value = value;
        ++to;
        error[slot.begin + i] = 0.0F;
    }
}

__global__ void scatter_numbers(float* to, const ChosenNumber* from, std::size_t count) {
    for (std::size_t i = first_element(); i < count; i += elements_of_grid()) to[from[i].place] += from[i].value;
}

// ---- products of two thin matrices ----

/// Sum over the rows of x[., a] * x[., b], in double; on all threads. `part`: block_threads + 1 numbers that the block
/// shares.
__device__ inline double column_product(const float* x, std::size_t rows, std::size_t rank, std::size_t a,
                                        std::size_t b, double* part) {
    double sum = 0.0;
    for (std::size_t i = threadIdx.x; i < rows; i += block_threads)
        sum += static_cast<double>(x[i * rank + a]) * static_cast<double>(x[i * rank + b]);
    part[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        sum = 0.0;
        for (unsigned t = 0; t < block_threads; ++t) sum += part[t];
        part[block_threads] = sum;
    }
    __syncthreads();
    sum = part[block_threads];
    __syncthreads(); // all have read it
    return sum;
}

/// As ddp::orthonormalise; whether a column became zero. All threads of the block call it.
__device__ inline bool orthonormal_columns(float* x, std::size_t rows, std::size_t rank, double* part) {
    constexpr double dependent = 1e-6;
    bool zeroed = false;
    for (std::size_t c = 0; c < rank; ++c) {
        const double before = column_product(x, rows, rank, c, c, part);
        for (std::size_t earlier = 0; earlier < c; ++earlier) {
            const double share = column_product(x, rows, rank, c, earlier, part);
            for (std::size_t i = threadIdx.x; i < rows; i += block_threads)
                x[i * rank + c] -= static_cast<float>(share * static_cast<double>(x[i * rank + earlier]));
            __syncthreads();
        }
        const double after = column_product(x, rows, rank, c, c, part);
        const bool zero = before == 0.0 || after <= before * dependent * dependent; // false for NaN
        const double norm = sqrt(after);
        for (std::size_t i = threadIdx.x; i < rows; i += block_threads) {
            float* const number = x + i * rank + c;
            *number = zero ? 0.0F : static_cast<float>(static_cast<double>(*number) / norm);
        }
        __syncthreads();
        zeroed = zeroed || zero;
    }
    return zeroed;
}

/// One block.
__global__ void make_orthonormal(float* x, std::size_t rows, std::size_t rank) {
    SHARED_ARRAY(double, part, block_threads + 1);
    orthonormal_columns(x, rows, rank, part);
}

/// One block. `random`: see GradientKernels::orthonormalise_or_refill.
__global__ void make_orthonormal_or_refill(float* x, const float* random, std::size_t rows, std::size_t rank) {
    SHARED_ARRAY(double, part, block_threads + 1);
    for (std::size_t draw = 0; draw < GradientKernels::refills; ++draw) {
        if (!orthonormal_columns(x, rows, rank, part)) return;
        for (std::size_t c = 0; c < rank; ++c) {
            if (column_product(x, rows, rank, c, c, part) != 0.0) continue;
            for (std::size_t i = threadIdx.x; i < rows; i += block_threads)
                x[i * rank + c] = random[draw * rows * rank + i * rank + c];
        }
        __syncthreads();
    }
}

/// M = P Q^T, or M -= P Q^T.
__global__ void expand_product(float* m, const float* p, const float* q, std::size_t count, std::size_t columns,
                               std::size_t rank, bool subtract) {
    for (std::size_t i = first_element(); i < count; i += elements_of_grid()) {
        const float* const a = p + i / columns * rank;
        const float* const b = q + i % columns * rank;
        float sum = 0.0F;
        for (std::size_t c = 0; c < rank; ++c) sum += a[c] * b[c];
        m[i] = subtract ? m[i] - sum : sum;
    }
}

} // namespace ranktune::device::cuda
