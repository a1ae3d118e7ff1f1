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
    constexpr std::string_view names[] = {"float32", "float64", "int32",   "int64",
                                          "uint8",   "uint64",  "float16", "bfloat16"};
    static_assert(std::size(names) == std::size(dtypes));
    const auto at = static_cast<std::size_t>(type);
    return at < std::size(names) ? names[at] : "unknown";
}

} // namespace ranktune::base
