// SPDX-License-Identifier: Apache-2.0
// stop: ends a running study through a file in its directory, for sites where signals do not arrive.

#include <iostream>

#include "cli/verbs.hpp"
#include "drivers/environment_facts.hpp"
#include "drivers/log_file.hpp"
#include "drivers/study_directory.hpp"
#include "ranktune/base/error.hpp"
#include "storage/journal.hpp"
#include "storage/lease.hpp"

namespace ranktune::cli {

int stop(const std::string& directory) {
    auto& files = storage::posix_file_system();
    const auto holder = storage::read_lease(files, directory);
    if (!holder) {
        if (!storage::has_journal(files, directory))
            throw base::UsageError("'" + directory + "' holds no study; give the directory that `ranktune run` made");
        throw base::UsageError("nothing runs in '" + directory + "'; what there is: ranktune status " + directory);
    }
    const std::string why = "asked from " + drivers::host_name() + " at " + drivers::wall_time_now() + "\n";
    drivers::publish_text(files, drivers::StudyDirectory{directory}.stop_file(), why, false);
    std::cout << "asked " << describe(*holder)
              << " to stop: running trials checkpoint at their next report; then `ranktune run " << directory
              << "` goes on\n";
    return 0;
}

} // namespace ranktune::cli
