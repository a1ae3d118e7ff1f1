// SPDX-License-Identifier: Apache-2.0
#pragma once
// The GPUs of this machine, for `ranktune doctor`: what the driver shows, and what this build can use of it.

#include <vector>

#include "cli/checks/doctor.hpp"
#include "device/module.hpp"
#include "device/survey.hpp"

namespace ranktune::cli {

/// What was found, as values: tests make them up.
struct GpuFindings {
    std::string built_with;            ///< device::built_with()
    std::string why;                   ///< device::Opened::why
    device::LibraryVersions libraries; ///< of the module; zeros when it cannot be loaded
    std::vector<device::DeviceFacts> visible;
    device::Survey survey;
    bool mps = false; ///< NVIDIA's Multi-Process Service runs
};
/// Loads the module and NVML, if they are there.
[[nodiscard]] GpuFindings find_gpus();

[[nodiscard]] std::vector<Check> gpu_checks(const GpuFindings& found);

} // namespace ranktune::cli
