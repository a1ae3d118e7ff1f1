// SPDX-License-Identifier: Apache-2.0
#pragma once
// The types of C++ that stand for those of numbers that are reduced.

#include <cstdint>
#include <string>
#include <type_traits>

#include "ranktune/base/buffer.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::ddp {

/// The type in which numbers of type T are added.
template <class T>
using Wide = std::conditional_t<sizeof(T) == 2, float, T>;

/// Calls `body` with a number of the C++ type of `type`; throws for types that cannot be reduced.
template <class Body>
void with_type(base::DType type, Body&& body) {
    using base::DType;
    switch (type) {
        case DType::float32:
            return body(float{});
        case DType::float64:
            return body(double{});
        case DType::int32:
            return body(std::int32_t{});
        case DType::int64:
            return body(std::int64_t{});
        case DType::uint64:
            return body(std::uint64_t{});
        case DType::float16:
            return body(base::Float16{});
        case DType::bfloat16:
            return body(base::BFloat16{});
        case DType::uint8:
            break;
    }
    throw base::UsageError("numbers of type " + std::string(base::name(type)) + " cannot be reduced");
}

} // namespace ranktune::ddp
