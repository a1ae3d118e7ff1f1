// SPDX-License-Identifier: Apache-2.0
#pragma once
// The words of CUDA for a compiler of the host, so that the source of kernels is also that of the stand-in.

#include <math.h>

#include <bit>
#include <cstddef>

#include "grid.hpp"

namespace stand_in {

void wait_for_block();
/// Memory that the threads of a block share under one key; filled with NaN at the beginning of a block.
void* shared_by_block(unsigned key, std::size_t bytes);

} // namespace stand_in

/// Of the fibre that runs.
extern thread_local stand_in::Extent threadIdx;
extern thread_local stand_in::Extent blockIdx;
extern thread_local stand_in::Extent blockDim;
extern thread_local stand_in::Extent gridDim;
inline void __syncthreads() { stand_in::wait_for_block(); }
/// The threads of a grid are fibres of one thread.
inline unsigned long long atomicAdd(unsigned long long* to, unsigned long long value) {
    const unsigned long long before = *to;
    *to += value;
    return before;
}
inline int __float_as_int(float value) { return std::bit_cast<int>(value); }

#define SHARED_ARRAY(type, name, count) \
    type* const name = static_cast<type*>(::stand_in::shared_by_block(__LINE__, sizeof(type) * (count)))
