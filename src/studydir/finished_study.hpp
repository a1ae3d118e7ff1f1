// SPDX-License-Identifier: Apache-2.0
#pragma once
// Cleans up a study that is over: writes missing tables and removes what a kill at the very end left behind.

#include <exception>
#include <functional>
#include <string>

#include "ranktune/study/vocabulary.hpp"
#include "storage/file_system.hpp"
#include "storage/journal/lease.hpp"
#include "studydir/open_study.hpp"

namespace ranktune::studydir {

/// One line about tables that could not be written, with advice.
[[nodiscard]] std::string trouble_with_tables(const std::exception& error);
/// The exit code of a study whose tables could not be written: `ok` becomes `resumable`, because the same command
/// writes them; other codes stay.
[[nodiscard]] study::StudyOutcome code_without_tables(study::StudyOutcome outcome);

/// Why a study ended, in words for the file `outcome`.
[[nodiscard]] std::string end_words(study::Reason reason, const std::string& message);

/// Whether a finished study has leftovers to remove or tables to write. Changes nothing.
[[nodiscard]] bool needs_tending(storage::FileSystem& files, const std::string& directory, const OpenedStudy& opened);
/// Removes what the last head or a kill left behind (checkpoints that no record names, folders of programs, the reserve
/// for `outcome`), writes metrics.h5 if it is missing or incomplete, and updates `outcome`. Requires the lease. Returns
/// what is wrong with the tables; empty: nothing. `launch`: OutcomeFile::launch.
[[nodiscard]] std::string tend(storage::FileSystem& files, const std::string& directory, const OpenedStudy& opened,
                               const std::string& launch);
/// The same for a caller without the lease, which it takes if there is anything to do. Does nothing when another head
/// holds the lease or nothing can be written: a later start does it.
[[nodiscard]] std::string tend_if_free(storage::FileSystem& files, const std::string& directory,
                                       const OpenedStudy& opened, const storage::LeaseWait& wait);

} // namespace ranktune::studydir
