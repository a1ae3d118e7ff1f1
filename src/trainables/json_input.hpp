// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one way to read JSON that others wrote: programs, and files that anybody may have replaced.

#include <string_view>

#include <nlohmann/json.hpp>

namespace ranktune::trainables {

/// How many lists and objects may lie inside each other. Printing and copying a value take a call for each level, so
/// the bound keeps a short line from exhausting the stack.
inline constexpr int deepest_json = 64;

/// A discarded value when the text is no JSON; throws base::FormatError while it reads, as soon as it is nested deeper
/// than `deepest_json`. Nothing else is thrown.
[[nodiscard]] nlohmann::ordered_json read_json(std::string_view text);

} // namespace ranktune::trainables
