// SPDX-License-Identifier: Apache-2.0
#include "tuner/causes.hpp"

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

std::string_view without_place(std::string_view message) {
    const std::size_t colon = message.starts_with("rank ") ? message.find(": ") : std::string_view::npos;
    return message.substr(colon == std::string_view::npos ? 0 : colon + 2);
}

std::uint64_t digest_of_failure(std::string_view message) { return base::digest_of(without_place(message)); }

std::uint64_t digest_of_words(const std::string& message) {
    std::string words = message;
    std::erase_if(words, [](char c) { return c >= '0' && c <= '9'; });
    return digest_of_failure(words);
}

} // namespace ranktune::tuner
