// SPDX-License-Identifier: Apache-2.0
#pragma once
// Loads a checkpoint of a trial that may be training: listed checkpoints may be replaced at any time.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ranktune/study/state.hpp"
#include "ranktune/study/vocabulary.hpp"

namespace ranktune::report {

/// Loads the first readable checkpoint of `list`, which returns what the journal lists now, the preferred one first,
/// and throws when there is none. `load` throws base::Error for an unreadable checkpoint. If that one is still listed,
/// it is skipped, and `tell` gets a sentence; if not, the study has replaced it, and the choice starts over. Throws the
/// error of `load` for the last candidate, and base::UsageError when checkpoints are replaced faster than they can be
/// read.
[[nodiscard]] std::pair<study::CheckpointRef, study::MemoryState> take_checkpoint(
    const std::function<std::vector<study::CheckpointRef>()>& list,
    const std::function<study::MemoryState(const study::CheckpointRef&)>& load,
    const std::function<void(const std::string&)>& tell);

} // namespace ranktune::report
