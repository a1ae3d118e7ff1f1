// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reading `name=word` out of what Slurm's programs print.

#include <algorithm>
#include <string_view>

namespace ranktune::slurm {

inline constexpr std::string_view white_space = " \t\r\n";

/// The word after `name` ("TimeLimit=") where that begins a word; empty: not there.
[[nodiscard]] inline std::string_view field(std::string_view text, std::string_view name) {
    for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
        if (at > 0 && white_space.find(text[at - 1]) == std::string_view::npos) continue;
        const auto begin = at + name.size();
        return text.substr(begin, std::min(text.find_first_of(white_space, begin), text.size()) - begin);
    }
    return {};
}

} // namespace ranktune::slurm
