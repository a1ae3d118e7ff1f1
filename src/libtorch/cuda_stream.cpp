// SPDX-License-Identifier: Apache-2.0
// With a LibTorch that has CUDA.

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <torch/types.h>

#include "libtorch/cuda.hpp"
#include "libtorch/streams.hpp"

namespace ranktune::libtorch {

namespace {

class CudaStreamGuard final : public CurrentStreams::Guard {
  public:
    CudaStreamGuard(cudaStream_t stream, int ordinal)
        : guard_(c10::cuda::getStreamFromExternal(stream, static_cast<c10::DeviceIndex>(ordinal))) {}

  private:
    c10::cuda::CUDAStreamGuard guard_;
};

class CudaStreams final : public CurrentStreams {
  public:
    [[nodiscard]] void* current(int ordinal) override {
        return c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(ordinal)).stream();
    }
    [[nodiscard]] std::unique_ptr<Guard> make_current(void* stream, int ordinal) override {
        return std::make_unique<CudaStreamGuard>(static_cast<cudaStream_t>(stream), ordinal);
    }
};

} // namespace

CurrentStreams& streams_of_libtorch() {
    static CudaStreams streams;
    return streams;
}

void limit_memory_of_libtorch(int ordinal, double share) {
    const auto device = static_cast<c10::DeviceIndex>(ordinal);
    static_cast<void>(::torch::empty({1}, ::torch::Device(::torch::kCUDA, device))); // makes LibTorch's allocator
    c10::cuda::CUDACachingAllocator::setMemoryFraction(share, device);
}

void choose_device_of_libtorch(int ordinal) { c10::cuda::set_device(static_cast<c10::DeviceIndex>(ordinal)); }

void empty_cache_of_libtorch() { c10::cuda::CUDACachingAllocator::emptyCache(); }

} // namespace ranktune::libtorch
