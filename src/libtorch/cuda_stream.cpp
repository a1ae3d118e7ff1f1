// SPDX-License-Identifier: Apache-2.0
// With a LibTorch that has CUDA.

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "device/device.hpp"
#include "libtorch/cuda.hpp"

namespace ranktune::libtorch {

namespace {

class CudaStreamScope final : public StreamScope {
  public:
    CudaStreamScope(cudaStream_t stream, int ordinal)
        : guard_(c10::cuda::getStreamFromExternal(stream, static_cast<c10::DeviceIndex>(ordinal))) {}

  private:
    c10::cuda::CUDAStreamGuard guard_;
};

} // namespace

std::unique_ptr<StreamScope> use_compute_stream(device::Accelerator& accelerator, int ordinal) {
    return std::make_unique<CudaStreamScope>(static_cast<cudaStream_t>(accelerator.compute_stream().native()), ordinal);
}

} // namespace ranktune::libtorch
