// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads untrusted JSON: from programs, and from files that anybody may have replaced.

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "ranktune/base/error.hpp"

namespace ranktune::trainables {

/// Limit of nested lists and objects. Printing and copying recurse per level, so without a limit a short line could
/// exhaust the stack.
inline constexpr int deepest_json = 64;

/// Returns a discarded value when the text is not JSON; throws base::FormatError as soon as it is nested deeper than
/// `deepest_json`. Throws nothing else.
[[nodiscard]] inline nlohmann::ordered_json read_json(std::string_view text) {
    using Json = nlohmann::ordered_json;
    const auto bounded = [](int depth, Json::parse_event_t event, Json&) {
        const bool opens = event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
        if (opens && depth >= deepest_json)
            throw base::FormatError("more than " + std::to_string(deepest_json) +
                                    " lists and objects lie inside each other");
        return true;
    };
    return Json::parse(text, bounded, false);
}

} // namespace ranktune::trainables
