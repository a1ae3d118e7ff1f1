// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one door to BLAS: single-precision matrix products, and the number of threads they use. The library is loaded by
// the first call that needs it, and stays. All functions but built_with() throw base::Error when it cannot be loaded,
// with what to install.

#include <cstddef>
#include <string>

namespace ranktune::trainables::blas {

enum class Transpose : bool { no = false, yes = true };

/// C = op(A) op(B) + beta C for row-major matrices without gaps: op(A) is [m, k], op(B) [k, n], C [m, n]. A matrix that
/// is transposed is stored as [k, m] or [n, k]. Extents below 2^31. With k == 0, C becomes beta C.
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

/// Sets the threads of the library through its own interface (what it reads from the environment, it read when
/// it was loaded). Throws base::Error when the library is the reference BLAS, with the line that installs a fast one.
/// Does nothing more than that check for a library whose interface is not known.
void use_threads(int threads);

/// "OpenBLAS", "MKL", "BLIS", "FlexiBLAS (backend)", "Arm Performance Libraries", "reference BLAS" or "unknown BLAS".
[[nodiscard]] std::string library();

/// What the module was linked to when it was built, "openblas 0.3.21". Loads nothing.
[[nodiscard]] std::string built_with();

} // namespace ranktune::trainables::blas
