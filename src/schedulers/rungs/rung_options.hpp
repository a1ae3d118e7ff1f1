// SPDX-License-Identifier: Apache-2.0
#pragma once
// What study files say alike for several schedulers with rungs.

#include <optional>
#include <string>
#include <utility>

#include "ranktune/study/algorithm.hpp"

namespace ranktune::schedulers {

/// `eta`, a whole number. `description`: one in how many of what goes on.
[[nodiscard]] study::AlgorithmOption eta_option(std::string description);

/// `first_rung`, a whole number.
[[nodiscard]] study::AlgorithmOption first_rung_option(std::string description);

/// `restart_paused`. `whom`: "promoted trials".
[[nodiscard]] study::AlgorithmOption restart_paused_option(const std::string& whom,
                                                           std::optional<study::OptionValue> only_with = {});

/// Complains if an iteration is above study.max_iterations. `note` follows the message. Returns whether it is not.
bool check_ceiling(const study::AlgorithmCheck& check, const char* option, const std::string& note = {});

} // namespace ranktune::schedulers
