// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace ranktune::base {

/// What `text_of` says of each, joined: "a, b, c".
template <class Range, class TextOf>
[[nodiscard]] std::string joined(const Range& range, TextOf&& text_of, std::string_view separator = ", ") {
    std::string text;
    bool is_first = true;
    for (const auto& each : range) {
        if (!is_first) text += separator;
        is_first = false;
        text += std::invoke(text_of, each);
    }
    return text;
}

} // namespace ranktune::base
