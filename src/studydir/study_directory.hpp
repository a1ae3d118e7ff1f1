// SPDX-License-Identifier: Apache-2.0
#pragma once
// The layout of a study directory, and the small files that a run leaves there for people and scripts.
//
//   study.toml      the study file as it was given          resolved.toml   with every default and absolute paths
//   journal/        every decision (storage)                checkpoints/    states of trials (storage)
//   metrics.h5      tables for people, at the end           outcome         how the last start ended
//   status          what a running study is doing           stop            made by `ranktune stop`
//   python/         ranktune.py, for programs           trials/         folders that programs asked for
//   lease           who runs it (storage)              attempts/       what programs need while they run
//   submit/         the job script and the jobs of `ranktune submit`
//   control/        requests of users, and the answers (studydir/control.hpp)
//   logs/<job or start>.log, logs/<job or start>.env.json, logs/workers-<host>.log,
//   logs/crash-<start>-<rank>: which trial a rank died of (studydir/crash_note.hpp)

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/base/log.hpp"
#include "ranktune/study/vocabulary.hpp"
#include "storage/file_system.hpp"

namespace ranktune::studydir {

inline constexpr std::size_t outcome_reserve_bytes = 4096;
/// Longest `status` that is read: a longer file was not written by a head.
inline constexpr std::uint64_t most_status_bytes = std::uint64_t{64} * 1024;

struct StudyDirectory {
    std::string path; ///< absolute

    [[nodiscard]] std::string study_file() const { return path + "/study.toml"; }
    [[nodiscard]] std::string resolved_file() const { return path + "/resolved.toml"; }
    [[nodiscard]] std::string outcome_file() const { return path + "/outcome"; }
    /// Reserves disk space for `outcome` in case the disk fills up; exists while the study runs.
    [[nodiscard]] std::string outcome_reserve() const { return path + "/outcome.reserve"; }
    [[nodiscard]] std::string status_file() const { return path + "/status"; }
    [[nodiscard]] std::string metrics_file() const { return path + "/metrics.h5"; }
    [[nodiscard]] std::string checkpoints() const { return path + "/checkpoints"; }
    /// Folders of running programs, one per attempt.
    [[nodiscard]] std::string attempts() const { return path + "/attempts"; }
    [[nodiscard]] std::string python() const { return path + "/python"; }
    [[nodiscard]] std::string python_module() const { return python() + "/ranktune.py"; }
    [[nodiscard]] std::string python_function() const { return python() + "/ranktune_function.py"; }
    [[nodiscard]] std::string notes_file() const { return path + "/notes"; }
    /// What trials on this host say: nodes do not append to one file, which NFS would mix up.
    [[nodiscard]] std::string notes_of_host(const std::string& host) const { return logs() + "/notes-" + host; }
    [[nodiscard]] std::string stop_file() const { return path + "/stop"; }
    [[nodiscard]] std::string control() const { return path + "/control"; }
    /// Written by `ranktune submit`: the job script, and the numbers of the submitted jobs.
    [[nodiscard]] std::string job_script() const { return path + "/submit/job.sbatch"; }
    [[nodiscard]] std::string job_list() const { return path + "/submit/jobs"; }
    [[nodiscard]] std::string logs() const { return path + "/logs"; }
    /// `start` names a start of the head: `job-81234-start-2` under Slurm, otherwise `start-2`.
    [[nodiscard]] std::string head_log(const std::string& start) const { return logs() + "/" + start + ".log"; }
    [[nodiscard]] std::string environment_file(const std::string& start) const {
        return logs() + "/" + start + ".env.json";
    }
    [[nodiscard]] std::string worker_log(const std::string& host) const { return logs() + "/workers-" + host + ".log"; }
};

[[nodiscard]] std::string start_name(const std::string& slurm_job, std::uint32_t incarnation);

/// Why a start ended: decides whether the study is started again.
enum class EndCause : std::uint8_t {
    over,    ///< the study is complete, or has failed for good
    asked,   ///< a signal, `ranktune stop`, or the end of the job's time
    storage, ///< the journal or a checkpoint could not be written, or a trial could not be set up
    trials,  ///< several trials in a row failed for an outside cause
    ranks,   ///< ranks were lost or never came
    error,   ///< anything else
    stalled  ///< the head was held up and its workers left: no trial is to blame
};
[[nodiscard]] std::string_view name(EndCause cause);
/// The cause, from the outcome and reason of a start.
[[nodiscard]] EndCause end_cause(study::StudyOutcome outcome, study::Reason reason);

/// Whether Slurm was asked to queue the job of a start again.
enum class Requeue : std::uint8_t {
    no,
    yes,   ///< Slurm may end the job at any moment
    failed ///< it refused, or gave no answer
};
[[nodiscard]] std::string_view name(Requeue requeue);

/// The file `outcome`: lines of `key=value`, for shell scripts. Written before the head exits, because launchers change
/// exit codes.
struct OutcomeFile {
    study::StudyOutcome outcome = study::StudyOutcome::ok;
    std::string reason;    ///< one line
    bool progress = false; ///< this start made progress (tuner::progress_of)
    std::uint64_t reports = 0;
    std::uint32_t start = 1; ///< incarnation
    std::string time;        ///< RFC 3339
    EndCause cause = EndCause::over;
    study::Asker by = study::Asker::none; ///< who asked for this end
    Requeue requeue = Requeue::no;
    std::string launch = {};   ///< value of launch_variable; empty: not set
    std::uint64_t records = 0; ///< synced journal records, all starts; 0: unknown
    std::string tables = {};   ///< what is wrong with metrics.h5, one line; empty: nothing
    friend bool operator==(const OutcomeFile&, const OutcomeFile&) = default;
};
[[nodiscard]] std::string outcome_text(const OutcomeFile& outcome);
/// Writes the file. On a full disk it uses the reserve: without `outcome`, this end would count as a crash. Never
/// throws; failures are logged.
void publish_outcome(storage::FileSystem& files, const StudyDirectory& directory, const OutcomeFile& outcome,
                     base::LogSink& log) noexcept;
/// Parses such a text; nothing when it has no exit code. Unknown lines are ignored.
[[nodiscard]] std::optional<OutcomeFile> parse_outcome(const std::string& text);
/// Reads the file of a study directory; nothing when it is missing or cannot be read.
[[nodiscard]] std::optional<OutcomeFile> read_outcome(storage::FileSystem& files, const StudyDirectory& directory);

/// Environment variable of ranks that this program launched itself: a word unique to the launch, which the file
/// `outcome` repeats.
inline constexpr const char* launch_variable = "RANKTUNE_LAUNCH";

/// Writes the file `stop`, which asks for a clean stop. Throws base::IoError.
void ask_to_stop(storage::FileSystem& files, const StudyDirectory& directory, study::Asker who);
/// Reads and removes the stop request, if there is one, and returns who asked (an unknown author counts as a person).
/// Throws base::IoError.
[[nodiscard]] std::optional<study::Asker> take_stop_request(storage::FileSystem& files, const std::string& stop_file);

/// Creates the folders and writes study.toml (unless `study` is empty). If `is_new`, a different study.toml is the
/// user's: it is kept as study.toml~N. Throws base::IoError.
void create_study_directory(storage::FileSystem& files, const StudyDirectory& directory, const std::string& study,
                            bool is_new);
/// The command that goes on with the study: `run` with its directory, or `submit`, if jobs were submitted for it.
/// `program`: "ranktune". Overrides may follow.
[[nodiscard]] std::vector<std::string> command_that_goes_on(storage::FileSystem& files, const StudyDirectory& directory,
                                                            const std::string& program);
/// Digits only, as in the names of trial folders.
[[nodiscard]] bool is_number(std::string_view text);
/// The first entry that ranktune did not write and that may not be in the directory of a new study (hidden files,
/// `submit` and `logs` may), as a relative path; empty: none. Only for a directory without a journal.
[[nodiscard]] std::string foreign_entry(storage::FileSystem& files, const StudyDirectory& directory);
/// The first file that proves that there was a journal, as a relative path; empty: none.
[[nodiscard]] std::string trace_of_a_journal(storage::FileSystem& files, const StudyDirectory& directory);
/// What to do about a study with such a trace and without a journal; empty: there is no trace.
[[nodiscard]] std::string without_journal(storage::FileSystem& files, const StudyDirectory& directory);

/// Writes the Python module of this version, over that of an earlier start.
void publish_python_module(storage::FileSystem& files, const StudyDirectory& directory);

/// Publishes `text` as `path`: temporary file and rename; synced on request.
void publish_text(storage::FileSystem& files, const std::string& path, const std::string& text, bool sync);

} // namespace ranktune::studydir
