// SPDX-License-Identifier: Apache-2.0
#include "studydir/enter.hpp"

#include <cerrno>
#include <chrono>
#include <thread>

#include "process/environment.hpp"
#include "storage/file_system.hpp"
#include "studydir/journal_extent.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::studydir {

namespace {

HeldLease take_lease(storage::FileSystem& files, const EnterRequest& request) {
    const auto me = storage::this_holder(process::slurm_job(), process::slurm_restart_count());
    return HeldLease(
        new storage::Lease(storage::Lease::take(files, request.directory, me, storage::real_wait(request.on_note))));
}

/// Retries, because what a head on another machine wrote before it died may not be visible yet: NFS clients cache
/// directory listings for up to a minute.
OpenedStudy open_when_visible(storage::FileSystem& files, const EnterRequest& request) {
    for (int looks_left = 35;; --looks_left) {
        try {
            return open_study(files, request.directory, request.spec, request.open.after_fresh());
        } catch (const JournalBehind& behind) {
            if (behind.writer() == process::host_name() || looks_left == 0) throw;
            std::this_thread::sleep_for(std::chrono::seconds(2));
        }
    }
}

} // namespace

Entered enter(storage::FileSystem& files, const EnterRequest& request) {
    Entered entered;
    files.make_directories(request.directory);
    entered.lease = take_lease(files, request);
    // Discard stop requests from earlier runs. Under `supervise`, keep them: it has already removed the older ones.
    if (!request.supervised) files.remove(StudyDirectory{request.directory}.stop_file());
    // A requeued job must not throw away the results of its earlier runs.
    const bool fresh = request.open.fresh && process::slurm_restart_count() == 0;
    if (fresh && holds_study(files, request.directory)) {
        entered.lease.reset();
        // Move the target of a symbolic link, not the link: the user wants the study at that place.
        const std::string real = files.resolve(request.directory);
        entered.moved_to = move_aside(files, real);
        files.make_directories(real);
        entered.lease = take_lease(files, request);
    }
    entered.opened = open_when_visible(files, request);
    return entered;
}

std::string what_to_mend(const base::IoError& error) {
    switch (error.code().value()) {
        case ENOSPC:
        case EDQUOT:
            return "Make room";
        case EFBIG:
            return "Raise the limit of file sizes (ulimit -f)";
        case EACCES:
        case EPERM:
            return "This user lacks the permission: have the permissions mended, or take another directory with -o";
        case EROFS:
            return "Have the file system made writable, or take another directory with -o";
        default:
            return "Have the file system mended";
    }
}

EarlyTrouble early_trouble(const base::IoError& error) {
    if (!storage::may_pass(error)) return {study::StudyOutcome::runtime_error, error.what()};
    return {study::StudyOutcome::resumable, std::string(error.what()) + "; the study has lost nothing. " +
                                                what_to_mend(error) + ", and give the same command again"};
}

} // namespace ranktune::studydir
