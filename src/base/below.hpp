// SPDX-License-Identifier: Apache-2.0
#pragma once
// A uniform number below a bound, from uniform numbers of 64 bits.

#include <cstdint>

namespace ranktune::base {

/// In 0 .. bound-1, without bias (Lemire 2019). Calls `next` once, rarely more often. Requires bound > 0.
template <class Next>
[[nodiscard]] std::uint64_t uniform_below(std::uint64_t bound, Next&& next) {
    __extension__ using Wide = unsigned __int128;
    Wide product = static_cast<Wide>(next()) * bound;
    if (static_cast<std::uint64_t>(product) < bound)
        for (const std::uint64_t threshold = (0 - bound) % bound; static_cast<std::uint64_t>(product) < threshold;)
            product = static_cast<Wide>(next()) * bound;
    return static_cast<std::uint64_t>(product >> 64);
}

} // namespace ranktune::base
