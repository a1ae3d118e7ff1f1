// SPDX-License-Identifier: Apache-2.0
#pragma once
// The only access to BLAS: single-precision matrix products, and the number of their threads. The first call that needs
// the library loads it. All functions except built_with() throw base::Error, with what to install, when it cannot be
// loaded.

#include <cstddef>
#include <string>

namespace ranktune::trainables::blas {

enum class Transpose : bool { no = false, yes = true };

/// C = op(A) op(B) + beta C for row-major matrices without gaps: op(A) is [m, k], op(B) [k, n], C [m, n]. A transposed
/// matrix is stored as [k, m] or [n, k]. Extents below 2^31. With k == 0, C becomes beta C.
void multiply(Transpose transpose_a, Transpose transpose_b, std::size_t m, std::size_t n, std::size_t k, const float* a,
              const float* b, float beta, float* c);

/// A block of a larger row-major matrix: row r begins at data + r * stride.
template <class Float>
struct Block {
    Float* data = nullptr;
    std::size_t stride = 0; ///< in floats; at least the row's length
};
/// The same for blocks.
void multiply(Transpose transpose_a, Transpose transpose_b, std::size_t m, std::size_t n, std::size_t k,
              Block<const float> a, Block<const float> b, float beta, Block<float> c);

/// Sets the library's number of threads through its own interface (it reads the environment only when it is loaded).
/// Throws base::Error for the reference BLAS, with the command that installs a fast one. For an unknown library only
/// that check is made.
void use_threads(int threads);

/// "OpenBLAS", "MKL", "BLIS", "FlexiBLAS (backend)", "Arm Performance Libraries", "reference BLAS" or "unknown BLAS".
[[nodiscard]] std::string library();

/// The library that the module was linked to at build time, "openblas 0.3.21". Loads nothing.
[[nodiscard]] std::string built_with();

} // namespace ranktune::trainables::blas
