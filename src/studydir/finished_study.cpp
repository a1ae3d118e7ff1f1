// SPDX-License-Identifier: Apache-2.0
#include "studydir/finished_study.hpp"

#include <optional>

#include "process/environment.hpp"
#include "ranktune/base/error.hpp"
#include "storage/journal/segment.hpp"
#include "studydir/enter.hpp"
#include "studydir/log_file.hpp"
#include "studydir/results.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::studydir {
namespace {

using study::StudyOutcome;

/// Whether metrics.h5 may be incomplete: it is missing, or the last `outcome` disagrees with the journal or reports
/// missing tables. (A head writes the tables before `outcome`.)
bool tables_are_due(storage::FileSystem& files, const StudyDirectory& directory, const OpenedStudy& opened) {
    const auto& outcome = opened.outcome;
    return !files.exists(directory.metrics_file()) || !outcome || outcome->start != opened.journal.incarnation ||
           outcome->outcome != opened.tuner->state().outcome || !outcome->tables.empty();
}

std::string make_tables(storage::FileSystem& files, const std::string& directory, const OpenedStudy& opened) {
    try {
        write_results(files, directory, opened.tuner->spec(), wall_time_now());
        return {};
    } catch (const std::exception& error) {
        return trouble_with_tables(error);
    }
}

void say_how_it_ended(storage::FileSystem& files, const StudyDirectory& directory, const OpenedStudy& opened,
                      const std::string& launch, const std::string& tables) {
    const auto& state = opened.tuner->state();
    OutcomeFile outcome = opened.outcome.value_or(OutcomeFile{});
    if (outcome.start != opened.journal.incarnation) outcome = {};
    const bool stopped = !tables.empty() && code_without_tables(state.outcome) != state.outcome;
    outcome.outcome = stopped ? code_without_tables(state.outcome) : state.outcome;
    outcome.reason = stopped ? tables : end_words(state.end_reason, state.end_message);
    outcome.cause = end_cause(outcome.outcome, stopped ? study::Reason::unsaved : state.end_reason);
    outcome.by = outcome.cause == EndCause::asked ? state.drain_by : study::Asker::none;
    outcome.progress = true; // the study is over
    outcome.reports = state.reports;
    outcome.start = opened.journal.incarnation;
    outcome.time = wall_time_now();
    outcome.launch = launch;
    outcome.records = opened.journal.records;
    outcome.tables = tables;
    publish_text(files, directory.outcome_file(), outcome_text(outcome), true);
}

} // namespace

std::string trouble_with_tables(const std::exception& error) {
    const auto* disk = dynamic_cast<const base::IoError*>(&error);
    return std::string("metrics.h5 lacks results: ") + error.what() + ". The journal has all of them. " +
           (disk == nullptr ? "Give" : what_to_mend(*disk) + ", and give") +
           " the same command again: it makes metrics.h5 from the journal";
}

StudyOutcome code_without_tables(StudyOutcome outcome) {
    return outcome == StudyOutcome::ok ? StudyOutcome::resumable : outcome;
}

std::string end_words(study::Reason reason, const std::string& message) {
    return message.empty() ? study::describe(reason, 0, 0) : message;
}

bool needs_tending(storage::FileSystem& files, const std::string& directory, const OpenedStudy& opened) {
    const StudyDirectory study{directory};
    return files.exists(storage::lease_path(directory)) || files.exists(study.outcome_reserve()) ||
           files.exists(study.attempts()) || tables_are_due(files, study, opened) ||
           !orphans_of(files, directory, opened.tuner->state()).empty();
}

std::string tend(storage::FileSystem& files, const std::string& directory, const OpenedStudy& opened,
                 const std::string& launch) {
    const StudyDirectory study{directory};
    const bool due = tables_are_due(files, study, opened);
    std::string trouble;
    try {
        // Sync first: otherwise, after a power loss, the journal might name again what was removed here.
        storage::sync_segments(files, directory);
        remove_orphans(files, directory, opened.tuner->state());
        files.remove_if_empty(study.attempts());
        if (due) trouble = make_tables(files, directory, opened);
        if (due) say_how_it_ended(files, study, opened, launch, trouble);
        files.remove(study.outcome_reserve());
    } catch (const base::IoError&) { // leftovers cost space, nothing else
    }
    return trouble;
}

std::string tend_if_free(storage::FileSystem& files, const std::string& directory, const OpenedStudy& opened,
                         const storage::LeaseWait& wait) {
    if (!needs_tending(files, directory, opened)) return {};
    std::optional<storage::Lease> lease;
    try {
        lease.emplace(storage::Lease::take(
            files, directory, storage::this_holder(process::slurm_job(), process::slurm_restart_count()), wait));
    } catch (const base::UsageError&) { // another head lives and will do it
        return {};
    } catch (const base::IoError& error) {
        return tables_are_due(files, {directory}, opened) ? trouble_with_tables(error) : std::string();
    }
    // Another head may have continued the study before the lease was taken.
    const bool same = storage::read_journal_tail(files, directory, storage::Check::since_snapshot).summary.records ==
                      opened.journal.records;
    std::string trouble = same ? tend(files, directory, opened, {}) : std::string();
    lease->release();
    return trouble;
}

} // namespace ranktune::studydir
