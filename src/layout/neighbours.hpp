// SPDX-License-Identifier: Apache-2.0
#pragma once
// Neighbours: the other ranks of this rank's node, whose processes it can see.

#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "layout/layout.hpp"
#include "process/process_watch.hpp"
#include "process/wake.hpp"

namespace ranktune::layout {

/// The neighbours of `self`, in the order of a ring: first those that follow it.
[[nodiscard]] std::vector<base::Rank> ring_of(const Layout& layout, base::Rank self);
/// Their processes, in the same order.
[[nodiscard]] std::vector<process::ProcessId> processes_of(const Layout& layout, const std::vector<base::Rank>& ranks);

/// Every rank watches the next one of its node that lives, so that some rank sees every end. Before a loop listens,
/// ranks wait for each other in collective calls, for ever if one of them is gone: its end then ends this process, with
/// exit code 75 and a message.
class Neighbours {
  public:
    Neighbours(const Layout& layout, base::Rank self);

    /// While it exists, a loop that waits on `waker` listens, and asks `ended`.
    class Listening {
      public:
        Listening(Neighbours& neighbours, process::Waker& waker) : neighbours_(neighbours) { neighbours_.turn(&waker); }
        ~Listening() { neighbours_.turn(nullptr); }
        Listening(const Listening&) = delete;
        Listening& operator=(const Listening&) = delete;

      private:
        Neighbours& neighbours_;
    };
    /// The next one whose process has ended, once each.
    [[nodiscard]] std::optional<base::Rank> ended();
    /// Kills the process of a neighbour; false: it is none, or has ended.
    [[nodiscard]] bool end(base::Rank rank) const;

  private:
    void turn(process::Waker* waker);

    std::vector<base::Rank> ranks_;
    std::vector<process::ProcessId> processes_;
    std::mutex mutex_;
    bool starting_ = true;            ///< no loop has listened yet
    process::Waker* waker_ = nullptr; ///< of the loop that listens
    std::deque<base::Rank> ended_;
    process::ProcessWatch watch_; ///< last: calls back when all members above exist
};

} // namespace ranktune::layout
