// SPDX-License-Identifier: Apache-2.0
#pragma once
// The second way in which a stop reaches the head.

#include <chrono>
#include <optional>

#include "drivers/head/serve_head.hpp"
#include "drivers/signal_note.hpp"

namespace ranktune::drivers {

/// What this process was to be sent through a launcher that lost it, because it was still starting.
class NotedStop {
  public:
    explicit NotedStop(const SignalMeanings& meanings) : meanings_(meanings) {}

    /// Looks from time to time; what is found is said once.
    std::optional<EndAsked> asked() {
        const auto now = std::chrono::steady_clock::now();
        if (known_ || now < next_) return std::nullopt;
        next_ = now + std::chrono::milliseconds(500);
        const study::Asker noted = meanings_.noted();
        if (noted == study::Asker::none) return std::nullopt;
        known_ = true;
        return EndAsked{.by = noted, .as = SignalMeanings::passed_on_as(noted)};
    }
    /// The study is about to stop.
    void known() { known_ = true; }

  private:
    const SignalMeanings& meanings_;
    std::chrono::steady_clock::time_point next_;
    bool known_ = false;
};

} // namespace ranktune::drivers
