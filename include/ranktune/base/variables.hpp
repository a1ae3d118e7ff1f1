// SPDX-License-Identifier: Apache-2.0
#pragma once
// An environment as a value: libraries are given one, and never read that of the process.

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace ranktune::base {

/// Environment variables by name.
using Variables = std::map<std::string, std::string, std::less<>>;

/// Nothing: not set. An empty text: set and empty, which is not the same for CUDA_VISIBLE_DEVICES.
[[nodiscard]] inline std::optional<std::string_view> value_of(const Variables& variables, std::string_view name) {
    const auto it = variables.find(name);
    if (it == variables.end()) return std::nullopt;
    return std::string_view(it->second);
}

} // namespace ranktune::base
