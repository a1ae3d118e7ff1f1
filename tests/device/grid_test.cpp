// SPDX-License-Identifier: Apache-2.0
// The stand-in runs every thread of a grid, and finds barriers that are missing or not reached by all.

#include <vector>

#include "device/stand_in/cuda_words.hpp"
#include "device/stand_in/machine.hpp"
#include "support/catch.hpp"

namespace grid_test {

namespace {

/// Each block sums 32 numbers in shared memory. Returns how many of `rounds` went wrong.
int wrong_sums(bool with_barrier, int rounds) {
    int wrong = 0;
    for (int round = 0; round < rounds; ++round) {
        std::vector<float> sums(3);
        stand_in::run_grid(
            {3, 1, 1}, {8, 4, 1},
            [&] {
                SHARED_ARRAY(float, part, 32);
                const unsigned me = threadIdx.y * blockDim.x + threadIdx.x;
                part[me] = static_cast<float>(me);
                if (with_barrier) __syncthreads();
                if (me != 0) return;
                for (unsigned i = 0; i < 32; ++i) sums[blockIdx.x] += part[i];
            },
            static_cast<unsigned>(round));
        for (const float sum : sums) wrong += sum == 496.0F ? 0 : 1;
    }
    return wrong;
}

} // namespace

TEST_CASE("every thread of every block runs once", "[stand-in]") {
    std::vector<int> runs(2 * 3 * 5 * 7);
    stand_in::run_grid(
        {2, 3, 1}, {5, 1, 7},
        [&] {
            const unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
            ++runs[(block * blockDim.z + threadIdx.z) * blockDim.x + threadIdx.x];
        },
        1);
    for (const int count : runs) CHECK(count == 1);
}

TEST_CASE("a forgotten barrier is found", "[stand-in]") {
    CHECK(wrong_sums(true, 50) == 0);
    CHECK(wrong_sums(false, 50) > 0);
}

TEST_CASE("a barrier that some threads do not reach is found", "[stand-in]") {
    const auto run = [](unsigned returns) {
        stand_in::run_grid(
            {1, 1, 1}, {4, 1, 1},
            [&] {
                if (threadIdx.x < returns) return;
                __syncthreads();
            },
            1);
    };
    CHECK_NOTHROW(run(0));
    CHECK_THROWS_AS(run(1), stand_in::Fault);
    CHECK_THROWS_AS(run(3), stand_in::Fault);
    CHECK_NOTHROW(run(4));
}

} // namespace grid_test
