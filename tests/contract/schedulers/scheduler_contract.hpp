// SPDX-License-Identifier: Apache-2.0
#pragma once
// What every scheduler must do, written once against the interface: call it with a study that asks for yours.

#include "ranktune/study/spec.hpp"

namespace ranktune::contract {

/// Runs the whole protocol (Catch2 checks). `spec` needs objective, max_iterations and scheduler; both modes are tried.
void check_scheduler(study::StudySpec spec);

} // namespace ranktune::contract
