// SPDX-License-Identifier: Apache-2.0
#pragma once
// Values of configurations as JSON.

#include <nlohmann/json.hpp>

#include "ranktune/space/value.hpp"

namespace ranktune::process {

/// None is null; a list keeps its order.
[[nodiscard]] inline nlohmann::ordered_json json_of(const space::Value& value) {
    if (value.is_none()) return nullptr;
    if (value.is_bool()) return value.as_bool();
    if (value.is_int()) return value.as_int();
    if (value.is_double()) return value.as_double();
    if (value.is_string()) return value.as_string();
    auto list = nlohmann::ordered_json::array();
    for (const space::Value& item : value.as_list()) list.push_back(json_of(item));
    return list;
}

} // namespace ranktune::process
