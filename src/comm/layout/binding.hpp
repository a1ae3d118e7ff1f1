// SPDX-License-Identifier: Apache-2.0
#pragma once
// The processors to which each rank of the job is bound. Computed identically on every rank from layout and study.

#include <string>
#include <vector>

#include "comm/layout/layout.hpp"
#include "comm/topology/binding.hpp"
#include "ranktune/study/spec.hpp"

namespace ranktune::comm {

struct Binding {
    std::vector<comm::CpuSet> cpus; ///< by rank; empty: not bound by ranktune
    std::string words;              ///< one line for the log: "n1: 8 cores split: 1 for the head, 7 for 3 workers"
    std::string warning;            ///< a worker has too few processors, and how to fix that
    [[nodiscard]] const comm::CpuSet& of(base::Rank rank) const;
    [[nodiscard]] std::size_t bound() const; ///< how many ranks
};

/// Pure. With `resources.bind = "none"` no rank is bound; with "auto" only where the job owns its cores, because two
/// studies on one machine would choose the same ones.
[[nodiscard]] Binding plan_binding(const Layout& layout, const study::ResourceSpec& resources);

/// The processors that a rank may use after binding.
[[nodiscard]] const comm::CpuSet& cpus_in_use(const Layout& layout, const Binding& binding, base::Rank rank);

/// Binds this process as planned. Empty, or why it could not.
[[nodiscard]] std::string bind_as_planned(const Binding& binding, base::Rank rank);

/// Location by rank, for the placement of groups: NUMA domain (0: unknown or several), the switches above its node, and
/// the name of its GPU.
[[nodiscard]] std::vector<study::RankInfo> places_of(const Layout& layout, const Binding& binding);

} // namespace ranktune::comm
