// SPDX-License-Identifier: Apache-2.0
// The mathematics of networks: cuBLAS for products, kernels for the rest.

#include <cublas_v2.h>

#include <cassert>
#include <limits>
#include <string>

#include "device/cuda/accelerator.hpp"
#include "device/cuda/check.hpp"
#include "device/cuda/kernels.hpp"

namespace ranktune::device::cuda {

namespace {

void check_cublas(cublasStatus_t status, const char* call) {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    if (status == CUBLAS_STATUS_ALLOC_FAILED)
        throw DeviceMemoryError(std::string("the memory of the GPU is full (") + call + ")");
    throw DeviceError(std::string("the GPU failed: ") + call + ": " + cublasGetStatusString(status),
                      status == CUBLAS_STATUS_EXECUTION_FAILED);
}

int as_extent(std::size_t n) {
    assert(n <= static_cast<std::size_t>(std::numeric_limits<int>::max()));
    return static_cast<int>(n);
}

/// As cuBLAS recommends: 32 MiB from Hopper on, 4 MiB before.
std::size_t workspace_bytes(const DeviceFacts& facts) { return std::size_t{facts.major >= 9 ? 32U : 4U} << 20U; }

class CudaCompute final : public Compute {
  public:
    CudaCompute(int device, const DeviceFacts& facts, CudaStream& stream) : device_(device), stream_(stream) {
        use();
        check_cublas(cublasCreate_v2(&cublas_), "cublasCreate");
        try {
            check_cublas(cublasSetStream_v2(cublas_, stream.handle()), "cublasSetStream");
            // Memory of its own: the algorithms depend on its size, and work that is recorded cannot allocate.
            workspace_ = stream.allocate(workspace_bytes(facts));
            check_cublas(cublasSetWorkspace_v2(cublas_, workspace_, workspace_bytes(facts)), "cublasSetWorkspace");
        } catch (...) {
            close();
            throw;
        }
    }
    ~CudaCompute() override { close(); }
    CudaCompute(const CudaCompute&) = delete;
    CudaCompute& operator=(const CudaCompute&) = delete;

    void multiply(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k, Block<const float> a,
                  Block<const float> b, Block<float> c, Precision precision) override {
        assert(precision != Precision::bf16);
        const auto by = precision == Precision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
        multiply_any(transpose_a, transpose_b, m, n, k, a, b, c, CUDA_R_32F, by);
    }
    void multiply(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k,
                  Block<const base::BFloat16> a, Block<const base::BFloat16> b, Block<float> c) override {
        multiply_any(transpose_a, transpose_b, m, n, k, a, b, c, CUDA_R_16BF, CUBLAS_COMPUTE_32F);
    }

    void activate(Activation f, float* y, const float* bias, std::size_t rows, std::size_t columns,
                  const Dropout* dropout, const std::uint32_t* samples, base::BFloat16* narrow) override {
        use();
        check(launch_activate(f, y, bias, rows, columns, dropout, samples, narrow, stream_.handle()), "activate");
    }
    void activate_backward(Activation f, float* d, const float* y, float scale, float* bias_gradient, std::size_t rows,
                           std::size_t columns, base::BFloat16* narrow) override {
        use();
        check(launch_activate_backward(f, d, y, scale, bias_gradient, rows, columns, narrow, stream_.handle()),
              "activate_backward");
    }
    void cross_entropy(float* z, const std::int32_t* classes, std::size_t rows, std::size_t columns, float factor,
                       double* losses) override {
        use();
        check(launch_cross_entropy(z, classes, rows, columns, factor, losses, stream_.handle()), "cross_entropy");
    }
    void squared_error(float* z, const float* targets, std::size_t rows, std::size_t columns, float factor,
                       double* losses) override {
        use();
        check(launch_squared_error(z, targets, rows, columns, factor, losses, stream_.handle()), "squared_error");
    }
    void total(const double* values, std::size_t count, double* result) override {
        use();
        check(launch_total(values, count, result, stream_.handle()), "total");
    }
    void sgd(float* parameters, const float* gradients, float* momentum, std::size_t size,
             const SgdStep& step) override {
        use();
        check(launch_sgd(parameters, gradients, momentum, size, step, stream_.handle()), "sgd");
    }
    void adam(float* parameters, const float* gradients, float* first, float* second, std::size_t size,
              const AdamStep& step) override {
        use();
        check(launch_adam(parameters, gradients, first, second, size, step, stream_.handle()), "adam");
    }

  private:
    void use() const { check(cudaSetDevice(device_), "cudaSetDevice"); }

    void close() noexcept {
        cublasDestroy_v2(cublas_);
        stream_.release(workspace_);
    }

    /// cuBLAS stores by columns: it computes the transposed product of the transposed factors.
    template <class Number>
    void multiply_any(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k,
                      Block<const Number> a, Block<const Number> b, Block<float> c, cudaDataType_t type,
                      cublasComputeType_t by) {
        if (m == 0 || n == 0) return;
        assert(k > 0);
        use();
        const float one = 1.0F;
        const float zero = 0.0F;
        check_cublas(cublasGemmEx(cublas_, transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                                  transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, as_extent(n), as_extent(m), as_extent(k),
                                  &one, b.data, type, as_extent(b.stride), a.data, type, as_extent(a.stride), &zero,
                                  c.data, CUDA_R_32F, as_extent(c.stride), by, CUBLAS_GEMM_DEFAULT),
                     "cublasGemmEx");
    }

    int device_;
    CudaStream& stream_;
    cublasHandle_t cublas_ = nullptr;
    void* workspace_ = nullptr;
};

} // namespace

std::unique_ptr<Compute> make_cuda_compute(int device, const DeviceFacts& facts, CudaStream& stream) {
    return std::make_unique<CudaCompute>(device, facts, stream);
}

int cublas_version() {
    int major = 0;
    int minor = 0;
    if (cublasGetProperty(MAJOR_VERSION, &major) != CUBLAS_STATUS_SUCCESS) return 0;
    if (cublasGetProperty(MINOR_VERSION, &minor) != CUBLAS_STATUS_SUCCESS) return 0;
    return major * 1000 + minor * 10;
}

} // namespace ranktune::device::cuda
