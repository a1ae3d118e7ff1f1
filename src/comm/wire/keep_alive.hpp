// SPDX-License-Identifier: Apache-2.0
#pragma once
// KeepAlive: a thread that sends signs of life while the process's loop waits for a disk.

#include <atomic>
#include <chrono>
#include <mutex>
#include <vector>

#include "comm/transport/transport.hpp"
#include "comm/wire/protocol.hpp"
#include "process/background.hpp"
#include "ranktune/base/ids.hpp"

namespace ranktune::comm {

/// While the loop runs, this thread sends nothing. When the loop has been blocked for an interval (writes to a file
/// system that fails over may block for minutes), this thread sends one message per interval in its place, so that
/// peers do not take the process for dead. A stopped process (SIGSTOP, a node that hangs) stays silent, because this
/// thread is stopped too.
///
/// It sends no commands: these must wait until their records are written.
class KeepAlive {
  public:
    using Clock = std::chrono::steady_clock;

    /// `transport` must be thread-safe (comm::SharedTransport) and outlive this object. `sign` is sent to `peers`.
    template <class T>
    KeepAlive(comm::Transport& transport, const T& sign, std::vector<base::Rank> peers,
              std::chrono::milliseconds interval = std::chrono::seconds(1))
        : KeepAlive(transport, encoded(sign), std::move(peers), interval) {}

    /// Called by the loop in each round. Returns the time since the previous call.
    std::chrono::milliseconds loop_is_here();
    /// Replaces the peers.
    void set_peers(std::vector<base::Rank> peers);
    /// No message is sent afterwards. May be called repeatedly.
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

/// All ranks of a job except the head.
[[nodiscard]] std::vector<base::Rank> worker_ranks(std::uint32_t ranks);

} // namespace ranktune::comm
