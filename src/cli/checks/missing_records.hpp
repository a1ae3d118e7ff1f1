// SPDX-License-Identifier: Apache-2.0
#pragma once
// A word about a journal whose newest records are missing, from verbs that only read.

#include <string>
#include <vector>

#include "studydir/journal_extent.hpp"

namespace ranktune::cli {

/// To be made *before* the journal is read: a head may be writing.
class MissingRecords {
  public:
    explicit MissingRecords(std::string directory);
    /// Says it on standard error when the journal that was read ends too early; returns whether it does. (Of a study
    /// whose writer lives, this machine may not see the newest records yet: no word about it.)
    bool tell(const storage::JournalSummary& found) const;

  private:
    std::string directory_;
    std::vector<studydir::JournalExtent> known_;
};

} // namespace ranktune::cli
