// SPDX-License-Identifier: Apache-2.0
// With a LibTorch without CUDA, which never computes on a GPU.

#include "libtorch/cuda.hpp"
#include "libtorch/streams.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::libtorch {

CurrentStreams& streams_of_libtorch() {
    throw base::UsageError("libranktune-torch was built with a LibTorch that has no CUDA");
}

void limit_memory_of_libtorch(int, double) {}

void choose_device_of_libtorch(int) {}

void empty_cache_of_libtorch() {}

} // namespace ranktune::libtorch
