// SPDX-License-Identifier: Apache-2.0
#pragma once
// An environment as a value: library code takes it as an argument and never reads the environment of the process.

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace ranktune::base {

/// Environment variables by name.
using Variables = std::map<std::string, std::string, std::less<>>;

/// nullopt: not set. Empty: set to nothing, which CUDA_VISIBLE_DEVICES tells apart from not set.
[[nodiscard]] inline std::optional<std::string_view> value_of(const Variables& variables, std::string_view name) {
    const auto it = variables.find(name);
    if (it == variables.end()) return std::nullopt;
    return std::string_view(it->second);
}

} // namespace ranktune::base
