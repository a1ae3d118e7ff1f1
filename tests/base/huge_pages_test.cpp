// SPDX-License-Identifier: Apache-2.0
#include "ranktune/base/huge_pages.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <new>
#include <vector>

#include "support/catch.hpp"

namespace huge_pages_test {

using namespace ranktune;

TEST_CASE("memory is aligned to a cache line, and to a huge page from that size on", "[base]") {
    constexpr std::size_t floats_of_a_page = base::huge_page_bytes / sizeof(float);
    for (const std::size_t floats : {std::size_t{1}, std::size_t{1000}, floats_of_a_page, floats_of_a_page + 1}) {
        using Floats = std::vector<float, base::LargeAllocator<float>>;
        Floats values(floats);
        const auto address = reinterpret_cast<std::uintptr_t>(values.data());
        CHECK(address % (floats >= floats_of_a_page ? base::huge_page_bytes : 64) == 0);
        CHECK(std::ranges::all_of(values, [](float value) { return value == 0.0F; }));
        values.back() = 1.0F;
        CHECK(Floats(values) == values);
    }
}

TEST_CASE("zero bytes can be allocated", "[base]") {
    void* const memory = base::allocate_large(0);
    CHECK(memory != nullptr);
    base::free_large(memory);
}

TEST_CASE("an impossible size is refused", "[base]") {
    CHECK_THROWS_AS(static_cast<void>(base::allocate_large(std::numeric_limits<std::size_t>::max())), std::bad_alloc);
}

} // namespace huge_pages_test
