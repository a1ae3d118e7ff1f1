// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers of any ElementType as one type of C++.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "ranktune/base/half.hpp"
#include "ranktune/data/source.hpp"

namespace ranktune::data {

/// Calls `use` with a number of the type that `type` stands for.
template <class Use>
void with_type(ElementType type, Use&& use) {
    switch (type) {
        case ElementType::int8:
            return use(std::int8_t());
        case ElementType::uint8:
            return use(std::uint8_t());
        case ElementType::int16:
            return use(std::int16_t());
        case ElementType::uint16:
            return use(std::uint16_t());
        case ElementType::int32:
            return use(std::int32_t());
        case ElementType::uint32:
            return use(std::uint32_t());
        case ElementType::int64:
            return use(std::int64_t());
        case ElementType::uint64:
            return use(std::uint64_t());
        case ElementType::float16:
            return use(base::Float16());
        case ElementType::bfloat16:
            return use(base::BFloat16());
        case ElementType::float32:
            return use(float());
        case ElementType::float64:
            return use(double());
    }
}

/// Each number, rounded to float. Requires bytes that are aligned for `type`, and as many numbers as `to` has.
inline void to_floats(ElementType type, std::span<const std::byte> bytes, std::span<float> to) {
    with_type(type, [&](auto number) {
        const auto* const from = reinterpret_cast<const decltype(number)*>(bytes.data());
        std::transform(from, from + to.size(), to.begin(), [](auto value) { return static_cast<float>(value); });
    });
}

} // namespace ranktune::data
