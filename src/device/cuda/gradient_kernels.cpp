// SPDX-License-Identifier: Apache-2.0
#include "device/gradient_kernels.hpp"

#include <cassert>

#include "device/cuda/accelerator.hpp"
#include "device/cuda/check.hpp"
#include "device/cuda/kernels.hpp"

namespace ranktune::device::cuda {

namespace {

bool is_brain(base::DType type) {
    assert(base::size_of(type) == 2);
    return type == base::DType::bfloat16;
}

class CudaGradientKernels final : public GradientKernels {
  public:
    CudaGradientKernels(int device, CudaStream& stream) : device_(device), stream_(stream) {}

    void add_parts(void* to, const void* parts, std::size_t count, std::size_t ranks, base::DType type,
                   float divisor) override {
        use();
        check(launch_add_parts(to, parts, count, ranks, divisor, is_brain(type), stream_.handle()), "add_parts");
    }
    void widen_times(float* to, const void* from, std::size_t count, base::DType from_type, float factor) override {
        use();
        check(launch_widen_times(to, from, count, factor, is_brain(from_type), stream_.handle()), "widen_times");
    }
    void choose(float* error, const float* gradient, const ChoiceSlot* slots, std::size_t slot_count,
                ChosenNumber* chosen) override {
        use();
        check(launch_choose(error, gradient, slots, slot_count, chosen, stream_.handle()), "choose");
    }
    void scatter(float* to, const ChosenNumber* from, std::size_t count) override {
        use();
        check(launch_scatter(to, from, count, stream_.handle()), "scatter");
    }
    void orthonormalise(float* x, std::size_t rows, std::size_t rank) override {
        use();
        check(launch_orthonormalise(x, nullptr, rows, rank, stream_.handle()), "orthonormalise");
    }
    void orthonormalise_or_refill(float* x, const float* random, std::size_t rows, std::size_t rank) override {
        use();
        check(launch_orthonormalise(x, random, rows, rank, stream_.handle()), "orthonormalise_or_refill");
    }
    void expand(float* m, const float* p, const float* q, std::size_t rows, std::size_t columns,
                std::size_t rank) override {
        use();
        check(launch_expand(m, p, q, rows, columns, rank, false, stream_.handle()), "expand");
    }
    void subtract_expanded(float* m, const float* p, const float* q, std::size_t rows, std::size_t columns,
                           std::size_t rank) override {
        use();
        check(launch_expand(m, p, q, rows, columns, rank, true, stream_.handle()), "subtract_expanded");
    }

  private:
    void use() const { check(cudaSetDevice(device_), "cudaSetDevice"); }

    int device_;
    CudaStream& stream_;
};

} // namespace

std::unique_ptr<GradientKernels> make_cuda_gradient_kernels(int device, CudaStream& stream) {
    return std::make_unique<CudaGradientKernels>(device, stream);
}

} // namespace ranktune::device::cuda
