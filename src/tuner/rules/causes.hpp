// SPDX-License-Identifier: Apache-2.0
#pragma once
// Causes, and the words for them.

#include <cstdint>
#include <string>

#include "tuner/values/trial.hpp"

namespace ranktune::tuner {

/// The final phase of a trial that was stopped for this reason.
[[nodiscard]] TrialPhase phase_after(Reason reason);
/// Whether a study that ends for this reason ends for a cause outside its trials, so that their failures do not count.
[[nodiscard]] bool blames_surroundings(Reason reason);

/// "trial #7".
[[nodiscard]] std::string named(TrialId id);
/// Throws base::FormatError: a record contradicts the records before it.
[[noreturn]] void impossible(const std::string& what);

/// Digest of a failure message without its digits: "loss is NaN at iteration 7" equals "loss is NaN at iteration 9".
[[nodiscard]] std::uint64_t digest_of_words(std::string message);

} // namespace ranktune::tuner
