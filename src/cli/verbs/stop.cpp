// SPDX-License-Identifier: Apache-2.0
// stop: ends a running study through a file in its directory, for sites where signals do not arrive.

#include <algorithm>
#include <chrono>
#include <iostream>
#include <optional>

#include <fmt/format.h>

#include "cli/verbs/verbs.hpp"
#include "launch/job_chain.hpp"
#include "process/environment.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/study/command_template.hpp"
#include "report/explain/endings.hpp"
#include "report/screens/text.hpp"
#include "report/view/load.hpp"
#include "storage/journal/lease.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::cli {
namespace {

/// The state as of the newest record; nothing when the journal cannot be read.
std::optional<report::LoadedStudy> state_of(storage::FileSystem& files, const std::string& directory) {
    try {
        return report::load_state(files, directory);
    } catch (const std::exception&) { // stopping works without it
        return std::nullopt;
    }
}

/// Jobs that may start the study by themselves: those that `submit` has recorded, and a requeued one.
std::vector<std::string> jobs_of(storage::FileSystem& files, const std::string& directory) {
    auto jobs = launch::noted_jobs(directory);
    const auto outcome = studydir::read_outcome(files, {directory});
    if (!outcome || outcome->requeue != "yes") return jobs;
    const auto study = state_of(files, directory);
    if (study && !study->journal.job.empty() && std::ranges::find(jobs, study->journal.job) == jobs.end())
        jobs.push_back(study->journal.job);
    return jobs;
}

/// About queued jobs of a study that does not run: ", but job 101 (pending) ...", or empty.
std::string jobs_text(storage::FileSystem& files, const std::string& directory) {
    const auto jobs = jobs_of(files, directory);
    if (jobs.empty()) return {};
    const launch::QueuedJobs queue = launch::queued_jobs(jobs);
    const auto keeps = [](const std::vector<std::string>& ids) {
        return fmt::format(" To keep {} from that: scancel {}", ids.size() == 1 ? "it" : "them", base::join(ids, " "));
    };
    const auto counted = [](const std::vector<std::string>& items) {
        return (items.size() == 1 ? "job " : "jobs ") + base::join(items);
    };
    if (!queue.trouble.empty())
        return fmt::format(", but {} may start it yet: squeue does not say whether {} still in the queue ({}).{}",
                           counted(jobs), jobs.size() == 1 ? "it is" : "they are", queue.trouble, keeps(jobs));
    if (queue.ids.empty()) return {};
    std::vector<std::string> items;
    for (std::size_t i = 0; i < queue.ids.size(); ++i)
        items.push_back(fmt::format("{} ({})", queue.ids[i], queue.states[i]));
    return fmt::format(", but {} {} in Slurm's queue and go{} on with the study.{}", counted(items),
                       items.size() == 1 ? "is" : "are", items.size() == 1 ? "es" : "", keeps(queue.ids));
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
    const auto now = std::chrono::system_clock::now();
    std::string text = describe(holder) + " is " + report::stopping_text(study.tuner->state(), now) + "\nat once  " +
                       at_once_text(holder) +
                       "  # what was reported stays, and the study resumable; work since the last checkpoints is done "
                       "again\n";
    const tuner::State& state = study.tuner->state();
    if (!holder.job.empty() && would_be_started_again(state) && state.drain_by != study::Asker::verb)
        text += "after    job " + holder.job + " is not queued again, nor followed by the next one of a chain\n";
    return text;
}

} // namespace

int stop(const std::string& directory) {
    auto& files = storage::posix_file_system();
    const auto holder = storage::read_lease(files, directory);
    if (!holder) nobody_runs(files, directory);
    launch::note_stop(directory); // before the job can read it
    studydir::ask_to_stop(files, {directory}, study::Asker::verb);
    const auto me = storage::this_holder(process::slurm_job(), process::slurm_restart_count());
    if (storage::judge(*holder, me, storage::process_start) == storage::LeaseState::stale)
        head_is_dead(files, directory, *holder);
    if (const auto study = state_of(files, directory);
        study && study->tuner->state().draining && !study->tuner->state().ended) {
        std::cout << report::escaped(stopping_already(*study, *holder));
        return 0;
    }
    std::cout << "asked " << report::escaped(describe(*holder))
              << " to stop: running trials checkpoint at their next report; then `ranktune run "
              << report::escaped(directory) << "` goes on\n";
    return 0;
}

} // namespace ranktune::cli
