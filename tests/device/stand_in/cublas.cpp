// SPDX-License-Identifier: Apache-2.0
// The functions of libcublas.so.13 that libranktune-cuda imports: OpenBLAS on the stream's thread.

#include <cublas_v2.h>

#include "machine.hpp"

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
};

Handle* native(cublasHandle_t handle) { return reinterpret_cast<Handle*>(handle); }

int cblas(cublasOperation_t operation) { return operation == CUBLAS_OP_N ? 111 : 112; }

/// Bytes from the first to the last element of a column-major matrix.
std::size_t extent(int rows, int columns, int stride) {
    const auto all = static_cast<std::size_t>(columns - 1) * static_cast<std::size_t>(stride);
    return (all + static_cast<std::size_t>(rows)) * sizeof(float);
}

float* matrix(const float* address, int rows, int columns, int stride, int device) {
    return reinterpret_cast<float*>(contents(address, extent(rows, columns, stride), device, "cublasSgemm"));
}

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

/// alpha and beta lie on the host and are read now.
cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t transpose_a, cublasOperation_t transpose_b,
                              int m, int n, int k, const float* alpha, const float* a, int lda, const float* b, int ldb,
                              const float* beta, float* c, int ldc) {
    Stream* const stream = native(handle)->stream;
    if (stream == nullptr || m < 0 || n < 0 || k < 0) return CUBLAS_STATUS_INVALID_VALUE;
    enqueue(stream, "cublasSgemm", [=, alpha = *alpha, beta = *beta, device = device_of(stream)] {
        const bool ta = transpose_a != CUBLAS_OP_N;
        const bool tb = transpose_b != CUBLAS_OP_N;
        cblas_sgemm(column_major, cblas(transpose_a), cblas(transpose_b), m, n, k, alpha,
                    matrix(a, ta ? k : m, ta ? m : k, lda, device), lda, matrix(b, tb ? n : k, tb ? k : n, ldb, device),
                    ldb, beta, matrix(c, m, n, ldc, device), ldc);
    });
    return CUBLAS_STATUS_SUCCESS;
}
}
