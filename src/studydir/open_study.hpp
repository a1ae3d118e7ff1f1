// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a start finds in its study directory, and what it makes of it: a new study, one that goes on, or nothing to do.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ranktune/study/change.hpp"
#include "storage/journal/journal.hpp"
#include "studydir/study_directory.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::studydir {

/// How an existing study is to be met.
struct OpenRequest {
    bool fresh = false; ///< move it aside and begin again
    enum class Errored : std::uint8_t {
        leave,
        resume, ///< failed trials wait again, from their last checkpoint where they have one
        restart ///< the same from scratch
    } errored = Errored::leave;
};

/// A trial that was running when the earlier start ended.
struct Interrupted {
    study::TrialId trial;
    study::Iteration from = 0; ///< it goes on from here (0: from scratch)
    study::Iteration lost = 0; ///< iterations that are trained again
};

/// A study as it was found, and the core that goes on with it.
struct OpenedStudy {
    bool is_new = true;
    bool finished = false; ///< there is nothing to do; the tuner holds the end
    std::string uuid;
    std::string resolved; ///< the study file that counts now
    base::Incarnation incarnation{1};
    std::unique_ptr<tuner::Tuner> tuner; ///< replayed; changes and second chances are not applied yet

    // Of a study that is not new:
    storage::JournalSummary journal;
    bool from_snapshot = false;
    std::vector<study::KeyChange> changes; ///< all of them may change
    std::vector<study::TrialId> reopened;  ///< failed trials that wait again
    std::vector<Interrupted> interrupted;
    std::uint32_t workers_before = 0;
    std::optional<OutcomeFile> outcome;         ///< the file, of the start before or of an earlier one
    study::Asker ended_by = study::Asker::none; ///< the same start; who asked for that
    std::string ended; ///< how the start before ended, and when: "was stopped by SIGTERM at 14:02:11Z"
};

/// Reads what is there and changes nothing. `spec` is the study file of this start. Throws base::UsageError when the
/// study cannot go on with it (with the difference), or when its journal is gone, and base::FormatError for a damaged
/// journal, one that ends before the place that `outcome` or `status` knows of, or one of a newer format.
[[nodiscard]] OpenedStudy open_study(storage::FileSystem& files, const std::string& directory,
                                     const study::StudySpec& spec, const OpenRequest& request);

/// Applies changes and second chances to the opened study's core, and takes a snapshot. The records belong at the
/// beginning of the new life, before anything else.
[[nodiscard]] std::vector<study::Record> take_up(OpenedStudy& opened, const OpenRequest& request,
                                                 const std::string& version);

/// The state of a core as a record.
[[nodiscard]] study::Record snapshot_of(const tuner::Tuner& tuner);

/// Paths of the checkpoints that no record of the journal names.
[[nodiscard]] std::vector<std::string> orphans_of(storage::FileSystem& files, const std::string& directory,
                                                  const tuner::State& state);

/// Removes checkpoints that no record of the journal names, of attempts that were killed before their commit, and the
/// folders in which programs ran then. Returns how many checkpoints. What cannot be removed stays.
std::uint64_t remove_orphans(storage::FileSystem& files, const std::string& directory, const tuner::State& state);

/// Whether a study lies there, or what is left of one.
[[nodiscard]] bool holds_study(storage::FileSystem& files, const std::string& directory);

/// Renames the directory to `<name>~N`, N being the first number that is free. Returns the new name.
std::string move_aside(storage::FileSystem& files, const std::string& directory);

/// The resolved study file that counts in a directory: for `run DIR`. Throws base::UsageError when there is none.
[[nodiscard]] std::string resolved_file_of(storage::FileSystem& files, const std::string& directory);

} // namespace ranktune::studydir
