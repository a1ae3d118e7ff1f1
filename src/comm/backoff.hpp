// SPDX-License-Identifier: Apache-2.0
#pragma once
// Backoff: how a thread waits while it polls.

#include <algorithm>
#include <chrono>
#include <thread>

namespace ranktune::comm {

/// Spins first (the partner may answer from another core), then yields, then sleeps for 50 us growing to 200 us: a
/// sleeping thread is woken promptly even when every core is busy, a yielding one loses its whole time slice.
class Backoff {
  public:
    static constexpr unsigned spins = 100;
    static constexpr unsigned yields = 200;
    static constexpr std::chrono::microseconds shortest_nap{50};
    static constexpr std::chrono::microseconds longest_nap{200};

    /// Waits for one turn.
    void pause() {
        if (turns_ < spins) {
            ++turns_;
        } else if (turns_ < spins + yields) {
            ++turns_;
            std::this_thread::yield();
        } else {
            std::this_thread::sleep_for(nap_);
            nap_ = std::min(nap_ * 2, longest_nap);
        }
    }
    /// Something happened: start over with spinning.
    void reset() {
        turns_ = 0;
        nap_ = shortest_nap;
    }

  private:
    unsigned turns_ = 0;
    std::chrono::microseconds nap_ = shortest_nap;
};

} // namespace ranktune::comm
