// SPDX-License-Identifier: Apache-2.0
#pragma once
// What lies where in a study directory, and the small files that a run leaves there for people and scripts.
//
//   study.toml      the study file as it was given          resolved.toml   with every default and absolute paths
//   journal/        every decision (storage)                checkpoints/    states of trials (storage)
//   metrics.h5      tables for people, at the end           outcome         how the last start ended
//   status          what a running study is doing           stop            made by `ranktune stop`
//   python/         ranktune.py, where the trials are programs (on their PYTHONPATH)
//   lease           who runs it (storage)              attempts/       what programs need while they run
//   logs/<job or start>.log, logs/<job or start>.env.json, logs/workers-<host>.log,
//   logs/crash-<start>-<rank>: whose fault the end of a start was (group/crash_note.hpp)

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ranktune/study/vocabulary.hpp"
#include "storage/file_system.hpp"

namespace ranktune::studydir {

inline constexpr std::size_t outcome_reserve_bytes = 4096;
/// More of the file `status` is not read: whatever lies there is not of a head.
inline constexpr std::uint64_t most_status_bytes = std::uint64_t{64} * 1024;

struct StudyDirectory {
    std::string path; ///< absolute

    [[nodiscard]] std::string study_file() const { return path + "/study.toml"; }
    [[nodiscard]] std::string resolved_file() const { return path + "/resolved.toml"; }
    [[nodiscard]] std::string outcome_file() const { return path + "/outcome"; }
    /// Room for `outcome` on a disk that is full by then; there while the study runs.
    [[nodiscard]] std::string outcome_reserve() const { return path + "/outcome.reserve"; }
    [[nodiscard]] std::string status_file() const { return path + "/status"; }
    [[nodiscard]] std::string metrics_file() const { return path + "/metrics.h5"; }
    [[nodiscard]] std::string checkpoints() const { return path + "/checkpoints"; }
    /// Folders of programs that run now, one for each attempt.
    [[nodiscard]] std::string attempts() const { return path + "/attempts"; }
    [[nodiscard]] std::string python() const { return path + "/python"; }
    [[nodiscard]] std::string python_module() const { return python() + "/ranktune.py"; }
    [[nodiscard]] std::string stop_file() const { return path + "/stop"; }
    [[nodiscard]] std::string logs() const { return path + "/logs"; }
    /// `start` names a life of the head: `job-81234-start-2` under Slurm, otherwise `start-2`.
    [[nodiscard]] std::string head_log(const std::string& start) const { return logs() + "/" + start + ".log"; }
    [[nodiscard]] std::string environment_file(const std::string& start) const {
        return logs() + "/" + start + ".env.json";
    }
    [[nodiscard]] std::string worker_log(const std::string& host) const { return logs() + "/workers-" + host + ".log"; }
};

[[nodiscard]] std::string start_name(const std::string& slurm_job, std::uint32_t incarnation);

/// Why a start ended, for whoever decides about the next one.
enum class EndCause : std::uint8_t {
    over,    ///< the study is complete, or has failed for good
    asked,   ///< a signal, `ranktune stop`, or the end of the job's time
    storage, ///< the journal or a checkpoint could not be written, or a trial not be set up
    trials,  ///< trials failed one after the other, for a cause outside of them
    ranks,   ///< ranks were lost, or did not come
    error,   ///< anything else
    stalled  ///< the head was held up, and its workers left: no trial's fault
};
[[nodiscard]] std::string_view name(EndCause cause);
/// Of a start that ended with this outcome for this reason.
[[nodiscard]] EndCause end_cause(study::StudyOutcome outcome, study::Reason reason);

/// The file `outcome`: lines of `key=value`, for shell scripts. Written before a head leaves, because launchers bend
/// exit codes.
struct OutcomeFile {
    study::StudyOutcome outcome = study::StudyOutcome::ok;
    std::string reason;    ///< one line
    bool progress = false; ///< this start got on (tuner::progress_of)
    std::uint64_t reports = 0;
    std::uint32_t start = 1; ///< incarnation
    std::string time;        ///< RFC 3339
    EndCause cause = EndCause::over;
    study::Asker by = study::Asker::none; ///< whoever asked for this end
    std::string requeue = "no";           ///< whether Slurm was asked to queue the job again: "no", "yes" or "failed"
    std::string launch = {};              ///< value of launch_variable; empty: nobody gave one
    std::uint64_t records = 0;            ///< of the journal that were on the disk, all starts; 0: not known
    std::string tables = {};              ///< what is wrong with metrics.h5, one line; empty: it has everything
    friend bool operator==(const OutcomeFile&, const OutcomeFile&) = default;
};
[[nodiscard]] std::string outcome_text(const OutcomeFile& outcome);
/// What such a text says; nothing when it has no exit code. Unknown lines are ignored.
[[nodiscard]] std::optional<OutcomeFile> parse_outcome(const std::string& text);
/// The one in a study directory; nothing when there is none that can be read.
[[nodiscard]] std::optional<OutcomeFile> read_outcome(storage::FileSystem& files, const StudyDirectory& directory);

/// In the environment of ranks that this program has launched itself: a word that no other launch has. The file
/// `outcome` repeats it.
inline constexpr const char* launch_variable = "RANKTUNE_LAUNCH";

/// Writes the file `stop`, by which a person asks for a clean stop. Throws base::IoError.
void ask_to_stop(storage::FileSystem& files, const StudyDirectory& directory, study::Asker who);
/// Takes the request away, if there is one: who asks (whoever writes such a file counts as a person). Throws
/// base::IoError.
[[nodiscard]] std::optional<study::Asker> take_stop_request(storage::FileSystem& files, const std::string& stop_file);

/// Creates the folders and writes study.toml (unless `study` is empty). One of a `is_new` study's directory that says
/// something else is not ours: it is kept as study.toml~N. Throws base::IoError.
void create_study_directory(storage::FileSystem& files, const StudyDirectory& directory, const std::string& study,
                            bool is_new);
/// Digits alone, as the folders of trials are called.
[[nodiscard]] bool is_number(std::string_view text);
/// The first thing that is neither from this program nor to be expected in a directory that it was given (hidden files,
/// `submit` and `logs`), where there is no journal yet; by its name in the directory. Empty: there is none.
[[nodiscard]] std::string foreign_entry(storage::FileSystem& files, const StudyDirectory& directory);
/// The first file that is there only because there was a journal before it, by its name in the directory; empty: none.
[[nodiscard]] std::string trace_of_a_journal(storage::FileSystem& files, const StudyDirectory& directory);

/// Writes the module that programs in Python import: that of this program, whatever an earlier start left.
void publish_python_module(storage::FileSystem& files, const StudyDirectory& directory);

/// Writes `text` whole under its final name: temporary name and rename; synced when asked.
void publish_text(storage::FileSystem& files, const std::string& path, const std::string& text, bool sync);

} // namespace ranktune::studydir
