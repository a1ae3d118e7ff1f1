// SPDX-License-Identifier: Apache-2.0
#include "comm/layout/binding.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace ranktune::comm {
namespace {

const comm::CpuSet& no_cpus() {
    static const comm::CpuSet none;
    return none;
}

/// Ranks by node, in the order of ranks; nodes by their first rank.
struct Node {
    std::string name;
    std::vector<std::size_t> ranks;
};

std::vector<Node> nodes_of(const Layout& layout) {
    std::vector<Node> nodes;
    std::map<std::string, std::size_t> position;
    for (std::size_t r = 0; r < layout.nodes.size(); ++r) {
        const auto [entry, added] = position.try_emplace(layout.nodes[r], nodes.size());
        if (added) nodes.push_back({layout.nodes[r], {}});
        nodes[entry->second].ranks.push_back(r);
    }
    return nodes;
}

const comm::Machine& machine_of(const Layout& layout, const std::string& node) {
    static const comm::Machine unknown;
    const auto found = layout.machines.find(node);
    return found == layout.machines.end() ? unknown : found->second;
}

/// Groups nodes with the same text: "n1, n2 and 6 more: 64 cores split ...".
std::string told(const std::vector<std::pair<std::string, std::string>>& by_node) {
    std::vector<std::pair<std::string, std::vector<std::string>>> groups;
    for (const auto& [node, words] : by_node) {
        const auto same =
            std::find_if(groups.begin(), groups.end(), [&words = words](const auto& g) { return g.first == words; });
        if (same == groups.end())
            groups.push_back({words, {node}});
        else
            same->second.push_back(node);
    }
    std::string text;
    for (const auto& [words, nodes] : groups) {
        text += (text.empty() ? "" : "; ") + nodes.front();
        if (nodes.size() == 2) text += " and " + nodes[1];
        if (nodes.size() > 2) text += " and " + std::to_string(nodes.size() - 1) + " more nodes";
        text += ": " + words;
    }
    return text;
}

/// A warning about the first worker whose share is too small, with the number of further ones.
std::string shortage(const Layout& layout, const Binding& binding, const study::ResourceSpec& resources) {
    std::optional<std::size_t> first;
    std::size_t count = 0;
    for (std::size_t r = 1; r < layout.granted.size(); ++r) {
        const auto& cpus = cpus_in_use(layout, binding, base::Rank(static_cast<std::uint32_t>(r)));
        if (cpus.empty() || cpus.size() >= resources.cpus_per_rank) continue;
        if (!first) first = r;
        ++count;
    }
    if (!first) return {};
    const auto& cpus = layout.granted[*first];
    const std::string wanted = std::to_string(resources.cpus_per_rank);
    const std::string& node = layout.nodes[*first];
    std::size_t there = 0;
    for (const auto& core : machine_of(layout, node).cores) there += core.cpus.size();
    const std::string mend = there == cpus.size()
                                 ? "that is the whole node: make it smaller"
                                 : "start with `mpirun --bind-to none`, or with `srun --cpus-per-task=" + wanted +
                                       "` or `--cpu-bind=none`, and ask for as many cores";
    return "rank " + std::to_string(*first) + " on " + node +
           (count > 1 ? " (and " + std::to_string(count - 1) + " more)" : "") + " may use " +
           std::to_string(cpus.size()) + (cpus.size() == 1 ? " cpu" : " cpus") + " (" + comm::cpu_text(cpus) +
           "), but resources.cpus_per_rank is " + wanted + ": " + mend;
}

} // namespace

const comm::CpuSet& Binding::of(base::Rank rank) const {
    return rank.value() < cpus.size() ? cpus[rank.value()] : no_cpus();
}

std::size_t Binding::bound() const {
    return static_cast<std::size_t>(
        std::count_if(cpus.begin(), cpus.end(), [](const auto& set) { return !set.empty(); }));
}

Binding plan_binding(const Layout& layout, const study::ResourceSpec& resources) {
    Binding binding;
    binding.cpus.resize(layout.granted.size());
    if (resources.bind == study::Bind::none) {
        binding.words = "off: resources.bind = \"none\"";
    } else if (resources.bind == study::Bind::automatic && !layout.own_cpus) {
        if (!layout.granted.empty())
            binding.words = "not bound: other programs may use the same cores; resources.bind = \"cores\" binds anyway";
    } else if (!layout.granted.empty()) {
        std::vector<std::pair<std::string, std::string>> by_node;
        for (const Node& node : nodes_of(layout)) {
            std::vector<comm::CpuSet> granted;
            for (const std::size_t r : node.ranks) granted.push_back(layout.granted[r]);
            const auto head = node.ranks.front() == 0 ? std::optional<std::size_t>(0) : std::nullopt;
            auto of_node = comm::bind_node(granted, head, machine_of(layout, node.name), resources.cpus_per_rank);
            for (std::size_t i = 0; i < node.ranks.size(); ++i)
                binding.cpus[node.ranks[i]] = std::move(of_node.cpus[i]);
            std::string words;
            for (const auto& part : of_node.words) words += (words.empty() ? "" : ", ") + part;
            by_node.emplace_back(node.name, std::move(words));
        }
        binding.words = told(by_node);
    }
    binding.warning = shortage(layout, binding, resources);
    return binding;
}

const comm::CpuSet& cpus_in_use(const Layout& layout, const Binding& binding, base::Rank rank) {
    if (!binding.of(rank).empty()) return binding.of(rank);
    return rank.value() < layout.granted.size() ? layout.granted[rank.value()] : no_cpus();
}

std::string bind_as_planned(const Binding& binding, base::Rank rank) {
    const auto& cpus = binding.of(rank);
    if (cpus.empty() || comm::bind_process(cpus)) return {};
    return "rank " + std::to_string(rank.value()) + " cannot be bound to " + comm::cpu_text(cpus) +
           "; it stays where the launcher put it";
}

std::vector<study::RankInfo> places_of(const Layout& layout, const Binding& binding) {
    std::vector<study::RankInfo> places(layout.nodes.size());
    for (std::size_t r = 0; r < places.size(); ++r) {
        const base::Rank rank(static_cast<std::uint32_t>(r));
        places[r].rank = rank;
        places[r].host = layout.nodes[r];
        const auto& machine = machine_of(layout, layout.nodes[r]);
        places[r].domain = comm::domain_of(cpus_in_use(layout, binding, rank), machine).value_or(0);
        if (r < layout.switches.size()) places[r].switches = layout.switches[r];
        if (r < layout.gpu_names.size()) places[r].device = layout.gpu_names[r];
    }
    return places;
}

} // namespace ranktune::comm
