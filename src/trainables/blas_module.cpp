// SPDX-License-Identifier: Apache-2.0
// The only object that is linked to the BLAS: a separate library, which trainables/blas.cpp opens when a trial
// computes. Loading a BLAS starts threads and reserves memory, which `ranktune status` should not do.

// Declared here because every library has its own header for it (cblas.h, mkl_cblas.h, flexiblas/cblas.h, ...); the
// binary interface with 32-bit integers is the same in all of them, and the enumerations are ints.
extern "C" void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                            const float* a, int lda, const float* b, int ldb, float beta, float* c, int ldc);

extern "C" {
/// A pointer, so that the dynamic loader resolves the function as usual and LD_PRELOAD works.
[[gnu::visibility("default")]] extern decltype(&cblas_sgemm) const ranktune_cblas_sgemm;
decltype(&cblas_sgemm) const ranktune_cblas_sgemm = &cblas_sgemm;
}
