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

class CudaCompute final : public Compute {
  public:
    CudaCompute(int device, CudaStream& stream) : device_(device), stream_(stream) {
        use();
        check_cublas(cublasCreate_v2(&cublas_), "cublasCreate");
        check_cublas(cublasSetStream_v2(cublas_, stream.handle()), "cublasSetStream");
    }
    ~CudaCompute() override { cublasDestroy_v2(cublas_); }
    CudaCompute(const CudaCompute&) = delete;
    CudaCompute& operator=(const CudaCompute&) = delete;

    /// cuBLAS stores by columns: it computes the transposed product of the transposed factors.
    void multiply(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k, Block<const float> a,
                  Block<const float> b, Block<float> c) override {
        if (m == 0 || n == 0) return;
        assert(k > 0);
        use();
        const float one = 1.0F;
        const float zero = 0.0F;
        check_cublas(
            cublasSgemm_v2(cublas_, transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                           as_extent(n), as_extent(m), as_extent(k), &one, b.data, as_extent(b.stride), a.data,
                           as_extent(a.stride), &zero, c.data, as_extent(c.stride)),
            "cublasSgemm");
    }

    void activate(Activation f, float* y, const float* bias, std::size_t rows, std::size_t columns,
                  const Dropout& dropout, const std::uint32_t* samples) override {
        use();
        check(launch_activate(f, y, bias, rows, columns, dropout, samples, stream_.handle()), "activate");
    }
    void activate_backward(Activation f, float* d, const float* y, float scale, float* bias_gradient, std::size_t rows,
                           std::size_t columns) override {
        use();
        check(launch_activate_backward(f, d, y, scale, bias_gradient, rows, columns, stream_.handle()),
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

    int device_;
    CudaStream& stream_;
    cublasHandle_t cublas_ = nullptr;
};

} // namespace

std::unique_ptr<Compute> make_cuda_compute(int device, CudaStream& stream) {
    return std::make_unique<CudaCompute>(device, stream);
}

int cublas_version() {
    int major = 0;
    int minor = 0;
    if (cublasGetProperty(MAJOR_VERSION, &major) != CUBLAS_STATUS_SUCCESS) return 0;
    if (cublasGetProperty(MINOR_VERSION, &minor) != CUBLAS_STATUS_SUCCESS) return 0;
    return major * 1000 + minor * 10;
}

} // namespace ranktune::device::cuda
