// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the programs of trials find their files.

#include <string>

#include "ranktune/base/ids.hpp"

namespace ranktune::studydir {

/// The folder of a trial for its program's own files (`{folder}`), kept over its attempts.
[[nodiscard]] std::string trial_folder(const std::string& study_directory, base::TrialId trial);
/// The folder that holds those of all trials.
[[nodiscard]] std::string trial_folders(const std::string& study_directory);

/// The file `name` in `folder`, or in the nearest folder above it that has one; empty: none has. For the command of a
/// program that works elsewhere.
[[nodiscard]] std::string find_above(const std::string& folder, const std::string& name);

} // namespace ranktune::studydir
