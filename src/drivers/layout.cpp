// SPDX-License-Identifier: Apache-2.0
#include "drivers/layout.hpp"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "comm/mpi/gather.hpp"
#include "drivers/environment_facts.hpp"
#include "drivers/json_text.hpp"
#include "ranktune/base/text.hpp"
#include "slurm/gpus.hpp"

namespace ranktune::drivers {
namespace {

/// NVIDIA's driver makes one file for each.
std::uint32_t gpus_of_machine() {
    std::uint32_t count = 0;
    while (access(("/dev/nvidia" + std::to_string(count)).c_str(), F_OK) == 0) ++count;
    return count;
}

} // namespace

const std::vector<std::string>& Layout::gpus_of(base::Rank rank) const {
    static const std::vector<std::string> none;
    return rank.value() < gpus.size() ? gpus[rank.value()] : none;
}

std::size_t Layout::node_count() const { return std::set<std::string>(nodes.begin(), nodes.end()).size(); }

Layout survey(const comm::mpi::Environment& environment) {
    const slurm::RankOnNode mine{host_name(), slurm::visible_gpus(environment_variables(), gpus_of_machine())};
    Layout layout;
    std::vector<slurm::RankOnNode> ranks;
    for (const std::string& text : comm::mpi::gather_texts(environment, slurm::encode(mine))) {
        ranks.push_back(slurm::decode_rank(text));
        layout.nodes.push_back(ranks.back().node);
    }
    slurm::GpuShares shares = slurm::share_gpus(ranks);
    layout.gpus = std::move(shares.by_rank);
    layout.job_has_gpus = !shares.none_granted;
    layout.gpu_problem = std::move(shares.problem);
    return layout;
}

std::string gpu_refusal(const study::StudySpec& spec, const Layout& layout) {
    using study::GpuUse;
    if (layout.gpu_problem.empty() || spec.resources.gpus == GpuUse::none) return {};
    if (spec.resources.gpus == GpuUse::one_per_rank)
        return "resources.gpus: not every worker has a GPU of its own\n  " + layout.gpu_problem;
    // Nothing is said about GPUs: a trainable in C++ may need none, a program takes what it sees.
    if (!layout.job_has_gpus || !spec.trainable.program) return {};
    return "two trials would use the same GPU\n  " + layout.gpu_problem +
           "\n  or, for programs that use none: resources.gpus = 0";
}

std::string layout_words(const Layout& layout, const std::string& dot) {
    const std::size_t nodes = layout.node_count();
    std::string text = nodes == 1 ? layout.nodes.front() : std::to_string(nodes) + " nodes";
    std::size_t gpus = 0;
    for (const auto& devices : layout.gpus) gpus += devices.size();
    if (gpus > 0) text += dot + std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs");
    return text;
}

std::string layout_json(const Layout& layout) {
    std::vector<std::string> order; // nodes by their first rank
    for (const auto& node : layout.nodes)
        if (std::ranges::find(order, node) == order.end()) order.push_back(node);
    std::string text;
    for (const auto& node : order) {
        std::string ranks;
        std::string gpus;
        for (std::size_t r = 0; r < layout.nodes.size(); ++r) {
            if (layout.nodes[r] != node) continue;
            ranks += (ranks.empty() ? "" : ", ") + std::to_string(r);
            gpus += (gpus.empty() ? "" : ", ") +
                    json_string(base::join(layout.gpus_of(base::Rank(static_cast<std::uint32_t>(r))), ","));
        }
        text += (text.empty() ? "" : ",\n    ") + std::string("{\"node\": ") + json_string(node) + ", \"ranks\": [" +
                ranks + "], \"gpus\": [" + gpus + "]}";
    }
    return "[" + text + "]";
}

} // namespace ranktune::drivers
