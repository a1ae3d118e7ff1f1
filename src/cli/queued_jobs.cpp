// SPDX-License-Identifier: Apache-2.0
#include "cli/queued_jobs.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "cli/study_summary.hpp"
#include "launch/job_chain.hpp"
#include "ranktune/base/text.hpp"
#include "storage/journal/journal.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::cli {
namespace {

constexpr auto pause = std::chrono::seconds(20);

std::vector<std::string> jobs_of(storage::FileSystem& files, const std::string& directory) {
    auto jobs = launch::noted_jobs(directory);
    const auto outcome = studydir::read_outcome(files, {directory});
    if (!outcome || outcome->requeue != studydir::Requeue::yes) return jobs;
    const auto study = readable_state(files, directory);
    if (study && !study->journal.job.empty() && std::ranges::find(jobs, study->journal.job) == jobs.end())
        jobs.push_back(study->journal.job);
    return jobs;
}

} // namespace

QueuedForStudy queued_for_study(storage::FileSystem& files, const std::string& directory) {
    const auto jobs = jobs_of(files, directory);
    if (jobs.empty()) return {};
    const launch::QueuedJobs queue = launch::queued_jobs(jobs);
    const auto prevention = [](const std::vector<std::string>& ids) {
        return fmt::format("To keep {} from that: scancel {}", ids.size() == 1 ? "it" : "them", base::join(ids, " "));
    };
    const auto counted = [](const std::vector<std::string>& items) {
        return (items.size() == 1 ? "job " : "jobs ") + base::join(items);
    };
    if (!queue.trouble.empty())
        return {fmt::format("{} may start it yet: squeue does not say whether {} still in the queue ({})",
                            counted(jobs), jobs.size() == 1 ? "it is" : "they are", queue.trouble),
                prevention(jobs)};
    std::vector<std::string> ids;
    std::vector<std::string> items;
    for (std::size_t i = 0; i < queue.ids.size(); ++i) {
        if (queue.states[i] == "completing") continue; // it has ended, and Slurm cleans up
        ids.push_back(queue.ids[i]);
        items.push_back(fmt::format("{} ({})", queue.ids[i], queue.states[i]));
    }
    if (ids.empty()) return {};
    const bool one = items.size() == 1;
    const bool begun = storage::has_journal(files, directory);
    return {fmt::format("{} {} in Slurm's queue and {} the study", counted(items), one ? "is" : "are",
                        begun ? (one ? "goes on with" : "go on with") : (one ? "begins" : "begin")),
            prevention(ids)};
}

bool submitted_since(const std::string& directory) {
    const studydir::StudyDirectory place{directory};
    std::error_code error;
    const auto jobs = std::filesystem::last_write_time(place.job_list(), error);
    if (error) return false;
    const auto end = std::filesystem::last_write_time(place.outcome_file(), error);
    return error || jobs > end; // a start removes what the one before has written
}

const std::string& QueueWatch::text() {
    const auto now = std::chrono::steady_clock::now();
    if (!asked_ || now - *asked_ >= pause) {
        text_ = queued_for_study(files_, directory_).text;
        asked_ = std::chrono::steady_clock::now();
    }
    return text_;
}

} // namespace ranktune::cli
