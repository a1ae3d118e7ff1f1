// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random studies and random lives of their clusters, drawn from a stream: what the campaigns are made of.

#include <string>

#include "ranktune/base/rng.hpp"
#include "ranktune/study/spec.hpp"
#include "sim/cluster.hpp"

namespace ranktune::sim {

/// Any scheduler, searcher and stopper; trials of at most three ranks, and no more than `workers`.
[[nodiscard]] study::StudySpec draw_spec(base::RngStream& rng, std::uint32_t workers);
/// "asha promote": for descriptions.
[[nodiscard]] std::string scheduler_text(const study::SchedulerSpec& scheduler);
/// Delays and faults of the wires, and how trials behave; nobody dies.
[[nodiscard]] ClusterOptions draw_life(base::RngStream& rng, std::uint32_t workers);
/// Adds deaths of workers and of the head, early stops, and checkpoints that cannot be read, or none.
void draw_deaths(base::RngStream& rng, ClusterOptions& life);

} // namespace ranktune::sim
