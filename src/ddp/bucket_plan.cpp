// SPDX-License-Identifier: Apache-2.0
#include <cassert>

#include "ranktune/ddp/gradient_reducer.hpp"

namespace ranktune::ddp {

BucketPlan plan_buckets(std::span<const std::size_t> tensor_sizes, std::size_t limit) {
    assert(limit > 0);
    BucketPlan plan;
    for (std::size_t tensor = tensor_sizes.size(); tensor-- > 0;) {
        const std::size_t size = tensor_sizes[tensor];
        const bool full = !plan.buckets.empty() && plan.buckets.back().size + size > limit;
        if (plan.buckets.empty() || full) plan.buckets.emplace_back();
        BucketPlan::Bucket& bucket = plan.buckets.back();
        bucket.slots.push_back({tensor, bucket.size, size});
        bucket.size += size;
    }
    return plan;
}

} // namespace ranktune::ddp
