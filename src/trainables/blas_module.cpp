// SPDX-License-Identifier: Apache-2.0
// The only object that is linked to the BLAS: a library of its own, which trainables/blas.cpp opens when a trial
// computes. A BLAS that is loaded starts threads and reserves memory, also in a `ranktune status` that multiplies
// nothing.

// Declared here because every library has its own header for it (cblas.h, mkl_cblas.h, flexiblas/cblas.h, ...); the
// binary interface with 32-bit integers is the same in all of them, and the enumerations are ints.
extern "C" void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                            const float* a, int lda, const float* b, int ldb, float beta, float* c, int ldc);

extern "C" {
/// A pointer, so that the loader finds the function as for any program that is linked to the BLAS: LD_PRELOAD counts.
[[gnu::visibility("default")]] extern decltype(&cblas_sgemm) const ranktune_cblas_sgemm;
decltype(&cblas_sgemm) const ranktune_cblas_sgemm = &cblas_sgemm;
}
