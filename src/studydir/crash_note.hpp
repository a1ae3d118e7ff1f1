// SPDX-License-Identifier: Apache-2.0
#pragma once
// Crash notes: a rank that is about to die because of its trial leaves a note in the study directory, because the
// launcher then ends the whole job, head included. The next head reads the notes.
//
// One file per rank of the job, logs/crash-<incarnation>-<rank>, with the line "<trial> <attempt> <cause> <message>".

#include <cstdint>
#include <string>
#include <vector>

#include "comm/wire/protocol.hpp"
#include "storage/file_system.hpp"

namespace ranktune::studydir {

/// Why a rank ended; `trial` or `device` in the file.
enum class CrashCause : std::uint8_t {
    trial, ///< user code crashed or hung
    device ///< its GPU did not answer any more: the fault of the GPU or of the trial, so the note accuses nobody
};

/// Sets the file of this rank's note. Call once, before the other functions.
void prepare_crash_note(const std::string& study_directory, base::Incarnation incarnation, base::Rank rank);

/// Sets the attempt that this rank works on. Attempt zero means none: then no note is written.
void note_attempt(const comm::AttemptKey& key);

/// Writes the note. Async-signal-safe; only the first call writes. `message` is one line.
void leave_crash_note(CrashCause cause, const char* message) noexcept;

/// Each list is ordered by rank.
struct CrashNotes {
    std::vector<study::CrashNote> trial;
    std::vector<study::CrashNote> device;
};
/// The note that a rank of this incarnation left; empty: none, or not readable.
[[nodiscard]] CrashNotes read_crash_note(storage::FileSystem& files, const std::string& study_directory,
                                         std::uint32_t incarnation, base::Rank rank);
/// The notes that ranks of this incarnation left. Unreadable notes are skipped.
[[nodiscard]] CrashNotes read_crash_notes(storage::FileSystem& files, const std::string& study_directory,
                                          std::uint32_t incarnation);

} // namespace ranktune::studydir
