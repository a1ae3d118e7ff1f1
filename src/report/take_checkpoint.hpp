// SPDX-License-Identifier: Apache-2.0
#pragma once
// One checkpoint of a trial that may be training right now: what the journal has listed a moment ago may be gone.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ranktune/study/state.hpp"
#include "ranktune/study/vocabulary.hpp"

namespace ranktune::report {

/// `list`: what the journal lists now, the one that is wanted most first; it throws when there is none. `load` throws
/// base::Error for one that cannot be read. One that is still listed then is passed over, which `tell` hears in a
/// sentence; when one is not listed any more, the study has replaced it, and the choice begins again. Throws what
/// `load` threw for the last one, and base::UsageError when they are replaced faster than they can be read.
[[nodiscard]] std::pair<study::CheckpointRef, study::MemoryState> take_checkpoint(
    const std::function<std::vector<study::CheckpointRef>()>& list,
    const std::function<study::MemoryState(const study::CheckpointRef&)>& load,
    const std::function<void(const std::string&)>& tell);

} // namespace ranktune::report
