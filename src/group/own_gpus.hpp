// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the driver says about the GPUs of this rank.

#include <string>
#include <vector>

#include "device/survey.hpp"

namespace ranktune::group {

/// Asks NVML, if the rank has GPUs (`granted`: as in CUDA_VISIBLE_DEVICES) and there is a driver: a fraction of a
/// second.
[[nodiscard]] device::GpuPlace survey_own_gpus(const std::vector<std::string>& granted);

} // namespace ranktune::group
