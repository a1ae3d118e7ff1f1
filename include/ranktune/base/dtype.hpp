// SPDX-License-Identifier: Apache-2.0
#pragma once
// DType: the types of numbers that buffers, reductions and checkpoints know.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "ranktune/base/half.hpp"

namespace ranktune::base {

/// Checkpoint digests and the wire format contain these numbers: never change them.
enum class DType : std::uint8_t {
    float32 = 0,
    float64 = 1,
    int32 = 2,
    int64 = 3,
    uint8 = 4,
    uint64 = 5,
    float16 = 6,
    bfloat16 = 7,
};
inline constexpr DType dtypes[] = {DType::float32, DType::float64, DType::int32,   DType::int64,
                                   DType::uint8,   DType::uint64,  DType::float16, DType::bfloat16};

/// Bytes of one element. Throws FormatError for an unknown type.
[[nodiscard]] std::size_t size_of(DType type);
/// "float32"; "unknown" for an unknown type.
[[nodiscard]] std::string_view name(DType type);

/// C++ types with a DType. Integers go by size and sign, so that `long` and `long long` are both int64; std::byte is
/// uint8. `bool` and character types have none.
template <class T>
concept Element = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, Float16> ||
                  std::same_as<T, BFloat16> || std::same_as<T, std::byte> || std::same_as<T, std::uint8_t> ||
                  (std::signed_integral<T> && (sizeof(T) == 4 || sizeof(T) == 8) && !std::same_as<T, wchar_t>) ||
                  (std::unsigned_integral<T> && sizeof(T) == 8);

template <Element T>
constexpr DType dtype_of() {
    if constexpr (std::same_as<T, float>)
        return DType::float32;
    else if constexpr (std::same_as<T, double>)
        return DType::float64;
    else if constexpr (std::same_as<T, Float16>)
        return DType::float16;
    else if constexpr (std::same_as<T, BFloat16>)
        return DType::bfloat16;
    else if constexpr (sizeof(T) == 1)
        return DType::uint8;
    else if constexpr (std::signed_integral<T>)
        return sizeof(T) == 4 ? DType::int32 : DType::int64;
    else
        return DType::uint64;
}

} // namespace ranktune::base
