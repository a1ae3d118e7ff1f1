// SPDX-License-Identifier: Apache-2.0
#include "trainables/json_input.hpp"

#include <string>

#include "ranktune/base/error.hpp"

namespace ranktune::trainables {

nlohmann::ordered_json read_json(std::string_view text) {
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
