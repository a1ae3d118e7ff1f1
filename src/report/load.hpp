// SPDX-License-Identifier: Apache-2.0
#pragma once
// A study read back from its directory, without MPI: what status, best and export look at.

#include <memory>
#include <string>
#include <vector>

#include "storage/journal.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::report {

struct LoadedStudy {
    std::unique_ptr<tuner::Tuner> tuner;
    storage::JournalSummary journal;
    std::vector<study::Reported> reports;              ///< filled when asked for
    std::vector<study::TrialStarted> starts;           ///< every attempt
    std::vector<std::size_t> started_in;               ///< of each of `starts`: the index into `workers` and `began`
    std::vector<std::vector<study::RankInfo>> workers; ///< by incarnation, from 1
    std::vector<std::string> began;                    ///< wall time of each incarnation
};

/// Throws base::UsageError when no study lies there.
void require_study(storage::FileSystem& files, const std::string& directory);

/// Reads the journal from record 0 through a fresh core. Safe while a head writes. Throws base::UsageError when there
/// is no study, and base::FormatError for a damaged one.
[[nodiscard]] LoadedStudy load_study(storage::FileSystem& files, const std::string& directory, bool with_reports);

/// The state alone, from the newest snapshot on: for views that need no history. `reports`, `starts`, `workers` and
/// `began` stay empty. Throws as load_study.
[[nodiscard]] LoadedStudy load_state(storage::FileSystem& files, const std::string& directory);

/// The trial of this number, given in digits, or the best one, for "best". Throws base::UsageError naming those that
/// there are.
[[nodiscard]] base::TrialId trial_named(const tuner::State& state, const std::string& word,
                                        const std::string& directory);

} // namespace ranktune::report
