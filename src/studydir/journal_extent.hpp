// SPDX-License-Identifier: Apache-2.0
#pragma once
// How far a study's journal once reached according to `outcome` and `status`: without them, a journal whose newest
// segments are missing looks complete.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ranktune/base/error.hpp"
#include "storage/journal/journal.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::studydir {

/// The journal is shorter than it once was.
class JournalBehind : public base::FormatError {
  public:
    /// `writer`: the host that wrote the newest segment found.
    JournalBehind(const std::string& what, std::string writer) : FormatError(what), writer_(std::move(writer)) {}
    [[nodiscard]] const std::string& writer() const { return writer_; }

  private:
    std::string writer_;
};

/// A lower bound. The journal was synced this far before the file was written, so neither a crash nor a power loss
/// makes the bound wrong, whether the file itself was synced or not.
struct JournalExtent {
    std::uint32_t start = 0;   ///< number of a start that has published a segment
    std::uint64_t records = 0; ///< of all starts up to `start`, synced
    std::string file;          ///< its source: "outcome" or "status"
};

/// The extents in `outcome` (already read) and `status`; missing or unreadable files are skipped. Call it *before* the
/// journal is read: a head may be writing all of them.
[[nodiscard]] std::vector<JournalExtent> known_extents(storage::FileSystem& files, const StudyDirectory& directory,
                                                       const std::optional<OutcomeFile>& outcome);

/// What is missing and what to do, when the journal ends before a known extent; otherwise empty.
[[nodiscard]] std::string what_is_missing(const std::vector<JournalExtent>& known, const storage::JournalSummary& found,
                                          const std::string& study_directory);

} // namespace ranktune::studydir
