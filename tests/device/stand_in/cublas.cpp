// SPDX-License-Identifier: Apache-2.0
// The functions of libcublas.so.13 that libranktune-cuda imports: OpenBLAS on the stream's thread.

#include <cublas_v2.h>

#include <bit>
#include <cmath>
#include <vector>

#include "machine.hpp"
#include "ranktune/base/half.hpp"

extern "C" {
// Of OpenBLAS; its header would define the enumerations of cuBLAS's again.
void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float* a, int lda,
                 const float* b, int ldb, float beta, float* c, int ldc);
void openblas_set_num_threads(int threads);
}

using namespace stand_in;

namespace {

constexpr int column_major = 102;

struct Handle {
    Stream* stream = nullptr;
    void* workspace = nullptr; ///< a library may write there at any time
    std::size_t workspace_bytes = 0;
};

Handle* native(cublasHandle_t handle) { return reinterpret_cast<Handle*>(handle); }

int cblas(cublasOperation_t operation) { return operation == CUBLAS_OP_N ? 111 : 112; }

/// Elements from the first to the last one of a column-major matrix.
std::size_t extent(int rows, int columns, int stride) {
    return static_cast<std::size_t>(columns - 1) * static_cast<std::size_t>(stride) + static_cast<std::size_t>(rows);
}

float to_tf32(float value) {
    if (!std::isfinite(value)) return value;
    return std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) + 0x1000U) & 0xFFFFE000U);
}

/// A factor as the GPU sees it: bfloat16 widened; of float32, for TF32, 10 bits of the fraction (rounded to nearest).
class Factor {
  public:
    Factor(const void* address, cudaDataType_t type, bool tf32, std::size_t count, int device) {
        const std::size_t size = type == CUDA_R_16BF ? 2 : 4;
        const std::byte* const from = contents(address, count * size, device, "cublasGemmEx");
        numbers_ = reinterpret_cast<const float*>(from);
        if (type == CUDA_R_32F && !tf32) return;
        rounded_.resize(count);
        for (std::size_t i = 0; i < count; ++i)
            rounded_[i] = type == CUDA_R_16BF
                              ? static_cast<float>(reinterpret_cast<const ranktune::base::BFloat16*>(from)[i])
                              : to_tf32(numbers_[i]);
        numbers_ = rounded_.data();
    }
    [[nodiscard]] const float* data() const { return numbers_; }

  private:
    const float* numbers_;
    std::vector<float> rounded_;
};

} // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
    openblas_set_num_threads(1);
    *handle = reinterpret_cast<cublasHandle_t>(new Handle);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
    delete native(handle);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
    native(handle)->stream = reinterpret_cast<Stream*>(stream);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
    *value = type == MAJOR_VERSION ? 13 : 0;
    return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusString(cublasStatus_t) { return "an error of the stand-in"; }

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, std::size_t bytes) {
    native(handle)->workspace = workspace;
    native(handle)->workspace_bytes = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

/// alpha and beta lie on the host and are read now. C is float32; sums are added in float32.
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transpose_a, cublasOperation_t transpose_b, int m,
                            int n, int k, const void* alpha, const void* a, cudaDataType_t a_type, int lda,
                            const void* b, cudaDataType_t b_type, int ldb, const void* beta, void* c,
                            cudaDataType_t c_type, int ldc, cublasComputeType_t by, cublasGemmAlgo_t) {
    const Handle used = *native(handle);
    if (used.stream == nullptr || used.workspace == nullptr || m < 0 || n < 0 || k < 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    const bool tf32 = by == CUBLAS_COMPUTE_32F_FAST_TF32;
    const bool known = a_type == CUDA_R_32F || (a_type == CUDA_R_16BF && !tf32);
    if (!known || a_type != b_type || c_type != CUDA_R_32F || (by != CUBLAS_COMPUTE_32F && !tf32))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    enqueue(used.stream, "cublasGemmEx",
            [=, alpha = *static_cast<const float*>(alpha), beta = *static_cast<const float*>(beta),
             device = device_of(used.stream)] {
                const bool ta = transpose_a != CUBLAS_OP_N;
                const bool tb = transpose_b != CUBLAS_OP_N;
                static_cast<void>(contents(used.workspace, used.workspace_bytes, device, "cublasGemmEx's workspace"));
                const Factor left(a, a_type, tf32, extent(ta ? k : m, ta ? m : k, lda), device);
                const Factor right(b, b_type, tf32, extent(tb ? n : k, tb ? k : n, ldb), device);
                auto* const result =
                    reinterpret_cast<float*>(contents(c, extent(m, n, ldc) * sizeof(float), device, "cublasGemmEx"));
                cblas_sgemm(column_major, cblas(transpose_a), cblas(transpose_b), m, n, k, alpha, left.data(), lda,
                            right.data(), ldb, beta, result, ldc);
            });
    return CUBLAS_STATUS_SUCCESS;
}
}
