// SPDX-License-Identifier: Apache-2.0
#pragma once
// Keeper: the head's thread that renews the lease and looks for the file `stop`. A file system that hangs keeps it
// waiting, never the head's loop.

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "drivers/service.hpp"
#include "drivers/wake.hpp"
#include "ranktune/base/log.hpp"
#include "storage/lease.hpp"

namespace ranktune::drivers {

class Keeper {
  public:
    /// References outlive it. `stop_file` is looked for once a second, and removed when it is found.
    Keeper(storage::FileSystem& files, storage::Lease& lease, std::string stop_file, Waker& waker, base::LogSink& log);
    ~Keeper();
    Keeper(const Keeper&) = delete;
    Keeper& operator=(const Keeper&) = delete;

    /// What the head's loop is asked for since the last call. Never blocks on a disk.
    [[nodiscard]] std::optional<EndAsked> asked();

  private:
    void main();
    void look_for_stop();
    void renew();
    void ask(EndAsked what);

    storage::FileSystem& files_;
    storage::Lease& lease_;
    std::string stop_file_;
    Waker& waker_;
    base::LogSink& log_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::optional<EndAsked> asked_;
    bool taken_ = false; ///< by another head: nothing is renewed any more
    bool quit_ = false;
    std::thread thread_; // last: starts when everything above is there
};

} // namespace ranktune::drivers
