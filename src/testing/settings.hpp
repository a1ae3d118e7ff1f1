// SPDX-License-Identifier: Apache-2.0
#pragma once
// Values that the options of an algorithm may have, as its description says.

#include <functional>
#include <vector>

#include "ranktune/testing/contract.hpp"

namespace ranktune::testing {

/// Whether the algorithm takes these settings.
using Works = std::function<bool(const Settings& settings)>;

/// As `settings_of`, without those that do not work.
[[nodiscard]] std::vector<Settings> settings_of(const study::AlgorithmInfo& info, const Works& works);

} // namespace ranktune::testing
