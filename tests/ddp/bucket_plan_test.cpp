// SPDX-License-Identifier: Apache-2.0
#include "ranktune/ddp/gradient_reducer.hpp"
#include "support/catch.hpp"

namespace bucket_plan_test {

using namespace ranktune::ddp;

namespace {
std::vector<std::size_t> sizes_of(const BucketPlan& plan) {
    std::vector<std::size_t> sizes;
    for (const auto& bucket : plan.buckets) sizes.push_back(bucket.size);
    return sizes;
}
} // namespace

TEST_CASE("buckets are filled from the last tensor to the first", "[ddp]") {
    const std::vector<std::size_t> tensors{10, 20, 30, 5};
    const BucketPlan plan = plan_buckets(tensors, 40);
    REQUIRE(plan.buckets.size() == 2);
    CHECK(sizes_of(plan) == std::vector<std::size_t>{35, 30});
    CHECK(plan.buckets[0].slots[0].tensor == 3);
    CHECK(plan.buckets[0].slots[0].offset == 0);
    CHECK(plan.buckets[0].slots[1].tensor == 2);
    CHECK(plan.buckets[0].slots[1].offset == 5);
    CHECK(plan.buckets[1].slots[0].tensor == 1);
    CHECK(plan.buckets[1].slots[1].tensor == 0);
    CHECK(plan.buckets[1].slots[1].offset == 20);
    CHECK(plan.buckets[1].slots[1].size == 10);
}

TEST_CASE("a tensor that fits exactly stays in the bucket, and a larger one gets its own bucket", "[ddp]") {
    CHECK(sizes_of(plan_buckets(std::vector<std::size_t>{20, 20}, 40)) == std::vector<std::size_t>{40});
    CHECK(sizes_of(plan_buckets(std::vector<std::size_t>{20, 21}, 40)) == std::vector<std::size_t>{21, 20});
    CHECK(sizes_of(plan_buckets(std::vector<std::size_t>{1, 100, 1}, 40)) == std::vector<std::size_t>{1, 100, 1});
}

TEST_CASE("the first bucket may have a smaller limit, in any order", "[ddp]") {
    const std::vector<std::size_t> tensors{30, 30, 9, 1};
    CHECK(sizes_of(plan_buckets(tensors, 60, 10)) == std::vector<std::size_t>{10, 60});
    CHECK(sizes_of(plan_buckets(tensors, 60, 5)) == std::vector<std::size_t>{1, 39, 30});
    CHECK(sizes_of(plan_buckets(tensors, 39, 100)) == std::vector<std::size_t>{10, 30, 30}); // a larger one is no limit
    CHECK(sizes_of(plan_buckets(tensors, 60, 30, std::vector<std::size_t>{0, 3, 2, 1})) ==
          std::vector<std::size_t>{30, 40});
}

TEST_CASE("empty tensors take part and no tensors make no buckets", "[ddp]") {
    const BucketPlan plan = plan_buckets(std::vector<std::size_t>{0, 3, 0}, 4);
    REQUIRE(plan.buckets.size() == 1);
    CHECK(plan.buckets[0].slots.size() == 3);
    CHECK(plan_buckets({}, 4).buckets.empty());
}

} // namespace bucket_plan_test
