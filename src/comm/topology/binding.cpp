// SPDX-License-Identifier: Apache-2.0
#include "comm/topology/binding.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "ranktune/base/text.hpp"

namespace ranktune::comm {
namespace {

using Cores = std::vector<Core>;

CpuSet common(const CpuSet& a, const CpuSet& b) {
    CpuSet both;
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
    return both;
}

/// The cores with at least one granted processor, reduced to the granted ones.
Cores granted_cores(const CpuSet& granted, const Machine& machine) {
    Cores cores;
    for (const Core& core : machine.cores)
        if (CpuSet cpus = common(core.cpus, granted); !cpus.empty()) cores.push_back({std::move(cpus), core.domain});
    return cores;
}

std::size_t cpu_count(const Cores& cores) {
    return std::accumulate(cores.begin(), cores.end(), std::size_t{0},
                           [](std::size_t sum, const Core& core) { return sum + core.cpus.size(); });
}

/// Cuts cores, in their order, into `shares` parts whose sizes differ by at most one.
void cut_evenly(const Cores& cores, std::size_t shares, std::vector<CpuSet>& out) {
    for (std::size_t i = 0, at = 0; i < shares; ++i) {
        const std::size_t end = cores.size() * (i + 1) / shares;
        CpuSet share;
        for (; at < end; ++at) share.insert(share.end(), cores[at].cpus.begin(), cores[at].cpus.end());
        std::sort(share.begin(), share.end());
        out.push_back(std::move(share));
    }
}

std::size_t smallest(const std::vector<CpuSet>& shares) {
    std::size_t least = shares.front().size();
    for (const CpuSet& share : shares) least = std::min(least, share.size());
    return least;
}

/// Shares that each lie inside one NUMA domain, distributed by the domains' numbers of cores (D'Hondt). Empty when a
/// domain would stay unused.
std::vector<CpuSet> shares_by_domain(const Cores& cores, std::size_t shares) {
    std::map<std::uint32_t, Cores> domains;
    for (const Core& core : cores) domains[core.domain].push_back(core);
    std::map<std::uint32_t, std::size_t> seats;
    for (std::size_t i = 0; i < shares; ++i) {
        // On a tie the domain with fewer shares, then the first.
        const auto claim = [&](const auto& domain) {
            const std::size_t taken = seats[domain.first];
            return std::pair(1024 * domain.second.size() / (taken + 1), 1024 - std::min<std::size_t>(taken, 1024));
        };
        const auto best = std::max_element(domains.begin(), domains.end(), [&](const auto& left, const auto& right) {
            return claim(left) < claim(right);
        });
        ++seats[best->first];
    }
    std::vector<CpuSet> out;
    for (const auto& [domain, its_cores] : domains) {
        if (seats[domain] == 0 || its_cores.size() < seats[domain]) return {};
        cut_evenly(its_cores, seats[domain], out);
    }
    return out;
}

/// Shares inside NUMA domains, unless a worker would then get fewer processors than it needs and an even cut gives
/// more.
std::vector<CpuSet> shares_of(const Cores& cores, std::size_t workers, std::uint32_t needed) {
    std::vector<CpuSet> even;
    cut_evenly(cores, workers, even);
    std::vector<CpuSet> inside = shares_by_domain(cores, workers);
    const bool serves = !inside.empty() && smallest(inside) >= std::min<std::size_t>(needed, smallest(even));
    return serves ? inside : even;
}

/// Ranks with the same grant.
struct Class {
    CpuSet granted;
    std::vector<std::size_t> ranks; ///< positions
};

std::vector<Class> classes_of(const std::vector<CpuSet>& granted) {
    std::map<CpuSet, std::vector<std::size_t>> by_grant;
    for (std::size_t i = 0; i < granted.size(); ++i) by_grant[granted[i]].push_back(i);
    std::vector<Class> classes;
    classes.reserve(by_grant.size());
    for (auto& [cpus, ranks] : by_grant) classes.push_back({cpus, std::move(ranks)});
    std::sort(classes.begin(), classes.end(), [](const Class& a, const Class& b) { return a.ranks < b.ranks; });
    return classes;
}

bool overlaps_another(const Class& mine, const std::vector<Class>& all) {
    return std::any_of(all.begin(), all.end(), [&](const Class& other) {
        return other.ranks != mine.ranks && !common(other.granted, mine.granted).empty();
    });
}

/// Splits the processors of one class; returns a log text: what was done, or why nothing was.
std::string split(const Class& shared, std::optional<std::size_t> head, const Machine& machine, std::uint32_t needed,
                  std::vector<CpuSet>& out) {
    const Cores cores = granted_cores(shared.granted, machine);
    if (cpu_count(cores) < shared.granted.size()) return "not bound: the node's cores are unknown";
    const bool with_head = head && std::find(shared.ranks.begin(), shared.ranks.end(), *head) != shared.ranks.end();
    const std::size_t workers = shared.ranks.size() - (with_head ? 1 : 0);
    const std::string there = base::counted(cores.size(), "core");
    // One core for the head if the workers have enough without it; otherwise the head shares theirs.
    std::vector<CpuSet> shares;
    CpuSet of_head;
    if (with_head && cores.size() > workers) {
        shares = shares_of(Cores(cores.begin() + 1, cores.end()), workers, needed);
        if (smallest(shares) >= needed) of_head = cores.front().cpus;
    }
    if (of_head.empty() && cores.size() >= workers) shares = shares_of(cores, workers, needed);
    if (shares.empty() || smallest(shares) < needed)
        return "not bound: " + there + " for " + base::counted(workers, "worker") + " with " +
               base::counted(needed, "cpu") + " each" + (with_head ? ", and the head" : "");
    std::size_t next = 0;
    for (const std::size_t rank : shared.ranks) out[rank] = head == rank ? of_head : shares[next++];
    const std::string for_workers = base::counted(workers, "worker");
    if (!with_head) return there + " split among " + for_workers;
    if (of_head.empty()) return there + " split among " + for_workers + ", who share them with the head";
    return there + " split: 1 for the head, " + std::to_string(cores.size() - 1) + " for " + for_workers;
}

} // namespace

NodeBinding bind_node(const std::vector<CpuSet>& granted, std::optional<std::size_t> head, const Machine& machine,
                      std::uint32_t cpus_per_rank) {
    NodeBinding binding;
    binding.cpus.resize(granted.size());
    const auto classes = classes_of(granted);
    std::size_t alone = 0;
    for (const Class& shared : classes) {
        if (shared.granted.empty())
            binding.words.push_back("not bound: the granted cores are unknown");
        else if (overlaps_another(shared, classes))
            binding.words.push_back("not bound: " + cpu_text(shared.granted) + " overlaps other ranks' cores");
        else if (shared.ranks.size() > 1)
            binding.words.push_back(split(shared, head, machine, cpus_per_rank, binding.cpus));
        else
            ++alone;
    }
    if (alone > 0)
        binding.words.push_back(granted.size() == 1 ? "alone on the node"
                                                    : base::counted(alone, "rank") + " bound by the launcher");
    return binding;
}

std::optional<std::uint32_t> domain_of(const CpuSet& cpus, const Machine& machine) {
    const Cores cores = granted_cores(cpus, machine);
    if (cores.empty()) return std::nullopt;
    const bool same =
        std::all_of(cores.begin(), cores.end(), [&](const Core& core) { return core.domain == cores.front().domain; });
    return same ? std::optional(cores.front().domain) : std::nullopt;
}

} // namespace ranktune::comm
