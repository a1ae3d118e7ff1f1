// SPDX-License-Identifier: Apache-2.0
#include "group/own_gpus.hpp"

namespace ranktune::group {

device::GpuPlace survey_own_gpus(const std::vector<std::string>& granted) {
    return granted.empty() ? device::GpuPlace{} : device::place_of(granted, device::survey_gpus());
}

} // namespace ranktune::group
