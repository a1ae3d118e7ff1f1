// SPDX-License-Identifier: Apache-2.0
#pragma once
// Causes, and the words for them.

#include <cstdint>
#include <string>

#include "tuner/values/trial_state.hpp"

namespace ranktune::tuner {

/// The final phase of a trial that was stopped for this reason.
[[nodiscard]] TrialPhase phase_after(Reason reason);
/// The study ends for a cause that lies outside of its trials: their failures do not count meanwhile.
[[nodiscard]] bool blames_surroundings(Reason reason);

/// "trial #7".
[[nodiscard]] std::string named(TrialId id);
/// Throws base::FormatError: a record that cannot follow those before it.
[[noreturn]] void impossible(const std::string& what);

/// Of the message of a failure without its numbers: "loss is NaN at iteration 7" says what "loss is NaN at iteration 9"
/// says.
[[nodiscard]] std::uint64_t digest_of_words(std::string message);

} // namespace ranktune::tuner
