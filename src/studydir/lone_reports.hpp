// SPDX-License-Identifier: Apache-2.0
#pragma once
// The note that the programs of a study report on rank 0 alone: logs/rank-0-alone, a line for each attempt. There every
// worker sees it, and it outlives a start.

#include <cstdint>
#include <string>

namespace ranktune::studydir {

/// Attempts in which that was recognised; 0: none, or another rank has reported since. What cannot be read is no note.
[[nodiscard]] std::uint64_t lone_reports(const std::string& study_directory);
/// One more. Throws nothing: without the note a later attempt waits longer, and that is all.
void note_lone_reports(const std::string& study_directory);
/// Another rank has reported after all.
void forget_lone_reports(const std::string& study_directory);

} // namespace ranktune::studydir
