// SPDX-License-Identifier: Apache-2.0
#pragma once
// A study whose trials are those of an earlier one, trained further: a directory of its own that begins where these
// trials stand, with their reports and their newest checkpoints.

#include <string>
#include <vector>

#include "ranktune/base/ids.hpp"
#include "storage/file_system.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::studydir {

struct ExtensionRequest {
    std::string from;                  ///< absolute
    std::string to;                    ///< absolute; empty, or not there
    std::vector<base::TrialId> trials; ///< distinct; trial i of the new study is the i-th
    study::StudySpec spec;             ///< of the new study: these trials alone, as starting points
    std::string version;               ///< of this program
};

/// A trial of the new study.
struct ExtendedTrial {
    base::TrialId was;             ///< in the old study
    base::Iteration iteration = 0; ///< from which it goes on; 0: no checkpoint was kept, so it begins again
};

/// Makes the new directory: checkpoints are linked, or copied where links are not possible. `old`: the state of the
/// study in `from`. Nothing of the old directory changes but its notes; both get a note for each trial. Throws
/// base::UsageError for a place that is not empty, a trial that has trained as far already, or a simulated study;
/// base::IoError.
[[nodiscard]] std::vector<ExtendedTrial> extend_study(storage::FileSystem& files, const tuner::Tuner& old,
                                                      const ExtensionRequest& request);

} // namespace ranktune::studydir
