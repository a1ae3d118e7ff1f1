// SPDX-License-Identifier: Apache-2.0
#pragma once
// Keeper: the head's thread that renews the lease, looks for the file `stop`, and checks that the journal is still in
// its place. A hanging file system blocks this thread, never the head's loop.

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include "head/background/lasting_errors.hpp"
#include "head/serve_head.hpp"
#include "process/background.hpp"
#include "process/signal_note.hpp"
#include "process/wake.hpp"
#include "ranktune/base/log.hpp"
#include "storage/journal/journal.hpp"
#include "storage/journal/lease.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::head {

class Keeper {
  public:
    /// References must outlive it. Checks for `stop` and the journal once a second; removes `stop` when found.
    Keeper(storage::FileSystem& files, storage::Lease& lease, const storage::Journal& journal,
           studydir::StudyDirectory directory, process::Waker& waker, base::LogSink& log);

    /// The request to the head's loop since the last call, if any. Never waits for a disk.
    [[nodiscard]] std::optional<EndAsked> asked();

  private:
    void look();
    void look_for_stop();
    void look_for_journal();
    void renew();
    void end_at_once(const std::string& event, std::string why, study::Reason reason);
    void ask(EndAsked what);

    storage::FileSystem& files_;
    storage::Lease& lease_;
    const storage::Journal& journal_;
    studydir::StudyDirectory directory_;
    process::Waker& waker_;
    base::LogSink& log_;
    LastingErrors errors_;
    std::mutex mutex_;
    std::optional<EndAsked> asked_;
    bool over_ = false; ///< another head has the study, or the journal is gone: stop checking
    int misses_ = 0;    ///< checks in a row that did not find the journal
    process::Background::Clock::time_point next_renewal_;
    process::Background thread_;
};

/// What has happened to the journal's file or the study directory, and what to do; empty: nothing. May block; throws
/// base::IoError when the file system cannot tell.
[[nodiscard]] std::string trouble_with_place(const storage::FileSystem& files, const storage::Journal& journal,
                                             const std::string& study_directory);

/// Finds the signal that a launcher noted for this process but could not deliver while the process was starting.
class NotedStop {
  public:
    explicit NotedStop(const process::SignalMeanings& meanings) : meanings_(meanings) {}

    /// Checks from time to time; returns the signal once.
    std::optional<EndAsked> asked() {
        const auto now = std::chrono::steady_clock::now();
        if (known_ || now < next_) return std::nullopt;
        next_ = now + std::chrono::milliseconds(500);
        const study::Asker noted = meanings_.noted();
        if (noted == study::Asker::none) return std::nullopt;
        known_ = true;
        return EndAsked{.by = noted, .as = process::SignalMeanings::passed_on_as(noted)};
    }
    /// The stop is known from elsewhere: stop checking.
    void known() { known_ = true; }

  private:
    const process::SignalMeanings& meanings_;
    std::chrono::steady_clock::time_point next_;
    bool known_ = false;
};

} // namespace ranktune::head
