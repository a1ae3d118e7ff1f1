// SPDX-License-Identifier: Apache-2.0
#pragma once
// The GPUs of this machine, for `ranktune doctor`: what the driver shows, and what this build can use of it.

#include <string>
#include <vector>

#include "cli/checks/doctor.hpp"
#include "device/module.hpp"
#include "device/survey.hpp"

namespace ranktune::cli {

/// What NCCL may use between nodes, and what it was told.
struct NcclNetwork {
    std::vector<std::string> interfaces; ///< up, with an address of the Internet; without loopback
    std::vector<std::string> infiniband; ///< adapters of InfiniBand or RoCE
    std::string wanted;                  ///< NCCL_SOCKET_IFNAME
    bool without_infiniband = false;     ///< NCCL_IB_DISABLE
};
/// The interfaces that NCCL takes for its sockets, InfiniBand's first: without instructions all but Docker's; otherwise
/// those whose names begin with (=: are) one of the words in `wanted`, or (^) with none. (NCCL's user guide,
/// Environment Variables.)
[[nodiscard]] std::vector<std::string> socket_interfaces(const NcclNetwork& network);

/// What was found, as values: tests make them up.
struct GpuFindings {
    std::string built_with;            ///< device::built_with()
    std::string why;                   ///< device::Opened::why
    device::LibraryVersions libraries; ///< of the module; zeros when it cannot be loaded
    std::vector<device::DeviceFacts> visible;
    device::Survey survey;
    std::string named_by;           ///< slurm::VisibleGpus::by, if the environment names GPUs
    std::vector<std::string> named; ///< these
    bool other_driver = false;      ///< AMD's: then the names may be of its GPUs
    NcclNetwork network;
    bool mps = false;          ///< NVIDIA's Multi-Process Service runs
    std::string tf32_override; ///< NVIDIA_TF32_OVERRIDE
};
/// Loads the module and NVML, if they are there.
[[nodiscard]] GpuFindings find_gpus();

[[nodiscard]] std::vector<Check> gpu_checks(const GpuFindings& found);

} // namespace ranktune::cli
