// SPDX-License-Identifier: Apache-2.0
#pragma once
// A GPU over CUDA.

#include <memory>
#include <string>

#include "device/communicator.hpp"
#include "device/compute.hpp"
#include "device/cuda/streams.hpp"
#include "device/device.hpp"
#include "device/gradient_kernels.hpp"

namespace ranktune::device::cuda {

class CudaAccelerator final : public Accelerator {
  public:
    CudaAccelerator(int number, DeviceFacts facts);

    [[nodiscard]] std::string name() const override { return "device " + std::to_string(number_); }
    [[nodiscard]] void* allocate(std::size_t bytes) override;
    void release(void* memory) noexcept override;
    void copy_from_host(void* to, const void* from, std::size_t bytes) override;
    void copy_to_host(void* to, const void* from, std::size_t bytes) override;

    [[nodiscard]] const DeviceFacts& facts() const override { return facts_; }
    void limit_memory(std::uint64_t bytes) override { budget_.limit(bytes); }
    [[nodiscard]] Stream& compute_stream() override { return compute_; }
    [[nodiscard]] Stream& communication_stream() override { return communication_; }
    [[nodiscard]] Stream& copy_stream() override { return copies_; }
    [[nodiscard]] std::unique_ptr<Stream> borrow(void* native) override {
        return std::make_unique<CudaStream>(number_, budget_, static_cast<cudaStream_t>(native));
    }
    [[nodiscard]] std::unique_ptr<Event> make_event() override { return std::make_unique<CudaEvent>(number_); }
    [[nodiscard]] std::unique_ptr<Event> make_timed_event() override {
        return std::make_unique<CudaEvent>(number_, cudaEventDefault);
    }
    [[nodiscard]] std::shared_ptr<void> allocate_pinned(std::size_t bytes) override;
    [[nodiscard]] std::unique_ptr<Compute> make_compute(Stream& on) override;
    [[nodiscard]] std::unique_ptr<GradientKernels> make_gradient_kernels(Stream& on) override;
    [[nodiscard]] std::unique_ptr<Communicator> make_communicator(const CommunicatorId& id, int size, int rank,
                                                                  const std::string& name) override;

  private:
    void use() const;
    void trim() noexcept override;
    void finish_all() noexcept;
    /// The copy stream begins after all work of the others that was issued so far.
    void order_copies();
    void finish_copies();

    int number_;
    DeviceFacts facts_;
    MemoryBudget budget_; ///< of `allocate` and of all streams
    CudaStream compute_;
    CudaStream communication_;
    CudaStream copies_;
    CudaEvent computed_;
    CudaEvent communicated_;
    std::shared_ptr<void> bounce_; ///< pinned, for copies from and to memory that is not
};

/// cuBLAS and kernels on `stream`, which outlives the result.
[[nodiscard]] std::unique_ptr<Compute> make_cuda_compute(int device, const DeviceFacts& facts, CudaStream& stream);
/// Kernels on `stream`, which outlives the result.
[[nodiscard]] std::unique_ptr<GradientKernels> make_cuda_gradient_kernels(int device, CudaStream& stream);
/// As loaded; 0: unknown.
[[nodiscard]] int cublas_version();

/// See Accelerator::make_communicator and Runtime. Two files: one for builds without NCCL.
[[nodiscard]] std::unique_ptr<Communicator> make_nccl_communicator(int device, const CommunicatorId& id, int size,
                                                                   int rank, const std::string& name);
[[nodiscard]] CommunicatorId make_nccl_id();
[[nodiscard]] int nccl_version();

} // namespace ranktune::device::cuda
