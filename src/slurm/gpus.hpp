// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which GPUs a rank may use. The granted GPUs (by Slurm or the user's CUDA_VISIBLE_DEVICES) are read from the
// environment of every rank. They are assigned for a node as a whole, because with most Slurm options every task sees
// all GPUs of the node. No CUDA is needed: devices are names.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/base/variables.hpp"

namespace ranktune::slurm {

/// The GPUs that one rank sees.
struct VisibleGpus {
    /// Names for a child's CUDA_VISIBLE_DEVICES, in order: "0", "GPU-5ca1...".
    std::vector<std::string> devices;
    /// A name per device that is unique on the node. (With a cgroup per task every task calls its device "0".)
    std::vector<std::string> identities;
    bool whole = false;  ///< granted to this task alone (--gpus-per-task): it keeps all of them
    bool in_job = false; ///< in a Slurm job
    std::string by;      ///< source, for messages: "CUDA_VISIBLE_DEVICES=0,1"; empty: none
    static void fields(auto&& each, auto& r) { each(r.devices, r.identities, r.whole, r.in_job, r.by); }
    friend bool operator==(const VisibleGpus&, const VisibleGpus&) = default;
};

/// Uses the first of these that is set: CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES (numbers within ROCR_VISIBLE_DEVICES,
/// if both are set), ROCR_VISIBLE_DEVICES, GPU_DEVICE_ORDINAL, SLURM_STEP_GPUS, SLURM_JOB_GPUS, SLURM_GPUS_ON_NODE;
/// outside a job the `machine_gpus` devices of the machine. Empty, "NoDevFiles" and "-1" mean none.
[[nodiscard]] VisibleGpus visible_gpus(const base::Variables& variables, std::uint32_t machine_gpus = 0);

/// One rank, as all ranks know it.
struct RankOnNode {
    std::string node;
    VisibleGpus gpus;
    static void fields(auto&& each, auto& r) { each(r.node, r.gpus); }
    friend bool operator==(const RankOnNode&, const RankOnNode&) = default;
};

/// The assignment of GPUs to ranks.
struct GpuShares {
    std::vector<std::vector<std::string>> by_rank; ///< devices of each rank; the head (rank 0) has none
    std::vector<std::string> identities;           ///< of each rank's devices, with commas between: unique on the node
    /// One sentence for each node where a worker has no GPU, or no share of one, with the remedy; empty: none.
    std::string problem;
    /// True if no rank sees any GPU.
    bool none_granted = true;
};

/// `ranks[0]` is the head. On each node, in rank order, ranks that see the same GPUs take one each, and begin again
/// with the first when each has one, up to `ranks_per_gpu` times; a rank to which Slurm bound GPUs (`whole`) keeps them
/// all, if no other worker may use them. As many workers as possible get a GPU; the assignment depends on the node's
/// ranks alone.
[[nodiscard]] GpuShares share_gpus(const std::vector<RankOnNode>& ranks, std::uint32_t ranks_per_gpu = 1);

/// With fewer cores, a worker often keeps its GPU waiting for data.
inline constexpr std::uint32_t enough_cores = 4;
/// The command whose answer cores_per_gpu reads: one line per node, with its partition, cores and GPUs.
inline const std::vector<std::string> cores_and_gpus{"sinfo", "--noheader", "--Node", "--format=%P|%c|%G"};
/// The cores of a node divided by its GPUs: the least of the nodes of `partition` (empty: the default one) that have
/// `gpus` GPUs. nullopt: there is no such node.
[[nodiscard]] std::optional<std::uint32_t> cores_per_gpu(std::string_view answer, std::string_view partition,
                                                         std::uint32_t gpus);

} // namespace ranktune::slurm
