// SPDX-License-Identifier: Apache-2.0
// With a LibTorch without CUDA, which never computes on a GPU.

#include "libtorch/cuda.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::libtorch {

std::unique_ptr<StreamScope> use_compute_stream(device::Accelerator& /*accelerator*/, int /*ordinal*/) {
    throw base::UsageError("libranktune-torch was built with a LibTorch that has no CUDA");
}

} // namespace ranktune::libtorch
