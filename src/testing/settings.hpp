// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which settings of an algorithm a suite runs, and their text.

#include <functional>
#include <string>
#include <vector>

#include "ranktune/testing/contract.hpp"

namespace ranktune::testing {

/// Whether the algorithm accepts these settings.
using Works = std::function<bool(const Settings& settings)>;

/// Like `settings_of` in contract.hpp, restricted to settings that work.
[[nodiscard]] std::vector<Settings> settings_of(const study::AlgorithmInfo& info, const Works& works);

/// `{eta = 2.0, variant = 'stop'}`; empty for the defaults.
[[nodiscard]] std::string settings_text(const Settings& settings);

} // namespace ranktune::testing
