// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the gradients of a GradientReducer travel: as they are, or compressed.

#include <cstddef>
#include <cstdint>

namespace ranktune::ddp {

/// Compression of float32 gradients between ranks. Nothing is compressed in a trial of one rank. Every form gives the
/// same bits on all ranks; on cores the same again for the same input and number of ranks.
struct Compression {
    enum class Kind : std::uint8_t {
        none,
        /// 16 bits per number: every rank rounds its gradients once, their mean is computed in float and rounded once.
        fp16,
        bf16,
        /// bfloat16 that NCCL itself adds, rounding at every rank: only on GPUs. Between many nodes it sends less.
        bf16_nccl,
        /// Matrices travel as products of two thin ones: Vogels, Karimireddy, Jaggi, "PowerSGD: Practical Low-Rank
        /// Gradient Compression for Distributed Optimization" (NeurIPS 2019), algorithms 1 and 2, with warm start.
        powersgd,
        /// Of each tensor the numbers with the largest magnitudes travel: Lin et al., "Deep Gradient Compression"
        /// (ICLR 2018), without its corrections of the momentum. Of equal ones the first.
        topk,
    };
    Kind kind = Kind::none;
    /// powersgd: rank of the approximations; at most the smaller side of a matrix.
    std::size_t rank = 2;
    /// topk: share of the numbers of a tensor that travel, > 0 and <= 1; at least one number does.
    double density = 0.01;
    friend bool operator==(const Compression&, const Compression&) = default;

    /// Whether what is not sent is kept and added to the next step's gradients (error feedback). That is state of the
    /// training: see GradientReducer::settle.
    [[nodiscard]] bool feeds_back() const { return kind == Kind::powersgd || kind == Kind::topk; }
};

/// The shape of a gradient for powersgd: the first rows * columns numbers of the tensor, row by row; numbers after them
/// are padding and count as zero. A tensor of another number of dimensions is [first, product of the others].
struct Matrix {
    std::size_t rows = 0; ///< 0: not a matrix, not compressed
    std::size_t columns = 0;
};

} // namespace ranktune::ddp
