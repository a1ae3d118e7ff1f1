// SPDX-License-Identifier: Apache-2.0
#pragma once
// Backoff: how a thread waits for something it has to ask for again and again.

#include <chrono>

namespace ranktune::comm {

/// First a few turns at full speed (the partner is about to answer on another core), then turns that give the core
/// away, then naps of 50 us growing to 200 us: a napping thread is woken promptly even when every core is taken, one
/// that yields loses its whole slice.
class Backoff {
  public:
    static constexpr unsigned spins = 100;
    static constexpr unsigned yields = 200;
    static constexpr std::chrono::microseconds shortest_nap{50};
    static constexpr std::chrono::microseconds longest_nap{200};

    /// One turn of waiting.
    void pause();
    /// Something happened: the next wait begins at full speed.
    void reset() {
        turns_ = 0;
        nap_ = shortest_nap;
    }

  private:
    unsigned turns_ = 0;
    std::chrono::microseconds nap_ = shortest_nap;
};

} // namespace ranktune::comm
