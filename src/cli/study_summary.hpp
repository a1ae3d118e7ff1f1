// SPDX-License-Identifier: Apache-2.0
#pragma once
// What status and best say about a study: the state, who runs it, and what its head knows beside the journal.

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "report/screens/screens.hpp"
#include "report/view/load.hpp"
#include "studydir/study_directory.hpp"
#include "tuner/state.hpp"

namespace ranktune::cli {

/// Loads the state, and warns when the newest records are missing. Throws as report::load_state.
[[nodiscard]] report::LoadedStudy load_state(const std::string& directory);

/// The state as of the newest record; nothing when the journal cannot be read: for what works without it.
[[nodiscard]] std::optional<report::LoadedStudy> readable_state(storage::FileSystem& files,
                                                                const std::string& directory);

/// How the study goes, for the screens.
[[nodiscard]] report::Live live_of(const tuner::Tuner& tuner, const std::string& directory);

/// The object that `status --format json` prints; its member `best` is also that of `best`.
[[nodiscard]] nlohmann::ordered_json summary(const report::LoadedStudy& study, const std::string& directory);

/// Prints it to standard output. Bytes that are not UTF-8 are replaced.
void print(const nlohmann::ordered_json& json);

// ---- Whether a study has ended, is run by somebody, or was left: what its journal, its lease and its files say
// together.

struct Standing {
    std::string text;         ///< "finished, exit 0", "run by pid 4711 on n0", "not running"
    bool interrupted = false; ///< nobody runs it, and it has not ended
    /// How the newest start ended, where `interrupted`; nothing when its head could not write it.
    std::optional<studydir::OutcomeFile> outcome;
};
[[nodiscard]] Standing standing_of(const tuner::State& state, const std::string& directory);

} // namespace ranktune::cli
