// SPDX-License-Identifier: Apache-2.0
#pragma once
// The history of one trial from the journal: when and where it started, was paused, promoted, saved, and ended.

#include <string>
#include <vector>

#include "ranktune/study/record.hpp"
#include "storage/file_system.hpp"

namespace ranktune::report {

/// Collects the lines of one trial while a journal is read. Reports without a decision are left out: `export --table
/// reports` has them.
///
///   attempt 1 started on n0 (w1-2), from scratch
///   iteration 1: val_accuracy 0.7500, pause: waits at rung 1 with 2 entries
class TrialLife {
  public:
    TrialLife(study::TrialId trial, std::string metric);
    /// Takes every record of the journal, in order from the first.
    void add(const study::Record& record);
    /// Each line begins with the study time, `label_width` columns wide.
    [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }

  private:
    void line(study::StudyTime at, const std::string& text);
    void tell(const study::TrialCreated& created);
    void tell(const study::Exploited& exploited);
    void tell(const study::ExploitUndone& undone);
    void tell(const study::TrialStarted& start);
    void tell(const study::Reported& report);
    void tell(const study::AttemptEnded& ended);

    study::TrialId trial_;
    std::string metric_name_;
    std::vector<std::string> metrics_;         ///< names by MetricId
    std::vector<study::RankInfo> workers_;     ///< of the newest incarnation
    space::Configuration configuration_;       ///< now
    std::vector<space::Configuration> before_; ///< of the generations before
    std::vector<std::string> lines_;
};

/// Reads the journal of the study in `directory`. Throws base::FormatError for a damaged one.
[[nodiscard]] std::vector<std::string> life_of(storage::FileSystem& files, const std::string& directory,
                                               study::TrialId trial, const std::string& metric);

} // namespace ranktune::report
