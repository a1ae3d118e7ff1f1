// SPDX-License-Identifier: Apache-2.0
#pragma once
// Options and changes that have no effect on an existing study, in sentences: nothing is ignored silently.

#include <string>
#include <vector>

#include "studydir/open_study.hpp"

namespace ranktune::cli {

struct RunArguments;

/// One sentence per option or group of changes; empty: everything takes effect. For a finished study, changed keys are
/// named together with what would make them count.
[[nodiscard]] std::vector<std::string> without_effect(const RunArguments& arguments,
                                                      const studydir::OpenedStudy& opened);

} // namespace ranktune::cli
