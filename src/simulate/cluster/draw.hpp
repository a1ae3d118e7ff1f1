// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random studies and random lives of their clusters, for the campaigns.

#include <string>
#include <vector>

#include "ranktune/base/rng.hpp"
#include "ranktune/study/spec.hpp"
#include "simulate/cluster/cluster.hpp"

namespace ranktune::simulate {

/// `fifo`, `asha` or `median`, any stopper; at most three ranks per trial, and no more than `workers`.
[[nodiscard]] study::StudySpec draw_spec(base::RngStream& rng, std::uint32_t workers);
/// Gives the study one of the other schedulers, populations among them.
void draw_breadth(base::RngStream& rng, study::StudySpec& spec);
/// Lets a study whose trials differ in size have trials without GPUs, too, and gives its lives workers of both kinds.
void draw_gpus(base::RngStream& rng, study::StudySpec& spec, std::vector<ClusterOptions>& lives);
/// Gives a population that has no limit of bytes for its checkpoints one, in half of the cases; often too small a one.
void draw_limit(base::RngStream& rng, study::StudySpec& spec);
/// For descriptions: "asha promote".
[[nodiscard]] std::string scheduler_text(const study::SchedulerSpec& scheduler);
/// Draws delays and faults of the wires and the behaviour of trials, without deaths.
[[nodiscard]] ClusterOptions draw_life(base::RngStream& rng, std::uint32_t workers);
/// May add deaths of workers and of the head, early stops, and unreadable checkpoints.
void draw_deaths(base::RngStream& rng, ClusterOptions& life);

/// Some of the side tasks, and sometimes a rank more for them in each life.
void draw_side_tasks(base::RngStream& rng, study::StudySpec& spec, std::vector<ClusterOptions>& lives);

} // namespace ranktune::simulate
