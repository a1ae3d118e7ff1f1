// SPDX-License-Identifier: Apache-2.0
#pragma once
// What read-only verbs say about a journal whose newest records are missing.

#include <string>
#include <vector>

#include "studydir/journal_extent.hpp"

namespace ranktune::cli {

/// Construct it *before* reading the journal: a head may be writing.
class MissingRecords {
  public:
    explicit MissingRecords(std::string directory);
    /// Warns on standard error when the journal that was read ends too early, and returns whether it does. Silent, and
    /// false, while the study's writer lives: this machine may not see the newest records yet.
    bool tell(const storage::JournalSummary& found) const;
    /// In a few words, for a page; empty: nothing is missing, or a writer may live. Does not wait.
    [[nodiscard]] std::string words(const storage::JournalSummary& found) const;

  private:
    std::string directory_;
    std::vector<studydir::JournalExtent> known_;
};

} // namespace ranktune::cli
