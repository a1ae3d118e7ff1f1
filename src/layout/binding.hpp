// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which processors each rank of the job keeps to. The same value on every rank that knows the layout and the study.

#include <string>
#include <vector>

#include "comm/topology/binding.hpp"
#include "layout/layout.hpp"
#include "ranktune/study/spec.hpp"

namespace ranktune::layout {

struct Binding {
    std::vector<comm::CpuSet> cpus; ///< by rank: what it is bound to now; empty: as the launcher left it
    std::string words;              ///< one line for the log: "n1: 8 cores split: 1 for the head, 7 for 3 workers"
    std::string warning;            ///< a worker has fewer processors than the study asks for, and what mends it
    [[nodiscard]] const comm::CpuSet& of(base::Rank rank) const;
    [[nodiscard]] std::size_t bound() const; ///< how many ranks
};

/// Pure. With `resources.bind = "none"` nobody is bound, with "auto" only where the job has its cores for itself: two
/// studies on one machine would choose the same ones.
[[nodiscard]] Binding plan_binding(const Layout& layout, const study::ResourceSpec& resources);

/// The processors that a rank may use in the end.
[[nodiscard]] const comm::CpuSet& cpus_in_use(const Layout& layout, const Binding& binding, base::Rank rank);

/// Binds this process as planned. Empty, or why it could not.
[[nodiscard]] std::string bind_as_planned(const Binding& binding, base::Rank rank);

/// By rank, where it is, for the placement of groups: NUMA domain (0 where it is not known, or there are several in
/// reach) and switches above its node.
[[nodiscard]] std::vector<study::RankInfo> places_of(const Layout& layout, const Binding& binding);

} // namespace ranktune::layout
