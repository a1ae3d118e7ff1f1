// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the NVIDIA driver says about all GPUs of this machine, by its management library (NVML), which is opened at run
// time. Needs no CUDA, and sees GPUs that CUDA_VISIBLE_DEVICES hides.

#include <cstdint>
#include <string>
#include <vector>

namespace ranktune::device {

struct SurveyedGpu {
    std::string name;
    std::string uuid;
    std::uint64_t memory_bytes = 0;
    std::uint64_t used_bytes = 0;
    unsigned pcie_generation = 0; ///< now; 0: unknown. Idle GPUs may lower it
    unsigned pcie_width = 0;      ///< lanes, now
    unsigned pcie_most_width = 0; ///< what GPU and slot can do
    unsigned nvlinks = 0;         ///< active links
    bool exclusive = false;       ///< only one process at a time may use it
    bool partitioned = false;     ///< MIG is on
};

struct Survey {
    std::string why;    ///< no survey could be made; empty: it was
    std::string driver; ///< "580.65.06"
    std::vector<SurveyedGpu> gpus;
};

[[nodiscard]] Survey survey_gpus();

} // namespace ranktune::device
