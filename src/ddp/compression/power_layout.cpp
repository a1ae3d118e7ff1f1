// SPDX-License-Identifier: Apache-2.0
#include "ddp/compression/power_layout.hpp"

#include <algorithm>

namespace ranktune::ddp {

namespace {

/// 0: the matrix travels as it is, because the approximation is not half as large.
std::size_t thin_rank(const HookInput& input, std::size_t tensor) {
    if (input.matrices.empty()) return 0;
    const auto [rows, columns] = input.matrices[tensor];
    const std::size_t rank = std::min({input.compression.rank, rows, columns});
    return 2 * rank * (rows + columns) <= rows * columns ? rank : 0;
}

} // namespace

PowerLayout power_layout(const HookInput& input, std::size_t bucket) {
    PowerLayout layout;
    for (const BucketPlan::Slot& slot : input.plan.buckets[bucket].slots) {
        const std::size_t rank = thin_rank(input, slot.tensor);
        if (rank == 0) continue;
        const auto [rows, columns] = input.matrices[slot.tensor];
        layout.thin.push_back({slot.tensor, slot.offset, slot.size, rank, rows, columns, layout.first, layout.second});
        layout.first += rows * rank;
        layout.second += columns * rank;
    }
    for (const BucketPlan::Slot& slot : input.plan.buckets[bucket].slots) {
        if (thin_rank(input, slot.tensor) > 0) continue;
        layout.plain.push_back({slot.offset, layout.first, slot.size});
        layout.first += slot.size;
    }
    return layout;
}

} // namespace ranktune::ddp
