// SPDX-License-Identifier: Apache-2.0
#pragma once
// Slurm's short ways to write lists.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ranktune::slurm {

/// "n[1-3,07],login" -> n1 n2 n3 n07 login, in that order; several brackets in a name are crossed, the last one
/// fastest. Nothing: not a list of hosts, or more than 1,000,000 of them.
[[nodiscard]] std::optional<std::vector<std::string>> expand_hostlist(std::string_view list);

/// "5,4(x2)" -> 5 4 4: numbers by node. Nothing: no such list.
[[nodiscard]] std::optional<std::vector<std::uint32_t>> expand_counts(std::string_view list);

/// "0,1,3" or "0-1,3" -> the items, ranges of numbers written out; other words ("GPU-5ca1...", "MIG-...") as they are.
/// Items are trimmed and empty ones left out.
[[nodiscard]] std::vector<std::string> expand_devices(std::string_view list);

} // namespace ranktune::slurm
