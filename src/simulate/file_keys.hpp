// SPDX-License-Identifier: Apache-2.0
#pragma once
// The keys of the files of a simulation, in words: the reader knows no others, and the reference is made from them.

#include <span>
#include <string>
#include <vector>

#include "study/parse/keys.hpp"

namespace ranktune::simulate {

/// Of the model: tables [curves], [time], [cluster].
[[nodiscard]] std::span<const study::KeyInfo> model_key_infos();
/// Of the faults: tables [trials], [ranks], [job].
[[nodiscard]] std::span<const study::KeyInfo> fault_key_infos();

/// `table.key` of each.
[[nodiscard]] std::vector<std::string> names_of(std::span<const study::KeyInfo> keys);

} // namespace ranktune::simulate
