// SPDX-License-Identifier: Apache-2.0
#include "comm/topology/machine.hpp"

#include <hwloc.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>

#include "base/take_until.hpp"

namespace ranktune::comm {
namespace {

/// A topology that frees itself; null when hwloc cannot read this machine.
using Topology = std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;

Topology load_topology(unsigned long flags) {
    hwloc_topology_t raw = nullptr;
    if (hwloc_topology_init(&raw) != 0) return {nullptr, &hwloc_topology_destroy};
    Topology topology(raw, &hwloc_topology_destroy);
    hwloc_topology_set_flags(raw, flags);
    if (hwloc_topology_load(raw) != 0) topology.reset();
    return topology;
}

CpuSet set_of(hwloc_const_bitmap_t bits) {
    CpuSet cpus;
    for (int cpu = hwloc_bitmap_first(bits); cpu >= 0; cpu = hwloc_bitmap_next(bits, cpu))
        cpus.push_back(static_cast<std::uint32_t>(cpu));
    return cpus;
}

using Bitmap = std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)>;
Bitmap new_bitmap() { return {hwloc_bitmap_alloc(), &hwloc_bitmap_free}; }

std::optional<std::uint32_t> take_number(std::string_view& text) {
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
}

} // namespace

std::string cpu_text(const CpuSet& cpus) {
    std::string text;
    for (std::size_t i = 0; i < cpus.size();) {
        std::size_t last = i;
        while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
        text += (text.empty() ? "" : ",") + std::to_string(cpus[i]);
        if (last > i) text += "-" + std::to_string(cpus[last]);
        i = last + 1;
    }
    return text;
}

CpuSet cpus_of(std::string_view text) {
    constexpr std::uint32_t most = 1U << 20U;
    CpuSet cpus;
    while (!text.empty()) {
        std::string_view field = base::take_until(text, ',');
        const auto first = take_number(field);
        if (!first || *first >= most) continue;
        auto last = first;
        if (field.starts_with('-')) {
            field.remove_prefix(1);
            last = take_number(field);
        }
        for (std::uint32_t cpu = *first; last && cpu <= std::min(*last, most); ++cpu) cpus.push_back(cpu);
    }
    std::sort(cpus.begin(), cpus.end());
    cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
    return cpus;
}

Machine read_machine() {
    const Topology topology = load_topology(HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    if (!topology) return {};
    Machine machine;
    const int cores = hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_CORE);
    for (int i = 0; i < cores; ++i) {
        const hwloc_obj_t object = hwloc_get_obj_by_type(topology.get(), HWLOC_OBJ_CORE, static_cast<unsigned>(i));
        // A core may belong to several domains: take the first.
        const int domain = hwloc_bitmap_first(object->nodeset);
        machine.cores.push_back({set_of(object->cpuset), static_cast<std::uint32_t>(std::max(0, domain))});
    }
    std::stable_sort(machine.cores.begin(), machine.cores.end(),
                     [](const Core& a, const Core& b) { return a.domain < b.domain; });
    return machine;
}

CpuSet granted_cpus() {
    const Topology topology = load_topology(0);
    const Bitmap bits = new_bitmap();
    if (!topology || hwloc_get_cpubind(topology.get(), bits.get(), HWLOC_CPUBIND_PROCESS) != 0) return {};
    return set_of(bits.get());
}

bool bind_process(const CpuSet& cpus) {
    const Topology topology = load_topology(0);
    const Bitmap bits = new_bitmap();
    for (const std::uint32_t cpu : cpus) hwloc_bitmap_set(bits.get(), cpu);
    return topology && hwloc_set_cpubind(topology.get(), bits.get(), HWLOC_CPUBIND_PROCESS) == 0;
}

} // namespace ranktune::comm
