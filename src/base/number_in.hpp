// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace ranktune::base {

/// The number that `text` is, as a whole, as std::from_chars reads it; nullopt: it is none, or does not fit into `T`.
/// `radix` is that of integers.
template <class T>
[[nodiscard]] std::optional<T> number_in(std::string_view text, int radix = 10) {
    T number{};
    const char* const end = text.data() + text.size();
    std::from_chars_result read{};
    if constexpr (std::is_floating_point_v<T>)
        read = std::from_chars(text.data(), end, number);
    else
        read = std::from_chars(text.data(), end, number, radix);
    return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

} // namespace ranktune::base
