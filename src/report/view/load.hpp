// SPDX-License-Identifier: Apache-2.0
#pragma once
// Loads a study from its directory, without MPI, for status, best, export and others.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ranktune/base/error.hpp"
#include "report/view/history.hpp"
#include "report/view/origins.hpp"
#include "storage/journal/journal.hpp"
#include "studydir/notes/notes.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::report {

/// Where and when an attempt started. Smaller than its record: there may be a million of them.
struct AttemptStart {
    study::TrialId trial;
    study::AttemptId attempt;
    std::uint64_t record = 0;      ///< its number
    std::uint32_t incarnation = 0; ///< index into `workers` and `began`
    std::uint32_t rank_count = 0;
    std::size_t first_rank = 0; ///< index into `ranks`
    study::StudyTime at;
    study::Iteration from = 0; ///< iteration of the checkpoint that it started from; 0: from scratch
    study::TrialId whose;      ///< trial of that checkpoint: its own, or the donor of a takeover
};

struct LoadedStudy {
    std::unique_ptr<tuner::Tuner> tuner;
    storage::JournalSummary journal;
    std::vector<AttemptStart> starts;                  ///< every attempt
    std::vector<study::Rank> ranks;                    ///< of all of them
    std::vector<std::vector<study::RankInfo>> workers; ///< by incarnation, from 1
    std::vector<std::string> began;                    ///< wall time of each incarnation
    Origins origins;
    studydir::Notes notes;

    /// Adds a record with its number to starts, ranks, workers, began and origins; the tuner is not changed.
    void add(const study::Record& record, std::uint64_t number);
};

/// Throws base::UsageError when the directory holds no study.
void require_study(storage::FileSystem& files, const std::string& directory);

/// Reads the journal from record 0 through a fresh core. Safe while a head writes. Throws base::UsageError when there
/// is no study, and base::FormatError for a damaged one. `history`: also gets every record, in the same pass; may be
/// null.
[[nodiscard]] LoadedStudy load_study(storage::FileSystem& files, const std::string& directory,
                                     History* history = nullptr);

/// What the searcher's suggestion for this trial rested on, computed anew from the records before it: the searchers
/// that prepare nothing ahead leave no record of it. Empty: such a searcher did not suggest it. Throws as load_study.
[[nodiscard]] study::SuggestionBasis basis_of(storage::FileSystem& files, const std::string& directory,
                                              study::TrialId trial);

/// Visits the reports among the first `records` records, in order. Throws as load_study.
void read_reports(storage::FileSystem& files, const std::string& directory, std::uint64_t records,
                  const std::function<void(const study::Reported&)>& visit);

/// Loads only the state, from the newest snapshot on, for views that need no history: `starts`, `ranks`, `workers`,
/// `began` and `origins` stay empty. Throws as load_study.
[[nodiscard]] LoadedStudy load_state(storage::FileSystem& files, const std::string& directory);

/// The study has no result (yet): the exit code is that of a study in which no trial succeeded.
class NoResult : public base::UsageError {
  public:
    using UsageError::UsageError;
};

/// The trial that `word` names: a number in digits, or "best". Throws base::UsageError naming the trials that exist, or
/// NoResult.
[[nodiscard]] base::TrialId trial_named(const tuner::State& state, const std::string& word,
                                        const std::string& directory);

} // namespace ranktune::report
