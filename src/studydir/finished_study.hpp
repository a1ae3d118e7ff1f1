// SPDX-License-Identifier: Apache-2.0
#pragma once
// The end of a study on its disk: tables that could not be written, and what a kill at the very end leaves behind.

#include <exception>
#include <functional>
#include <string>

#include "ranktune/study/vocabulary.hpp"
#include "storage/file_system.hpp"
#include "storage/journal/lease.hpp"
#include "studydir/open_study.hpp"

namespace ranktune::studydir {

/// What to say about tables that could not be written, in one line, with what to do.
[[nodiscard]] std::string trouble_with_tables(const std::exception& error);
/// The exit code of a study whose tables could not be written: all is well only with them, and the same command mends
/// it. Any other code says more already.
[[nodiscard]] study::StudyOutcome code_without_tables(study::StudyOutcome outcome);

/// Why a study ended, in words for the file `outcome`.
[[nodiscard]] std::string end_words(study::Reason reason, const std::string& message);

/// Whether a finished study has anything to tidy up, or tables to be made. Changes nothing.
[[nodiscard]] bool needs_tending(storage::FileSystem& files, const std::string& directory, const OpenedStudy& opened);
/// Removes what its last head, or a kill of it, left behind (checkpoints that no record names, folders of programs, the
/// room for `outcome`), makes metrics.h5 where it is missing or was not written at the end, and says so in `outcome`.
/// Only with the lease held. Returns what is wrong with the tables; empty: nothing. `launch`: OutcomeFile::launch.
[[nodiscard]] std::string tend(storage::FileSystem& files, const std::string& directory, const OpenedStudy& opened,
                               const std::string& launch);
/// The same for whoever holds no lease: takes it, where there is anything to do. Where another head lives, or nothing
/// can be written, it is left to another start.
[[nodiscard]] std::string tend_if_free(storage::FileSystem& files, const std::string& directory,
                                       const OpenedStudy& opened, const storage::LeaseWait& wait);

} // namespace ranktune::studydir
