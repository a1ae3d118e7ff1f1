// SPDX-License-Identifier: Apache-2.0
#pragma once
// The note that only rank 0 of this study's programs reports: logs/rank-0-alone, one line per attempt. It is in the
// study directory so that every worker and every later start sees it.

#include <cstdint>
#include <string>

namespace ranktune::studydir {

/// Number of attempts that noticed it; 0: none, another rank has reported since, or the note cannot be read.
[[nodiscard]] std::uint64_t lone_reports(const std::string& study_directory);
/// Adds an attempt. Does not throw: without the note a later attempt waits longer, nothing else.
void note_lone_reports(const std::string& study_directory);
/// Another rank has reported: removes the note.
void forget_lone_reports(const std::string& study_directory);

} // namespace ranktune::studydir
