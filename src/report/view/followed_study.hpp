// SPDX-License-Identifier: Apache-2.0
#pragma once
// A study that is looked at again and again while it runs.

#include <memory>
#include <string>

#include "report/view/last_metrics.hpp"
#include "report/view/load.hpp"
#include "storage/journal/journal_follower.hpp"
#include "tuner/resume.hpp"

namespace ranktune::report {

/// The state of a study, and, if asked for, the newest value of every metric. Each refresh reads only what the journal
/// has gained; after a take-over that dropped records, everything is read again.
class FollowedStudy {
  public:
    /// Throws as load_study.
    FollowedStudy(storage::FileSystem& files, std::string directory);

    /// Reads what is new. Whether anything changed. Throws base::FormatError for a damaged journal, and base::IoError
    /// when files cannot be read now.
    bool refresh();

    [[nodiscard]] const tuner::Tuner& tuner() const { return grown_->tuner(); }
    [[nodiscard]] const storage::JournalSummary& journal() const { return follower_->read(); }
    /// The first call reads the whole journal. Kept up to date from then on.
    [[nodiscard]] const LastMetrics& metrics();

  private:
    void load();

    storage::FileSystem& files_;
    std::string directory_;
    std::unique_ptr<tuner::Regrown> grown_;
    std::unique_ptr<storage::JournalFollower> follower_;
    std::unique_ptr<LastMetrics> metrics_; ///< null: not asked for
};

} // namespace ranktune::report
