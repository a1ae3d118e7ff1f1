// SPDX-License-Identifier: Apache-2.0
#pragma once
// Layout: which rank runs on which node, with which GPUs. The same value on every rank.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "comm/mpi/environment.hpp"
#include "comm/topology/machine.hpp"
#include "process/process_watch.hpp"
#include "ranktune/base/ids.hpp"
#include "ranktune/study/spec.hpp"
#include "slurm/gpus.hpp"

namespace ranktune::comm {

struct Layout {
    std::vector<std::string> nodes;                ///< by rank; empty: unknown
    std::vector<std::vector<std::string>> gpus;    ///< by rank: allowed values in CUDA_VISIBLE_DEVICES of its child
    std::vector<std::string> gpu_names;            ///< by rank: slurm::GpuShares::identities
    std::vector<slurm::RankOnNode> seen;           ///< by rank: the GPUs that it sees, on its node as NCCL tells nodes
    bool job_has_gpus = false;                     ///< some rank sees a GPU, even if no worker got one
    std::string gpu_problem;                       ///< slurm::GpuShares::problem
    std::vector<comm::CpuSet> granted;             ///< by rank: the processors that the launcher lets it use
    bool own_cpus = false;                         ///< every rank's processors belong to this job alone
    std::map<std::string, comm::Machine> machines; ///< by node
    std::vector<std::string> switches;             ///< by rank: slurm::switches_above its node
    std::vector<process::ProcessId> processes;     ///< by rank; empty: unknown

    /// Empty when the rank is unknown.
    [[nodiscard]] const std::vector<std::string>& gpus_of(base::Rank rank) const;
    [[nodiscard]] std::size_t node_count() const;
    /// How many GPUs the workers have in all.
    [[nodiscard]] std::size_t gpu_count() const;
    /// Divides what the ranks see among them anew. See slurm::share_gpus.
    void share_gpus(std::uint32_t ranks_per_gpu);
};

/// How many GPUs this machine has: NVIDIA's driver makes a file nvidia<number> for each in `devices`. Numbers may be
/// missing: of a GPU that is broken, or not in the container. CUDA counts without gaps.
[[nodiscard]] std::uint32_t gpus_of_machine(const std::string& devices);

/// Asks every rank for its node, its GPUs and its processors. Collective over the world; reads the environment.
[[nodiscard]] Layout survey(const comm::mpi::Environment& environment);

/// Rank 0 knows the study; the others take over how many of them share a GPU. Collective over the world.
void share_as_head(Layout& layout, const comm::mpi::Environment& environment, std::uint32_t ranks_per_gpu);

/// Why the study cannot run on this layout, and what to do; empty: it can.
[[nodiscard]] std::string gpu_refusal(const study::StudySpec& spec, const Layout& layout);

/// "n1", or "3 nodes", with the number of GPUs that workers have, if any: "3 nodes · 8 GPUs" with `dot` between.
/// `uses_gpus`: false: the study uses none, and they are not named.
[[nodiscard]] std::string layout_words(const Layout& layout, const std::string& dot, bool uses_gpus = true);

struct Binding;
/// By node: [{"node": "n1", "ranks": [0, 1], "gpus": ["", "0"], "cpus": ["0", "1-7"]}]. `cpus`: after binding. A node
/// whose switches are known has a member `switches`, too.
[[nodiscard]] std::string layout_json(const Layout& layout, const Binding& binding);

} // namespace ranktune::comm
