// SPDX-License-Identifier: Apache-2.0
#pragma once
// The state of a trial among its ranks: rank 0 reads a checkpoint and all get it.

#include "ranktune/ddp/group.hpp"
#include "ranktune/study/state.hpp"

namespace ranktune::trial {

/// Collective. Gives rank 0's `state` to all; on the other ranks `state` must be empty and is filled. Memory: one copy
/// on every rank.
void broadcast_state(ddp::Group& group, study::MemoryState& state);

} // namespace ranktune::trial
