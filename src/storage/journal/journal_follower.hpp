// SPDX-License-Identifier: Apache-2.0
#pragma once
// JournalFollower: reads what a growing journal gains, again and again, without reading the rest again.

#include <cstdint>
#include <functional>
#include <string>

#include "storage/journal/journal.hpp"

namespace ranktune::storage {

/// What a look at the journal found.
enum class Followed : std::uint8_t {
    nothing, ///< no new record, or none that is valid yet
    grown,   ///< new records were visited
    /// What was read is not, or not all, in the journal any more: another head went on from an earlier record (what it
    /// could not find had not reached the disk), or the directory holds another study. Read it again from the start.
    rebuild
};

/// For readers that look at a study while a head writes: `status --watch` and the like. Each look opens the files anew
/// and reads them from where the one before ended, by plain reads (no lock, no mmap).
///
/// The end of a growing journal may look damaged: a write is under way, or a network file system shows the parts of
/// one write at different times. So an invalid end means "not yet". Only what stays invalid is an error.
class JournalFollower {
  public:
    /// Follows from the end of what was read: the summary of read_journal, read_history or read_journal_tail.
    JournalFollower(FileSystem& files, std::string directory, JournalSummary read)
        : files_(files), directory_(std::move(directory)), read_(std::move(read)) {}

    /// Visits the new records in order, without snapshots. After `rebuild` it may not be called again. Throws
    /// base::FormatError when the journal was damaged or shorter than before, or a record could not be decoded, in
    /// `patience` looks in a row;
    /// base::IoError when the files cannot be read: the next look may succeed.
    [[nodiscard]] Followed look(const VisitNumbered& visit);

    /// The summary of everything that was read.
    [[nodiscard]] const JournalSummary& read() const { return read_; }

    static constexpr int patience = 5;

  private:
    FileSystem& files_;
    std::string directory_;
    JournalSummary read_;
    int failures_ = 0; ///< looks in a row
};

} // namespace ranktune::storage
