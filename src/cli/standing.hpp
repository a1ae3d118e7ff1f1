// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a study has ended, is run by somebody, or was left: what its journal, its lease and its files say together.

#include <optional>
#include <string>

#include "studydir/study_directory.hpp"
#include "tuner/state.hpp"

namespace ranktune::cli {

struct Standing {
    std::string text;         ///< "ended, exit 0", "run by pid 4711 on n0", "not running"
    bool interrupted = false; ///< nobody runs it, and it has not ended
    /// How the newest start ended, where `interrupted`; nothing when its head could not write it.
    std::optional<studydir::OutcomeFile> outcome;
};
[[nodiscard]] Standing standing_of(const tuner::State& state, const std::string& directory);

} // namespace ranktune::cli
