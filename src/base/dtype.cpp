// SPDX-License-Identifier: Apache-2.0
#include "ranktune/base/dtype.hpp"

#include <string>

#include "ranktune/base/error.hpp"

namespace ranktune::base {

std::size_t size_of(DType type) {
    switch (type) {
        case DType::float32:
        case DType::int32:
            return 4;
        case DType::float64:
        case DType::int64:
        case DType::uint64:
            return 8;
        case DType::uint8:
            return 1;
        case DType::float16:
        case DType::bfloat16:
            return 2;
    }
    throw FormatError("unknown type of numbers " + std::to_string(static_cast<unsigned>(type)));
}

std::string_view name(DType type) {
    switch (type) {
        case DType::float32:
            return "float32";
        case DType::float64:
            return "float64";
        case DType::int32:
            return "int32";
        case DType::int64:
            return "int64";
        case DType::uint8:
            return "uint8";
        case DType::uint64:
            return "uint64";
        case DType::float16:
            return "float16";
        case DType::bfloat16:
            return "bfloat16";
    }
    return "unknown";
}

} // namespace ranktune::base
