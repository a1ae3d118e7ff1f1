// SPDX-License-Identifier: Apache-2.0
#pragma once
// A study with its history, looked at again and again while it runs: what a live page needs.

#include <memory>
#include <string>

#include "report/view/load.hpp"
#include "report/view/study_view.hpp"
#include "storage/journal/journal_follower.hpp"

namespace ranktune::report {

/// As FollowedStudy, with curves, decisions and attempts. The first look reads the whole journal.
class FollowedHistory {
  public:
    /// Throws as load_study.
    FollowedHistory(storage::FileSystem& files, std::string directory);

    /// Reads what is new. Whether anything changed. Throws base::FormatError for a damaged journal, and base::IoError
    /// when files cannot be read now.
    bool refresh();

    [[nodiscard]] const tuner::Tuner& tuner() const { return *study_.tuner; }
    [[nodiscard]] const storage::JournalSummary& journal() const { return follower_->read(); }
    [[nodiscard]] StudyView view() {
        study_.notes = studydir::Notes::read(files_, {directory_});
        return study_view(study_, history_);
    }

  private:
    void load();

    storage::FileSystem& files_;
    std::string directory_;
    LoadedStudy study_;
    History history_;
    std::unique_ptr<storage::JournalFollower> follower_;
};

} // namespace ranktune::report
