// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads untrusted JSON: from programs, and from files that anybody may have replaced.

#include <string_view>

#include <nlohmann/json.hpp>

namespace ranktune::trainables {

/// Limit of nested lists and objects. Printing and copying recurse per level, so without a limit a short line could
/// exhaust the stack.
inline constexpr int deepest_json = 64;

/// Returns a discarded value when the text is not JSON; throws base::FormatError as soon as it is nested deeper than
/// `deepest_json`. Throws nothing else.
[[nodiscard]] nlohmann::ordered_json read_json(std::string_view text);

} // namespace ranktune::trainables
