// SPDX-License-Identifier: Apache-2.0
#pragma once
// KeepAlive: a thread that gives a process's signs of life while its loop waits for a disk.

#include <atomic>
#include <chrono>
#include <mutex>
#include <vector>

#include "comm/transport/transport.hpp"
#include "process/background.hpp"
#include "ranktune/base/ids.hpp"
#include "wire/protocol.hpp"

namespace ranktune::wire {

/// A loop that is in its place speaks for itself, and this thread says nothing. When the loop has been away for an
/// interval (a file system that fails over holds up whoever writes to it for minutes), this thread sends one message
/// per interval in its place, so that peers count silence alone. A process that stands still (SIGSTOP, a node that
/// hangs) is silent, because this thread stands still as well.
///
/// No command leaves this way: what follows from records that are not written stays where it is.
class KeepAlive {
  public:
    using Clock = std::chrono::steady_clock;

    /// `transport` allows calls of several threads (comm::SharedTransport) and outlives it. `sign` goes to `peers`.
    template <class T>
    KeepAlive(comm::Transport& transport, const T& sign, std::vector<base::Rank> peers,
              std::chrono::milliseconds interval = std::chrono::seconds(1))
        : KeepAlive(transport, encoded(sign), std::move(peers), interval) {}

    /// Called by the loop in each of its rounds. Returns for how long it was away.
    std::chrono::milliseconds loop_is_here();
    /// Replaces the peers.
    void set_peers(std::vector<base::Rank> peers);
    /// No message leaves after it. May be called again.
    void stop() { thread_.stop(); }

  private:
    KeepAlive(comm::Transport& transport, study::Bytes sign, std::vector<base::Rank> peers,
              std::chrono::milliseconds interval);
    template <class T>
    [[nodiscard]] static study::Bytes encoded(const T& sign) {
        study::Bytes bytes;
        encode_message(sign, bytes);
        return bytes;
    }
    void speak();

    comm::Transport& transport_;
    const study::Bytes sign_;
    const std::chrono::milliseconds interval_;
    std::atomic<Clock::time_point> here_; ///< the loop's last round
    std::mutex mutex_;
    std::vector<base::Rank> peers_;
    process::Background thread_;
};

/// All ranks of a job but the head.
[[nodiscard]] std::vector<base::Rank> worker_ranks(std::uint32_t ranks);

} // namespace ranktune::wire
