// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a worker is, for the core: what the launcher says about its rank, and what the worker says about itself.

#include <vector>

#include "ranktune/study/spec.hpp"
#include "ranktune/study/vocabulary.hpp"
#include "wire/protocol.hpp"

namespace ranktune::head {

/// Pure. `places`: by rank, as the launcher says; no entry: unknown. The driver's word on GPUs goes first.
[[nodiscard]] study::RankInfo place_of(base::Rank rank, const wire::Hello& hello,
                                       const std::vector<study::RankInfo>& places, study::GpuUse gpus);

} // namespace ranktune::head
