// SPDX-License-Identifier: Apache-2.0
#include "comm/backoff.hpp"

#include <algorithm>
#include <thread>

namespace ranktune::comm {

void Backoff::pause() {
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

} // namespace ranktune::comm
