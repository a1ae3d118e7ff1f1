// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parses the output of Slurm's programs: `name=word` fields and compact lists.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ranktune::slurm {

inline constexpr std::string_view white_space = " \t\r\n";

/// The word after `name` ("TimeLimit="), which must begin a word; empty: not found.
[[nodiscard]] inline std::string_view field(std::string_view text, std::string_view name) {
    for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
        if (at > 0 && white_space.find(text[at - 1]) == std::string_view::npos) continue;
        const auto begin = at + name.size();
        return text.substr(begin, std::min(text.find_first_of(white_space, begin), text.size()) - begin);
    }
    return {};
}

/// "n[1-3,07],login" -> n1 n2 n3 n07 login, in that order; several brackets in a name give all combinations, the last
/// one varying fastest. Nothing: not a list of hosts, or more than 1,000,000.
[[nodiscard]] std::optional<std::vector<std::string>> expand_hostlist(std::string_view list);

/// "5,4(x2)" -> 5 4 4: numbers by node. Nothing: not such a list.
[[nodiscard]] std::optional<std::vector<std::uint32_t>> expand_counts(std::string_view list);

/// "0,1,3" or "0-1,3" -> the items, ranges of numbers expanded; other words ("GPU-5ca1...", "MIG-...") unchanged. Items
/// are trimmed, empty ones dropped.
[[nodiscard]] std::vector<std::string> expand_devices(std::string_view list);

} // namespace ranktune::slurm
