// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which GPUs a rank may use. What Slurm (or the user's own CUDA_VISIBLE_DEVICES) granted is read from the environment
// of every rank; who takes which of them is decided for a node as a whole, because most forms of asking show all GPUs
// of the node to all of its tasks. No CUDA is needed: devices are names.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/base/variables.hpp"

namespace ranktune::slurm {

/// What one rank sees.
struct VisibleGpus {
    /// Names that CUDA_VISIBLE_DEVICES of a child may hold, in order: "0", "GPU-5ca1...".
    std::vector<std::string> devices;
    /// For each, a name that no other device of the node has. With a cgroup per task every task calls its device "0".
    std::vector<std::string> identities;
    bool whole = false;  ///< granted to this task alone (--gpus-per-task): it keeps all of them
    bool in_job = false; ///< of Slurm
    std::string by;      ///< for messages: "CUDA_VISIBLE_DEVICES=0,1"; empty: nothing says anything about GPUs
    friend bool operator==(const VisibleGpus&, const VisibleGpus&) = default;
};

/// The first of these that is there: CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES (which counts what
/// ROCR_VISIBLE_DEVICES leaves, where both are set), ROCR_VISIBLE_DEVICES, GPU_DEVICE_ORDINAL, SLURM_STEP_GPUS,
/// SLURM_JOB_GPUS, SLURM_GPUS_ON_NODE; outside a job the `machine_gpus` devices of the machine. Empty, "NoDevFiles" and
/// "-1" mean none.
[[nodiscard]] VisibleGpus visible_gpus(const base::Variables& variables, std::uint32_t machine_gpus = 0);

/// One rank, as all ranks know it.
struct RankOnNode {
    std::string node;
    VisibleGpus gpus;
    friend bool operator==(const RankOnNode&, const RankOnNode&) = default;
};

/// A text of one line without zero bytes, for sending; and back. A text that is none gives a rank without GPUs.
[[nodiscard]] std::string encode(const RankOnNode& rank);
[[nodiscard]] RankOnNode decode_rank(std::string_view text);

/// Who uses what.
struct GpuShares {
    std::vector<std::vector<std::string>> by_rank; ///< devices of each rank; the head (rank 0) has none
    /// One sentence for each node on which a worker is left without a GPU of its own, and the line that mends it.
    std::string problem;
    /// No rank sees any GPU.
    bool none_granted = true;
};

/// `ranks[0]` is the head. On each node, in the order of ranks: those that see the same GPUs take one each, in their
/// order; one to which Slurm bound some for itself keeps them all (`whole`), if no other worker may use them. As many
/// workers as possible get one; which one depends on the ranks of the node alone.
[[nodiscard]] GpuShares share_gpus(const std::vector<RankOnNode>& ranks);

} // namespace ranktune::slurm
