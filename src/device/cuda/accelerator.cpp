// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/accelerator.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include "comm/backoff.hpp"
#include "device/cuda/check.hpp"

namespace ranktune::device::cuda {

namespace {

constexpr std::size_t bounce_bytes = std::size_t{4} << 20U;

} // namespace

CudaAccelerator::CudaAccelerator(int number, DeviceFacts facts)
    : number_(number),
      facts_(std::move(facts)),
      budget_([this] { static_cast<void>(relieve()); }),
      compute_(number, budget_),
      communication_(number, budget_),
      copies_(number, budget_),
      computed_(number),
      communicated_(number),
      bounce_(allocate_pinned(bounce_bytes)) {}

void CudaAccelerator::use() const { check(cudaSetDevice(number_), "cudaSetDevice"); }

void* CudaAccelerator::allocate(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    return budget_.room_for(bytes, [this](std::size_t size) {
        use();
        void* memory = nullptr;
        check(cudaMalloc(&memory, size), ("cudaMalloc of " + std::to_string(size) + " bytes").c_str());
        return memory;
    });
}

/// The pool of cudaMallocAsync gives nothing back by itself while nobody synchronises. What is freed in order of a
/// stream is only there when the stream has got to it.
void CudaAccelerator::trim() noexcept {
    try {
        comm::Backoff backoff;
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
        for (CudaStream* stream : {&compute_, &communication_})
            while (!stream->idle() && std::chrono::steady_clock::now() < end) backoff.pause();
    } catch (const DeviceError&) {
        return;
    }
    cudaMemPool_t pool = nullptr;
    if (cudaDeviceGetDefaultMemPool(&pool, number_) == cudaSuccess) cudaMemPoolTrimTo(pool, 0);
    static_cast<void>(cudaGetLastError());
}

/// For memory that is to be freed: earlier work may use it. After an error of the device nobody uses it.
void CudaAccelerator::finish_all() noexcept {
    try {
        comm::Backoff backoff;
        for (CudaStream* stream : {&compute_, &communication_, &copies_})
            while (!stream->idle()) backoff.pause();
        use();
    } catch (const DeviceError&) { // freeing fails as well then
    }
}

void CudaAccelerator::release(void* memory) noexcept {
    if (memory == nullptr) return;
    finish_all();
    budget_.give_back(memory);
    cudaFree(memory);
}

void CudaAccelerator::order_copies() {
    use();
    compute_.record(computed_);
    communication_.record(communicated_);
    copies_.wait(computed_);
    copies_.wait(communicated_);
}

/// Polls, because a call that blocks could spin.
void CudaAccelerator::finish_copies() {
    comm::Backoff backoff;
    while (!copies_.idle()) backoff.pause();
}

void CudaAccelerator::copy_from_host(void* to, const void* from, std::size_t bytes) {
    order_copies();
    for (std::size_t done = 0; done < bytes; done += bounce_bytes) {
        const std::size_t size = std::min(bytes - done, bounce_bytes);
        std::memcpy(bounce_.get(), static_cast<const std::byte*>(from) + done, size);
        copies_.upload(static_cast<std::byte*>(to) + done, bounce_.get(), size);
        finish_copies();
    }
}

void CudaAccelerator::copy_to_host(void* to, const void* from, std::size_t bytes) {
    order_copies();
    for (std::size_t done = 0; done < bytes; done += bounce_bytes) {
        const std::size_t size = std::min(bytes - done, bounce_bytes);
        copies_.download(bounce_.get(), static_cast<const std::byte*>(from) + done, size);
        finish_copies();
        std::memcpy(static_cast<std::byte*>(to) + done, bounce_.get(), size);
    }
}

std::shared_ptr<void> CudaAccelerator::allocate_pinned(std::size_t bytes) {
    use();
    void* memory = nullptr;
    const cudaError_t code = cudaHostAlloc(&memory, std::max<std::size_t>(bytes, 1), cudaHostAllocDefault);
    if (code == cudaErrorMemoryAllocation) {
        static_cast<void>(cudaGetLastError());
        throw std::bad_alloc(); // of the host
    }
    check(code, "cudaHostAlloc");
    return {memory, [this](void* pinned) {
                finish_all();
                cudaFreeHost(pinned);
            }};
}

std::unique_ptr<Compute> CudaAccelerator::make_compute(Stream& on) {
    try {
        return make_cuda_compute(number_, facts_, static_cast<CudaStream&>(on));
    } catch (const DeviceMemoryError&) { // of the workspace, or within cuBLAS
        static_cast<void>(relieve());
    }
    return make_cuda_compute(number_, facts_, static_cast<CudaStream&>(on));
}

std::unique_ptr<GradientKernels> CudaAccelerator::make_gradient_kernels(Stream& on) {
    return make_cuda_gradient_kernels(number_, static_cast<CudaStream&>(on));
}

std::unique_ptr<Communicator> CudaAccelerator::make_communicator(const CommunicatorId& id, int size, int rank,
                                                                 const std::string& name) {
    return make_nccl_communicator(number_, id, size, rank, name);
}

} // namespace ranktune::device::cuda
