// SPDX-License-Identifier: Apache-2.0
#include "ranktune/data/sampling.hpp"

#include <cassert>
#include <numeric>
#include <utility>

#include "ranktune/base/rng.hpp"

namespace ranktune::data {

void shuffle_epoch(std::vector<std::uint32_t>& order, std::size_t count, std::uint64_t seed, std::uint32_t trial,
                   std::uint64_t epoch) {
    assert(count <= std::uint64_t{1} << 32);
    order.resize(count);
    std::iota(order.begin(), order.end(), std::uint32_t{0});
    base::RngStream random(seed, base::Purpose::shuffle, trial, static_cast<std::uint32_t>(epoch));
    for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
}

} // namespace ranktune::data
