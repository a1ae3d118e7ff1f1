// SPDX-License-Identifier: Apache-2.0
#include "ranktune/ddp/buffer.hpp"

#include <algorithm>
#include <cstdint>

#include "support/catch.hpp"

using namespace ranktune;

TEST_CASE("buffers begin at a cache line, large ones at a huge page", "[ddp]") {
    for (const std::size_t floats :
         {std::size_t{1}, std::size_t{1000}, std::size_t{1} << 19U, (std::size_t{1} << 19U) + 1}) {
        ddp::Buffer buffer(floats);
        const auto address = reinterpret_cast<std::uintptr_t>(buffer.data());
        CHECK(address % (floats * sizeof(float) >= std::size_t{2} << 20U ? std::size_t{2} << 20U : 64) == 0);
        CHECK(std::ranges::all_of(buffer, [](float value) { return value == 0.0F; }));
        buffer.back() = 1.0F;
        CHECK(ddp::Buffer(buffer) == buffer);
    }
}
