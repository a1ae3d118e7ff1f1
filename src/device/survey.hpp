// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the NVIDIA driver says about all GPUs of this machine, by its management library (NVML), which is opened at run
// time. Needs no CUDA, and sees GPUs that CUDA_VISIBLE_DEVICES hides.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ranktune::device {

struct SurveyedGpu {
    std::string name;
    std::string uuid;
    std::uint64_t memory_bytes = 0;
    std::uint64_t used_bytes = 0;
    unsigned pcie_generation = 0;         ///< now; 0: unknown. Idle GPUs may lower it
    unsigned pcie_width = 0;              ///< lanes, now
    unsigned pcie_most_width = 0;         ///< what GPU and slot can do
    unsigned nvlinks = 0;                 ///< active links
    bool exclusive = false;               ///< only one process at a time may use it
    bool partitioned = false;             ///< MIG is on
    std::string bus = {};                 ///< PCI address
    std::vector<std::string> linked = {}; ///< PCI addresses of GPUs and switches at the other ends of its links
    std::string fabric = {};              ///< which NVLink fabric of several nodes it belongs to; empty: none
    unsigned index = 0;                   ///< of NVML, which also counts GPUs that this process may not use
};

struct Survey {
    std::string why;    ///< no survey could be made; empty: it was
    std::string driver; ///< "580.65.06"
    std::vector<SurveyedGpu> gpus;
};

[[nodiscard]] Survey survey_gpus();

/// Position of a granted GPU ("1", "GPU-5ca1...", as in CUDA_VISIBLE_DEVICES); gpus.size(): the driver does not show
/// it.
[[nodiscard]] std::size_t position_of(std::string_view name, const std::vector<SurveyedGpu>& gpus);

/// Which GPUs a rank has, and what they are linked to.
struct GpuPlace {
    std::string uuid;         ///< "GPU-5ca1..."; of several: all, with commas; empty: not known
    std::uint32_t island = 0; ///< from 1: GPUs of the node with the same number reach each other over NVLink; 0: all
                              ///< do, or none does
    std::string fabric;       ///< SurveyedGpu::fabric
    friend bool operator==(const GpuPlace&, const GpuPlace&) = default;
};
/// Pure. `granted`: as in CUDA_VISIBLE_DEVICES. Numbers are those of CUDA_DEVICE_ORDER=PCI_BUS_ID, which CUDA uses by
/// itself where all GPUs of a node are equal. A GPU that `survey` does not show: an empty place.
[[nodiscard]] GpuPlace place_of(const std::vector<std::string>& granted, const Survey& survey);

} // namespace ranktune::device
