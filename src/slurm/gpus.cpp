// SPDX-License-Identifier: Apache-2.0
#include "slurm/gpus.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/number_in.hpp"
#include "base/take_until.hpp"
#include "ranktune/base/text.hpp"
#include "slurm/lists.hpp"

namespace ranktune::slurm {
namespace {

/// Parses a list as CUDA does: a -1 ends it.
std::vector<std::string> listed(std::string_view text) {
    if (text == "NoDevFiles" || text == "none" || text == "void") return {};
    std::vector<std::string> devices = expand_devices(text);
    const auto end = std::find(devices.begin(), devices.end(), "-1");
    devices.erase(end, devices.end());
    return devices;
}

std::vector<std::string> first_numbers(std::size_t count) {
    std::vector<std::string> numbers;
    for (std::size_t i = 0; i < count; ++i) numbers.push_back(std::to_string(i));
    return numbers;
}

/// "4"; "a100:4" in some versions.
std::uint32_t count_in(std::string_view text) {
    if (const auto colon = text.rfind(':'); colon != std::string_view::npos) text.remove_prefix(colon + 1);
    const auto counts = expand_counts(text);
    constexpr std::uint32_t most = 1024;
    return counts && counts->size() == 1 ? std::min(counts->front(), most) : 0;
}

VisibleGpus seen(std::string_view name, std::string_view text, std::vector<std::string> devices) {
    VisibleGpus gpus;
    gpus.by = std::string(name) + "=" + std::string(text);
    gpus.devices = std::move(devices);
    gpus.identities = gpus.devices;
    return gpus;
}

/// HIP's numbers refer to the devices that ROCR_VISIBLE_DEVICES leaves.
std::vector<std::string> counted_within(const std::vector<std::string>& numbers, const std::vector<std::string>& left) {
    std::vector<std::string> devices;
    for (const std::string& number : numbers) {
        const auto at = expand_counts(number);
        if (at && at->size() == 1 && at->front() < left.size()) devices.push_back(left[at->front()]);
    }
    return devices;
}

/// Fills everything except the identities.
VisibleGpus named_devices(const base::Variables& variables, std::uint32_t machine_gpus) {
    const auto hip = base::value_of(variables, "HIP_VISIBLE_DEVICES");
    const auto rocr = base::value_of(variables, "ROCR_VISIBLE_DEVICES");
    if (hip && rocr && !base::value_of(variables, "CUDA_VISIBLE_DEVICES"))
        return seen("HIP_VISIBLE_DEVICES", *hip, counted_within(listed(*hip), listed(*rocr)));
    for (const char* name : {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                             "GPU_DEVICE_ORDINAL", "SLURM_STEP_GPUS", "SLURM_JOB_GPUS"})
        if (const auto text = base::value_of(variables, name)) return seen(name, *text, listed(*text));
    // With --gpu-bind=none some versions name no device, only the node's number of GPUs.
    if (const auto text = base::value_of(variables, "SLURM_GPUS_ON_NODE"))
        return seen("SLURM_GPUS_ON_NODE", *text, first_numbers(count_in(*text)));
    // In a job without GPUs the node's GPUs belong to other jobs.
    if (machine_gpus == 0 || base::value_of(variables, "SLURM_JOB_ID")) return {};
    return seen("GPUs of the machine", std::to_string(machine_gpus), first_numbers(machine_gpus));
}

constexpr std::size_t nobody = static_cast<std::size_t>(-1);

/// A maximum bipartite matching of the workers of one node to the devices that they may use; changes earlier
/// assignments as little as possible.
class Matching {
  public:
    /// `wanted[w]`: identities that worker w may use, by preference.
    explicit Matching(std::vector<std::vector<std::string>> wanted) : wanted_(std::move(wanted)) {
        for (std::size_t w = 0; w < wanted_.size(); ++w) {
            std::set<std::string> visited;
            assign(w, visited);
        }
    }
    /// Position in the worker's list; `nobody`: none.
    [[nodiscard]] std::size_t of(std::size_t worker) const {
        const auto& wanted = wanted_[worker];
        for (std::size_t i = 0; i < wanted.size(); ++i)
            if (const auto it = user_.find(wanted[i]); it != user_.end() && it->second == worker) return i;
        return nobody;
    }

  private:
    bool assign(std::size_t worker, std::set<std::string>& visited) {
        for (const auto& device : wanted_[worker])
            if (!user_.contains(device)) return user_[device] = worker, true;
        for (const auto& device : wanted_[worker]) {
            if (!visited.insert(device).second) continue;
            const std::size_t before = user_[device];
            if (assign(before, visited)) return user_[device] = worker, true;
        }
        return false;
    }

    std::vector<std::vector<std::string>> wanted_;
    std::map<std::string, std::size_t> user_; ///< device -> worker
};

/// Whether no other worker may use the GPUs of `worker`.
bool alone(const std::vector<RankOnNode>& ranks, const std::vector<std::size_t>& workers, std::size_t worker) {
    const auto& mine = ranks[worker].gpus.identities;
    return std::ranges::none_of(workers, [&](std::size_t other) {
        return other != worker && std::ranges::any_of(ranks[other].gpus.identities, [&](const std::string& device) {
                   return std::ranges::find(mine, device) != mine.end();
               });
    });
}

/// The message for a node where a worker has no GPU.
std::string complaint(const std::vector<RankOnNode>& ranks, const std::vector<std::size_t>& workers,
                      std::uint32_t ranks_per_gpu) {
    std::set<std::string> devices;
    std::string by;
    for (const std::size_t w : workers) {
        devices.insert(ranks[w].gpus.identities.begin(), ranks[w].gpus.identities.end());
        if (by.empty()) by = ranks[w].gpus.by;
    }
    const std::string node = ranks[workers.front()].node;
    const std::string number = std::to_string(workers.size());
    const VisibleGpus& first = ranks[workers.front()].gpus;
    if (devices.empty() && !first.in_job)
        return node + ": this machine has no GPU that ranktune can see" + (by.empty() ? "" : " (" + by + ")") +
               "; where it has some, name them: CUDA_VISIBLE_DEVICES=0,1";
    const std::string needed = std::to_string((workers.size() + ranks_per_gpu - 1) / ranks_per_gpu);
    const std::string per_node = "#SBATCH --gpus-per-node=" + needed;
    const std::string so_many = ranks_per_gpu == 1 ? "one worker" : std::to_string(ranks_per_gpu) + " workers";
    if (devices.empty())
        return node + ": no GPU was granted" + (by.empty() ? "" : " (" + by + ")") + "; ask for one per " +
               (ranks_per_gpu == 1 ? "worker" : so_many) + ": " + per_node + ", or --gres=gpu:" + needed;
    const std::string what = node + ": " + base::counted(workers.size(), "worker") + " for " +
                             base::counted(devices.size(), "GPU") + " (" + by + "), so that " +
                             (ranks_per_gpu == 1 ? "two" : std::to_string(ranks_per_gpu + 1)) + " would use one; ";
    const std::string share = std::to_string(devices.size() * ranks_per_gpu);
    if (!first.in_job) return what + "start " + so_many + " for each GPU: --local " + share;
    // --gpus-per-task counts tasks, not workers: mpirun starts one task per node, and the head is one more.
    if (first.whole) return what + "ask for GPUs by node, not by task (--gpus-per-task): " + per_node;
    return what + "start " + so_many + " for each GPU: #SBATCH --ntasks-per-node=" + share +
           " in slurm/gpu.sbatch, which adds the head";
}

/// Assigns the GPUs of one node; false: a worker has none.
bool share_on_node(const std::vector<RankOnNode>& ranks, const std::vector<std::size_t>& workers,
                   std::uint32_t ranks_per_gpu, GpuShares& shares) {
    std::vector<std::vector<std::string>> wanted;
    for (const std::size_t w : workers) {
        auto& places = wanted.emplace_back();
        for (std::uint32_t turn = 0; turn < ranks_per_gpu; ++turn)
            for (const std::string& device : ranks[w].gpus.identities)
                places.push_back(device + '\n' + std::to_string(turn));
    }
    const Matching matching(std::move(wanted));
    bool all = true;
    for (std::size_t i = 0; i < workers.size(); ++i) {
        const std::size_t w = workers[i];
        const auto& gpus = ranks[w].gpus;
        const std::size_t place = matching.of(i);
        const std::size_t position = place == nobody ? nobody : place % gpus.identities.size();
        if (position == nobody) {
            all = false;
        } else if (gpus.whole && alone(ranks, workers, w)) {
            shares.by_rank[w] = gpus.devices;
            shares.identities[w] = base::join(gpus.identities, ",");
        } else {
            shares.by_rank[w] = {gpus.devices[position]};
            shares.identities[w] = gpus.identities[position];
        }
    }
    return all;
}

} // namespace

VisibleGpus visible_gpus(const base::Variables& variables, std::uint32_t machine_gpus) {
    VisibleGpus gpus = named_devices(variables, machine_gpus);
    for (const char* name : {"SLURM_STEP_GPUS", "SLURM_JOB_GPUS"}) {
        const auto text = base::value_of(variables, name);
        if (!text) continue;
        auto names = listed(*text);
        if (names.size() == gpus.devices.size()) gpus.identities = std::move(names);
        break;
    }
    gpus.whole = base::value_of(variables, "SLURM_GPUS_PER_TASK").has_value();
    gpus.in_job = base::value_of(variables, "SLURM_JOB_ID").has_value();
    return gpus;
}

GpuShares share_gpus(const std::vector<RankOnNode>& ranks, std::uint32_t ranks_per_gpu) {
    GpuShares shares;
    shares.by_rank.resize(ranks.size());
    shares.identities.resize(ranks.size());
    std::map<std::string, std::vector<std::size_t>> workers_of;
    std::vector<std::string> nodes; // in the order of their first worker
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        shares.none_granted = shares.none_granted && ranks[r].gpus.devices.empty();
        if (r == 0) continue;
        auto& workers = workers_of[ranks[r].node];
        if (workers.empty()) nodes.push_back(ranks[r].node);
        workers.push_back(r);
    }
    constexpr std::size_t most_complaints = 3;
    std::size_t complaints = 0;
    for (const auto& node : nodes) {
        const auto& workers = workers_of[node];
        if (share_on_node(ranks, workers, ranks_per_gpu, shares) || ++complaints > most_complaints) continue;
        shares.problem += (shares.problem.empty() ? "" : "\n  ") + complaint(ranks, workers, ranks_per_gpu);
    }
    if (complaints > most_complaints)
        shares.problem += "\n  and " + base::counted(complaints - most_complaints, "other node");
    return shares;
}

namespace {

std::uint32_t number_or_none(std::string_view text) { return base::number_in<std::uint32_t>(text).value_or(0); }

/// The GPUs in "gpu:a100:4(S:0-1),shard:8"; those of several kinds together.
std::uint32_t gpus_in(std::string_view resources) {
    std::uint32_t gpus = 0;
    while (!resources.empty()) {
        const bool of_gpus = resources.starts_with("gpu:");
        const std::string_view count = resources.substr(0, resources.find_first_of(",("));
        if (of_gpus) gpus += number_or_none(count.substr(count.rfind(':') + 1));
        resources.remove_prefix(count.size());
        if (resources.starts_with('(')) base::take_until(resources, ')'); // sockets, or positions with commas
        if (resources.starts_with(',')) resources.remove_prefix(1);
    }
    return gpus;
}

} // namespace

std::optional<std::uint32_t> cores_per_gpu(std::string_view answer, std::string_view partition, std::uint32_t gpus) {
    std::optional<std::uint32_t> least;
    while (!answer.empty()) {
        std::string_view line = base::take_until(answer, '\n');
        std::string_view of = base::take_until(line, '|');
        const bool standard = of.ends_with('*');
        if (standard) of.remove_suffix(1);
        const std::uint32_t cores = number_or_none(base::take_until(line, '|'));
        const std::uint32_t there = gpus_in(line);
        if ((partition.empty() ? !standard : of != partition) || there == 0 || there < gpus) continue;
        least = std::min(least.value_or(cores), cores / there);
    }
    return least;
}

} // namespace ranktune::slurm
