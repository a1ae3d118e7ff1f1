// SPDX-License-Identifier: Apache-2.0
// stop: ends a running study through a file in its directory, for sites where signals do not arrive.

#include <filesystem>
#include <iostream>

#include "cli/verbs.hpp"
#include "drivers/environment_facts.hpp"
#include "drivers/study_directory.hpp"
#include "ranktune/base/error.hpp"
#include "storage/journal.hpp"
#include "storage/lease.hpp"

namespace ranktune::cli {

int stop(const std::string& directory) {
    auto& files = storage::posix_file_system();
    if (std::error_code error; std::filesystem::exists(directory, error) && !std::filesystem::is_directory(directory))
        throw base::UsageError("'" + directory + "' is a file; give the directory that `ranktune run` made");
    const auto holder = storage::read_lease(files, directory);
    if (!holder) {
        if (!storage::has_journal(files, directory))
            throw base::UsageError("'" + directory + "' holds no study; give the directory that `ranktune run` made");
        throw base::UsageError("nothing runs in '" + directory + "'; what there is: ranktune status " + directory);
    }
    drivers::ask_to_stop(files, {directory}, drivers::asked_by_verb);
    const auto me = storage::this_holder(drivers::slurm_job(), drivers::slurm_restart_count());
    if (storage::judge(*holder, me, storage::process_start) == storage::LeaseState::stale)
        throw base::UsageError("nothing runs in '" + directory + "': its head (" + describe(*holder) +
                               ") is dead. If `ranktune supervise` is about to start it again, it does not do so now; "
                               "what there is: ranktune status " +
                               directory);
    std::cout << "asked " << describe(*holder)
              << " to stop: running trials checkpoint at their next report; then `ranktune run " << directory
              << "` goes on\n";
    return 0;
}

} // namespace ranktune::cli
