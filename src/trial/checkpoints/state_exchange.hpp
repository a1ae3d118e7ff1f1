// SPDX-License-Identifier: Apache-2.0
#pragma once
// Distributes a checkpoint that rank 0 has read to all ranks of a trial.

#include "ranktune/ddp/group.hpp"
#include "ranktune/study/state.hpp"

namespace ranktune::trial {

/// Collective. Copies rank 0's `state` to all ranks; on the others `state` must be empty. Memory: one copy per rank.
void broadcast_state(ddp::Group& group, study::MemoryState& state);

} // namespace ranktune::trial
