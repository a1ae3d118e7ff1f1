// SPDX-License-Identifier: Apache-2.0
// stop: ends a running study through a file in its directory, for sites where signals do not arrive.

#include <iostream>

#include <fmt/format.h>

#include "cli/queued_jobs.hpp"
#include "cli/study_summary.hpp"
#include "cli/verbs/verbs.hpp"
#include "launch/job_chain.hpp"
#include "process/environment.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/study/command_template.hpp"
#include "report/explain/endings.hpp"
#include "report/explain/next_steps.hpp"
#include "report/screens/text.hpp"
#include "report/view/load.hpp"
#include "report/view/wall_time.hpp"
#include "storage/journal/lease.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::cli {
namespace {

/// About queued jobs of a study that does not run: ", but job 101 (pending) ...", or empty.
std::string jobs_text(storage::FileSystem& files, const std::string& directory) {
    const QueuedForStudy queued = queued_for_study(files, directory);
    return queued.text.empty() ? std::string() : ", but " + queued.text + ". " + queued.prevention;
}

[[noreturn]] void nobody_runs(storage::FileSystem& files, const std::string& directory) {
    const std::string jobs = jobs_text(files, directory);
    if (jobs.empty()) report::require_study(files, directory);
    if (jobs.empty())
        throw base::UsageError("nothing runs in '" + directory + "'; what there is: ranktune status " +
                               study::shell_text({directory}));
    throw base::UsageError("nothing runs in '" + directory + "' now" + jobs);
}

[[noreturn]] void head_is_dead(storage::FileSystem& files, const std::string& directory,
                               const storage::LeaseHolder& holder) {
    const std::string jobs = jobs_text(files, directory);
    throw base::UsageError(
        "nothing runs in '" + directory + "': its head (" + describe(holder) +
        ") is dead. If `ranktune supervise` is about to start it again, it does not do so now" +
        (jobs.empty() ? "; what there is: ranktune status " + study::shell_text({directory}) : jobs));
}

/// The command that ends a study at once.
std::string at_once_text(const storage::LeaseHolder& holder) {
    return holder.job.empty() ? fmt::format("kill -INT {} on {}", holder.writer.pid, holder.writer.host)
                              : "scancel " + holder.job;
}

std::string stopping_already(const report::LoadedStudy& study, const storage::LeaseHolder& holder) {
    std::string text = describe(holder) + " is " + report::stopping_text(*study.tuner, report::seconds_now()) +
                       "\nat once  " + at_once_text(holder) +
                       "  # what was reported stays, and the study resumable; work since the last checkpoints is done "
                       "again\n";
    const tuner::State& state = study.tuner->state();
    if (!holder.job.empty() && would_be_started_again(state) && state.drain_by != study::Asker::verb)
        text += "after    job " + holder.job + " is not queued again, nor followed by the next one of a chain\n";
    return text;
}

} // namespace

std::string ask_to_stop(const std::string& directory) {
    auto& files = storage::posix_file_system();
    const auto holder = storage::read_lease(files, directory);
    if (!holder) nobody_runs(files, directory);
    launch::note_stop(directory); // before the job can read it
    studydir::ask_to_stop(files, {directory}, study::Asker::verb);
    const auto me = storage::this_holder(process::slurm_job(), process::slurm_restart_count());
    if (storage::judge(*holder, me, storage::process_start) == storage::LeaseState::stale)
        head_is_dead(files, directory, *holder);
    const auto study = readable_state(files, directory);
    if (study && study->tuner->state().draining && !study->tuner->state().ended)
        return report::escaped(stopping_already(*study, *holder));
    return "asked " + report::escaped(describe(*holder)) +
           " to stop: " + (study ? report::how_stops_text(study->tuner->spec()) : "it ends resumably") +
           "\nthen      " + report::escaped(report::going_on(directory)) + "  # goes on\n";
}

int stop(const std::string& directory) {
    std::cout << ask_to_stop(directory);
    return 0;
}

} // namespace ranktune::cli
