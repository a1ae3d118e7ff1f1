// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a study file says that a study of asked and told trials cannot do.

#include <string>
#include <vector>

#include "ranktune/study/spec.hpp"

namespace ranktune::head {

/// One sentence for each, with its key; empty: the study can be driven by ask and tell.
[[nodiscard]] std::vector<std::string> refusals(const study::StudySpec& spec);

} // namespace ranktune::head
