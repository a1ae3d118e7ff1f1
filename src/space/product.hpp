// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sizes of cross products.

#include <cstdint>

namespace ranktune::space {

/// a x b, at most 2^63.
[[nodiscard]] constexpr std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b) {
    constexpr std::uint64_t most = std::uint64_t{1} << 63;
    if (a == 0 || b == 0) return 0;
    return a > most / b ? most : a * b;
}

} // namespace ranktune::space
