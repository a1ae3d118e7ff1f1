// SPDX-License-Identifier: Apache-2.0
#include "ranktune/data/sampling.hpp"

#include <algorithm>
#include <set>

#include "support/catch.hpp"

namespace sampling_test {

using namespace ranktune::data;

TEST_CASE("shards are contiguous, differ by at most one and cover the range", "[data]") {
    for (const std::size_t count : {0U, 1U, 2U, 7U, 12U, 100U}) {
        for (int size = 1; size <= 9; ++size) {
            const Range whole{5, 5 + count};
            std::size_t reached = whole.begin;
            std::size_t smallest = count;
            std::size_t largest = 0;
            for (int rank = 0; rank < size; ++rank) {
                const Range mine = shard(whole, rank, size);
                CHECK(mine.begin == reached);
                reached = mine.end;
                smallest = std::min(smallest, mine.size());
                largest = std::max(largest, mine.size());
            }
            CHECK(reached == whole.end);
            CHECK(largest - smallest <= 1);
        }
    }
}

TEST_CASE("seven positions over three ranks are split into 3, 2 and 2", "[data]") {
    CHECK(shard({0, 7}, 0, 3) == Range{0, 3});
    CHECK(shard({0, 7}, 1, 3) == Range{3, 5});
    CHECK(shard({0, 7}, 2, 3) == Range{5, 7});
    CHECK(shard({0, 1}, 2, 3).size() == 0);
}

TEST_CASE("an epoch visits every sample once, in another order than the next epoch or trial", "[data]") {
    std::vector<std::uint32_t> first;
    shuffle_epoch(first, 1000, 1, 2, 3);
    CHECK(std::set<std::uint32_t>(first.begin(), first.end()).size() == 1000);
    CHECK(*std::max_element(first.begin(), first.end()) == 999);
    std::vector<std::uint32_t> other;
    shuffle_epoch(other, 1000, 1, 2, 3);
    CHECK(other == first);
    shuffle_epoch(other, 1000, 1, 2, 4);
    CHECK(other != first);
    shuffle_epoch(other, 1000, 1, 3, 3);
    CHECK(other != first);
    shuffle_epoch(other, 1000, 2, 2, 3);
    CHECK(other != first);
}

TEST_CASE("the order of an epoch never changes between versions", "[data]") {
    std::vector<std::uint32_t> order;
    shuffle_epoch(order, 8, 1, 0, 0);
    CHECK(order == std::vector<std::uint32_t>{2, 7, 0, 4, 5, 6, 3, 1});
}

TEST_CASE("every position of a shuffle is equally likely", "[data]") {
    std::vector<int> first_place(6, 0);
    std::vector<std::uint32_t> order;
    for (std::uint64_t epoch = 0; epoch < 6000; ++epoch) {
        shuffle_epoch(order, 6, 1, 0, epoch);
        ++first_place[order[0]];
    }
    for (const int count : first_place) CHECK(std::abs(count - 1000) < 150); // five standard deviations
}

TEST_CASE("batches have equal size except the last one", "[data]") {
    const Batches batches(10, 4);
    CHECK(batches.size() == 3);
    CHECK(batches[0] == Range{0, 4});
    CHECK(batches[2] == Range{8, 10});
    CHECK(Batches(8, 4).size() == 2);
    CHECK(Batches(3, 64).size() == 1);
    CHECK(Batches(3, 64)[0] == Range{0, 3});
}

} // namespace sampling_test
