// SPDX-License-Identifier: Apache-2.0
#pragma once
// The arithmetic of PowerSGD. Matrices are row-major without gaps. Every result has one order of additions and uses no
// function of a mathematical library: the same bits on all ranks, whatever processor they have.

#include <cstddef>
#include <cstdint>
#include <span>

namespace ranktune::ddp {

/// P = M Q: M is [rows, columns], Q [columns, rank], P [rows, rank].
void multiply(std::span<const float> m, std::span<const float> q, std::size_t rank, std::span<float> p);
/// Q = M^T P.
void multiply_transposed(std::span<const float> m, std::span<const float> p, std::size_t rank, std::span<float> q);
/// M = P Q^T.
void expand(std::span<const float> p, std::span<const float> q, std::size_t rank, std::span<float> m);
/// M -= P Q^T.
void subtract_expanded(std::span<const float> p, std::span<const float> q, std::size_t rank, std::span<float> m);

/// Makes the columns of X, [rows, rank], orthonormal by the modified Gram-Schmidt process, with sums in double. A
/// column that depends on those before it (all of it but a share of 1e-6 lies in their span) becomes zero. NaN spreads.
/// Returns whether a column became zero.
bool orthonormalise(std::span<float> x, std::size_t rank);

/// Fills zero columns of Q with numbers that depend on `tensor` and `draw` only, uniform in [-0.5, 0.5).
void refill_zero_columns(std::span<float> q, std::size_t rank, std::uint32_t tensor, std::uint32_t draw);

} // namespace ranktune::ddp
