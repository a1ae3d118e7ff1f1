// SPDX-License-Identifier: Apache-2.0
#pragma once
// Trouble with the study directory before anything began.

#include <string>

#include "ranktune/base/error.hpp"
#include "ranktune/study/vocabulary.hpp"

namespace ranktune::drivers {

/// How a run ends whose directory makes trouble before anything began: resumably when it may pass (storage::may_pass),
/// with what to do about it.
struct EarlyTrouble {
    study::StudyOutcome outcome;
    std::string words;
};
[[nodiscard]] EarlyTrouble early_trouble(const base::IoError& error);

/// What a person can do about such an error: "Make room".
[[nodiscard]] std::string what_to_mend(const base::IoError& error);

} // namespace ranktune::drivers
