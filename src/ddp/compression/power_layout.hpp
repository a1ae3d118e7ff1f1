// SPDX-License-Identifier: Apache-2.0
#pragma once
// What powersgd sends of a bucket: which tensors travel as two thin matrices, and where these lie in the two sums.

#include <cstddef>
#include <vector>

#include "ddp/compression/hook.hpp"

namespace ranktune::ddp {

/// A matrix M that travels as P, [rows, rank], and Q, [columns, rank].
struct ThinMatrix {
    std::size_t tensor = 0;
    std::size_t offset = 0; ///< in the bucket
    std::size_t size = 0;   ///< of the tensor, with padding
    std::size_t rank = 0;
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::size_t p_begin = 0; ///< in the first sum
    std::size_t q_begin = 0; ///< in the second sum
    [[nodiscard]] std::size_t numbers() const { return rows * columns; }
};

/// The first sum has every P, then the tensors that travel as they are; the second one every Q.
struct PowerLayout {
    /// A tensor that travels as it is.
    struct Plain {
        std::size_t offset = 0; ///< in the bucket
        std::size_t begin = 0;  ///< in the first sum
        std::size_t size = 0;
    };
    std::vector<ThinMatrix> thin;
    std::vector<Plain> plain;
    std::size_t first = 0;  ///< numbers of the first sum
    std::size_t second = 0; ///< of the second one
};

[[nodiscard]] PowerLayout power_layout(const HookInput& input, std::size_t bucket);

} // namespace ranktune::ddp
