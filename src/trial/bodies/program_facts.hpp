// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a program is told about its attempt, on whatever rank.

#include <string>

#include "trainables/program/environment.hpp"
#include "trial/attempt.hpp"

namespace ranktune::trial {

/// `<trial>-<start>.<attempt>`: unique in a study.
[[nodiscard]] std::string name_of(const study::StartTrial& start);

/// Without what depends on other ranks, on a folder or on a checkpoint. Throws process::SetUpError: the folder of
/// ranktune.py cannot be passed on.
[[nodiscard]] trainables::ProgramFacts facts_of(const AttemptSetting& setting, const Assignment& assignment);

/// Throws process::SetUpError when the study directory cannot be read.
void need_directory(const ProgramSetting& setting);

} // namespace ranktune::trial
