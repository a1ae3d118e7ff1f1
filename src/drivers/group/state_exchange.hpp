// SPDX-License-Identifier: Apache-2.0
#pragma once
// The state of a trial among its ranks: rank 0 reads a checkpoint and all get it; all save and the copies are compared.

#include "ranktune/ddp/collective.hpp"
#include "ranktune/study/state.hpp"

namespace ranktune::drivers {

/// Collective. Gives rank 0's `state` to all; on the other ranks `state` must be empty and is filled. Memory: one copy
/// on every rank.
void broadcast_state(ddp::Collective& collective, study::MemoryState& state);

/// Collective. Whether all ranks hold the same parameters (MemoryState::digest).
[[nodiscard]] bool same_parameters(ddp::Collective& collective, const study::MemoryState& state);

} // namespace ranktune::drivers
