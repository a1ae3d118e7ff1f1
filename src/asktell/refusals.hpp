// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a study file says that a study of asked and told trials cannot do.

#include <string>
#include <vector>

#include "ranktune/study/spec.hpp"

namespace ranktune::asktell {

/// One sentence for each, with its key; empty: the study can be driven by ask and tell. `is_new`: it has not begun.
[[nodiscard]] std::vector<std::string> refusals(const study::StudySpec& spec, bool is_new);

} // namespace ranktune::asktell
