// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a start finds in its study directory and makes of it: a new study, one to continue, or nothing to do.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ranktune/study/change.hpp"
#include "storage/journal/journal.hpp"
#include "studydir/study_directory.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::studydir {

/// What to do with an existing study.
struct OpenRequest {
    bool fresh = false; ///< move it aside and begin again
    enum class Errored : std::uint8_t {
        leave,
        resume, ///< failed trials continue, from their last checkpoint if they have one; failed tasks after trials run
        restart ///< failed trials start from scratch, and those of `lost`; as do failed tasks after trials
    } errored = Errored::leave;
    /// Finished trials of which what they wrote elsewhere is lost; empty function: none.
    std::function<std::vector<study::TrialId>(const tuner::Tuner&)> lost = {};

    /// What is left to do once the old study is aside.
    [[nodiscard]] OpenRequest after_fresh() const { return {false, errored, lost}; }
};

/// A trial that was running when the previous start ended.
struct Interrupted {
    study::TrialId trial;
    study::Iteration from = 0; ///< iteration from which it continues (0: from scratch)
    study::Iteration lost = 0; ///< iterations that must be trained again
};

/// A study as it was found, and the tuner that continues it.
struct OpenedStudy {
    bool is_new = true;
    bool finished = false; ///< there is nothing to do; the tuner's state says how it ended
    std::string uuid;
    study::StudySpec spec; ///< in force
    std::string resolved;  ///< its study file
    base::Incarnation incarnation{1};
    std::unique_ptr<tuner::Tuner> tuner; ///< replayed; changed keys and reopened trials are not applied yet

    // Only for a study that is not new:
    storage::JournalSummary journal;
    bool from_snapshot = false;
    std::vector<study::KeyChange> changes; ///< only keys that may change
    std::vector<study::TrialId> reopened;  ///< failed and lost trials, and failed tasks after trials, that wait again
    std::vector<Interrupted> interrupted;
    std::uint32_t workers_before = 0;
    std::optional<OutcomeFile> outcome;         ///< the file `outcome`, of the previous or an earlier start
    study::Asker ended_by = study::Asker::none; ///< who asked for the end of the previous start
    std::string ended; ///< how and when the previous start ended: "was stopped by SIGTERM at 14:02:11Z"
};

/// Reads what is there and changes nothing. `spec` is the study file of this start. Throws base::UsageError when the
/// study cannot continue with it (naming the differences) or its journal is gone, and base::FormatError when the
/// journal is damaged, shorter than `outcome` or `status` says (JournalBehind), or of a newer format.
[[nodiscard]] OpenedStudy open_study(storage::FileSystem& files, const std::string& directory,
                                     const study::StudySpec& spec, const OpenRequest& request);

/// Applies changed keys and reopened trials to the tuner and takes a snapshot. The records must be the first ones of
/// the new segment.
[[nodiscard]] std::vector<study::Record> take_up(OpenedStudy& opened, const OpenRequest& request,
                                                 const std::string& version);

/// The state of a tuner as a record.
[[nodiscard]] study::Record snapshot_of(const tuner::Tuner& tuner);

/// Paths of the checkpoints that no trial has or will take over.
[[nodiscard]] std::vector<std::string> orphans_of(storage::FileSystem& files, const std::string& directory,
                                                  const tuner::State& state);

/// Removes orphans_of, mostly of attempts that were killed before their commit, and the folders of killed programs.
/// Returns the number of checkpoints. What cannot be removed stays.
std::uint64_t remove_orphans(storage::FileSystem& files, const std::string& directory, const tuner::State& state);

/// Whether the directory holds a study, or the remains of one.
[[nodiscard]] bool holds_study(storage::FileSystem& files, const std::string& directory);

/// Renames the directory to `<name>~N` with the first free N. Returns the new name.
std::string move_aside(storage::FileSystem& files, const std::string& directory);

/// The resolved study file in force in a directory: for `run DIR`. Throws base::UsageError when there is none.
[[nodiscard]] std::string resolved_file_of(storage::FileSystem& files, const std::string& directory);

} // namespace ranktune::studydir
