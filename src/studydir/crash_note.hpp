// SPDX-License-Identifier: Apache-2.0
#pragma once
// Crash notes: a rank that is about to die because of its trial leaves a note in the study directory, because the
// launcher then ends the whole job, head included. The next head reads the notes.
//
// One file per rank of the job, logs/crash-<incarnation>-<rank>, with the line "<trial> <attempt> <message>".

#include <string>
#include <string_view>
#include <vector>

#include "storage/file_system.hpp"
#include "wire/protocol.hpp"

namespace ranktune::studydir {

/// How the message of a note begins whose rank ended because its GPU did not answer any more. That can be the fault of
/// the GPU or of the trial: such a note tells people what happened, and accuses nobody.
inline constexpr std::string_view device_note = "device: ";

/// Sets the file of this rank's note. Call once, before the other functions.
void prepare_crash_note(const std::string& study_directory, base::Incarnation incarnation, base::Rank rank);

/// Sets the attempt that this rank works on. Attempt zero means none: then no note is written.
void note_attempt(const wire::AttemptKey& key);

/// Writes the note. Async-signal-safe; only the first call writes. `message` is one line.
void leave_crash_note(const char* message) noexcept;

/// The notes that ranks of this incarnation left, ordered by rank. Unreadable notes are skipped.
[[nodiscard]] std::vector<study::CrashNote> read_crash_notes(storage::FileSystem& files,
                                                             const std::string& study_directory,
                                                             std::uint32_t incarnation);

} // namespace ranktune::studydir
