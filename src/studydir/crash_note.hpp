// SPDX-License-Identifier: Apache-2.0
#pragma once
// Crash notes: a rank that is about to end by the fault of its trial leaves word in the study directory, because the
// launcher will end the whole job, head included. The next head reads who it was.
//
// One file per rank (of the job) that had something to say, logs/crash-<incarnation>-<rank>. It holds
// "<trial> <attempt> <message>".

#include <string>
#include <vector>

#include "storage/file_system.hpp"
#include "wire/protocol.hpp"

namespace ranktune::studydir {

/// Where this rank would leave its note; once, before any other call.
void prepare_crash_note(const std::string& study_directory, base::Incarnation incarnation, base::Rank rank);

/// What this rank works on, for a note; attempt zero: nothing, and then no note is left.
void note_attempt(const wire::AttemptKey& key);

/// Leaves the note. Async-signal-safe; the first call counts. `message` is one line.
void leave_crash_note(const char* message) noexcept;

/// The notes that ranks of this incarnation left, by rank. What cannot be read is left out.
[[nodiscard]] std::vector<study::CrashNote> read_crash_notes(storage::FileSystem& files,
                                                             const std::string& study_directory,
                                                             std::uint32_t incarnation);

} // namespace ranktune::studydir
