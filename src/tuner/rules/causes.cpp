// SPDX-License-Identifier: Apache-2.0
#include "tuner/rules/causes.hpp"

#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::tuner {

TrialPhase phase_after(Reason reason) {
    switch (reason) {
        case Reason::max_iterations:
        case Reason::trainable_done:
            return TrialPhase::finished;
        case Reason::missing_metric:
        case Reason::parameters_differ:
        case Reason::exception:
        case Reason::lost:
            return TrialPhase::failed;
        default:
            return TrialPhase::stopped;
    }
}

bool blames_surroundings(Reason reason) { return reason == Reason::unstarted || reason == Reason::failures_in_a_row; }

std::string named(TrialId id) { return "trial #" + std::to_string(id.value()); }

void impossible(const std::string& what) {
    throw base::FormatError(
        "the journal contradicts itself: " + what +
        ". It was written by another version or is damaged; `ranktune status` shows the last good state");
}

std::uint64_t digest_of_words(std::string message) {
    std::erase_if(message, [](char c) { return c >= '0' && c <= '9'; });
    return base::digest_of(message);
}

} // namespace ranktune::tuner
