// SPDX-License-Identifier: Apache-2.0
#include "drivers/head/enter.hpp"

#include <chrono>
#include <thread>

#include "drivers/environment_facts.hpp"
#include "drivers/journal_extent.hpp"
#include "drivers/study_directory.hpp"

namespace ranktune::drivers {
namespace {

HeldLease take_lease(storage::FileSystem& files, const RunOptions& options) {
    const auto me = storage::this_holder(slurm_job(), slurm_restart_count());
    return HeldLease(
        new storage::Lease(storage::Lease::take(files, options.directory, me, storage::real_wait(options.on_note))));
}

/// What a head on another machine wrote before it died may be there, and not be seen yet: the lists of folders that NFS
/// keeps are up to a minute old.
OpenedStudy open_when_visible(storage::FileSystem& files, const RunOptions& options) {
    for (int looks_left = 35;; --looks_left) {
        try {
            return open_study(files, options.directory, options.spec, {false, options.open.errored});
        } catch (const JournalBehind& behind) {
            if (behind.writer() == host_name() || looks_left == 0) throw;
            std::this_thread::sleep_for(std::chrono::seconds(2));
        }
    }
}

} // namespace

Entered enter(storage::FileSystem& files, const RunOptions& options) {
    Entered entered;
    files.make_directories(options.directory);
    entered.lease = take_lease(files, options);
    // Meant for an earlier start. What is older than `supervise` it has removed itself; the rest is for this start,
    // too.
    if (!options.supervised) files.remove(StudyDirectory{options.directory}.stop_file());
    // A job that Slurm starts again would throw away what it has just done.
    const bool fresh = options.open.fresh && slurm_restart_count() == 0;
    if (fresh && holds_study(files, options.directory)) {
        entered.lease.reset();
        // What a link leads to is moved, and not the link: its owner wants the study there.
        const std::string real = files.resolve(options.directory);
        entered.moved_to = move_aside(files, real);
        files.make_directories(real);
        entered.lease = take_lease(files, options);
    }
    entered.opened = open_when_visible(files, options);
    return entered;
}

} // namespace ranktune::drivers
