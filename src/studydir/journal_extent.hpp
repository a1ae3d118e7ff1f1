// SPDX-License-Identifier: Apache-2.0
#pragma once
// How far a study's journal reached once, by what other files of its directory say: a journal whose newest segments
// are missing looks whole by itself.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ranktune/base/error.hpp"
#include "storage/journal/journal.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::studydir {

/// The journal reaches less far than it once did.
class JournalBehind : public base::FormatError {
  public:
    /// `writer`: the machine of the newest life that was found.
    JournalBehind(const std::string& what, std::string writer) : FormatError(what), writer_(std::move(writer)) {}
    [[nodiscard]] const std::string& writer() const { return writer_; }

  private:
    std::string writer_;
};

/// A lower bound. What it says was on the disk before it was written, so no crash and no loss of power makes it wrong,
/// whether the file that says it was synced or not.
struct JournalExtent {
    std::uint32_t start = 0;   ///< number of a start that has published a segment
    std::uint64_t records = 0; ///< of all starts up to then, synced
    std::string file;          ///< that says so, by its name in the study directory
};

/// What `outcome` (as it was read) and `status` say; one that is not there, or says nothing, is left out. To be asked
/// *before* the journal is read: a head may be writing both.
[[nodiscard]] std::vector<JournalExtent> known_extents(storage::FileSystem& files, const StudyDirectory& directory,
                                                       const std::optional<OutcomeFile>& outcome);

/// What is missing and what to do, when the journal that was read ends before one of those; else empty.
[[nodiscard]] std::string what_is_missing(const std::vector<JournalExtent>& known, const storage::JournalSummary& found,
                                          const std::string& study_directory);

} // namespace ranktune::studydir
