// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a program is told about its attempt, on whatever rank.

#include <string>

#include "process/child.hpp"
#include "process/program/environment.hpp"
#include "worker/trial/attempt.hpp"

namespace ranktune::worker {

/// `<trial>-<start>.<attempt>`, with study::unit_text: unique in a study.
[[nodiscard]] std::string name_of(const study::StartTrial& start);

/// Without what depends on other ranks, on a folder or on a checkpoint. Throws process::SetUpError: the folder of
/// ranktune.py cannot be passed on.
[[nodiscard]] process::ProgramFacts facts_of(const AttemptSetting& setting, const Assignment& assignment);

/// The configuration, for values of `env`: with the number of the row whose cells it has, unless a column is called so.
[[nodiscard]] space::Configuration with_number(space::Configuration configuration, const study::StartTrial& start);

/// From TERM to KILL. A rank that does not leave within abort_grace is given up: its program must be gone before that.
[[nodiscard]] process::Child::Clock::duration term_grace_of(const study::StudySpec& spec);

/// Throws process::SetUpError when the study directory cannot be read.
void need_directory(const ProgramSetting& setting);

} // namespace ranktune::worker
