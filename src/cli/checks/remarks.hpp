// SPDX-License-Identifier: Apache-2.0
#pragma once
// What was asked for and has no effect on the study that was found, in sentences: nothing is ignored in silence.

#include <string>
#include <vector>

#include "studydir/open_study.hpp"

namespace ranktune::cli {

struct RunArguments;

/// One line each; none: everything counts. Of a study that is finished, changed keys are named with what it would take
/// for them to count.
[[nodiscard]] std::vector<std::string> without_effect(const RunArguments& arguments,
                                                      const studydir::OpenedStudy& opened);

} // namespace ranktune::cli
