// SPDX-License-Identifier: Apache-2.0
#pragma once
// Neighbours: the other ranks of this rank's node, whose processes it can see.

#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "comm/layout/layout.hpp"
#include "process/process_watch.hpp"
#include "process/wake.hpp"

namespace ranktune::comm {

/// The neighbours of `self`, in the order of a ring: first those that follow it.
[[nodiscard]] std::vector<base::Rank> ring_of(const Layout& layout, base::Rank self);
/// Their processes, in the same order.
[[nodiscard]] std::vector<process::ProcessId> processes_of(const Layout& layout, const std::vector<base::Rank>& ranks);
/// By rank, for comm::Bell: the numbers of the processes of ring_of; 0: none of them.
[[nodiscard]] std::vector<std::uint64_t> processes_near(const Layout& layout, base::Rank self);

/// Every rank watches the next one of its node that lives, so that some rank sees every end. Before a loop listens,
/// ranks wait for each other in collective calls, for ever if one of them is gone: its end then ends this process, with
/// exit code 75 and a message.
class Neighbours {
  public:
    Neighbours(const Layout& layout, base::Rank self);

    /// A loop that waits on `waker` (null: none any more) listens from now on.
    void turn_to(process::Waker* waker);
    /// The next one whose process has ended, once each.
    [[nodiscard]] std::optional<base::Rank> ended();
    /// To the process of a neighbour; false: it is none, or has ended.
    bool signal(base::Rank rank, int signal) const;
    /// process::kill_silent; nobody: it is no neighbour either.
    [[nodiscard]] process::Killing kill_silent(base::Rank rank, bool at_once) const;

  private:
    [[nodiscard]] const process::ProcessId* process_of(base::Rank rank) const;

    std::vector<base::Rank> ranks_;
    std::vector<process::ProcessId> processes_;
    std::mutex mutex_;
    bool starting_ = true;            ///< no loop has listened yet
    process::Waker* waker_ = nullptr; ///< of the loop that listens
    std::deque<base::Rank> ended_;
    process::ProcessWatch watch_; ///< last: calls back when all members above exist
};

/// The loop that listens, while it exists. `neighbours` may be null: then it hears of nobody.
class Listening {
  public:
    Listening(Neighbours* neighbours, process::Waker& waker) : neighbours_(neighbours) {
        if (neighbours_ != nullptr) neighbours_->turn_to(&waker);
    }
    ~Listening() {
        if (neighbours_ != nullptr) neighbours_->turn_to(nullptr);
    }
    Listening(const Listening&) = delete;
    Listening& operator=(const Listening&) = delete;
    [[nodiscard]] std::optional<base::Rank> ended() {
        return neighbours_ == nullptr ? std::nullopt : neighbours_->ended();
    }
    bool signal(base::Rank rank, int signal) const {
        return neighbours_ != nullptr && neighbours_->signal(rank, signal);
    }
    [[nodiscard]] process::Killing kill_silent(base::Rank rank, bool at_once) const {
        return neighbours_ == nullptr ? process::Killing::nobody : neighbours_->kill_silent(rank, at_once);
    }

  private:
    Neighbours* neighbours_;
};

} // namespace ranktune::comm
