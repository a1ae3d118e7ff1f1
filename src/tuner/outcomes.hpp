// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the end of an attempt means: a table of outcomes by what the trial had been told.

#include <optional>

#include "tuner/values/trial_state.hpp"

namespace ranktune::tuner {

/// What a trial had been told in the attempt that ended. In deterministic studies, where a verdict takes effect at
/// once, a trial that was told to pause or stop is out: only its ranks come back. yield: its group was asked for its
/// ranks.
enum class Told : std::uint8_t { go_on, yield, pause, exploit, stop, out };
inline constexpr std::size_t told_count = 6;

/// What happens to the trial. (A trial that was told to pause is paused where another one would wait.)
enum class Then : std::uint8_t {
    pauses,      ///< pauses, without ranks
    waits,       ///< for ranks, to go on from its newest checkpoint
    may_fail,    ///< waits, while failure.max_failures allows it and it does not fail again in the same words
    fails,       ///< has failed: another attempt would fail like this one
    may_be_lost, ///< waits, while failure.max_losses allows it
    falls_back,  ///< waits, to go on from the checkpoint before; without one it has failed
    obeys,       ///< ends as it was told
    is_over,     ///< has finished, if it ever reported; otherwise it has failed, and may_fail
    nothing      ///< decided elsewhere
};

/// What the end of an attempt costs its trial.
enum class Costs : std::uint8_t { nothing, failure, loss };

struct Ending {
    AttemptOutcome recorded = AttemptOutcome::finished;
    Then then = Then::nothing;
};

/// One cell of the table.
[[nodiscard]] Ending ending_of(AttemptOutcome outcome, Told told);

/// What an outcome means whatever the trial had been told: one row of the table.
struct Saying {
    Costs costs = Costs::nothing;
    bool against_host = false; ///< counts against the host if the trial ran on one host only
    bool clears_host = false;  ///< its hosts have shown that they work
    bool clears_trial = false; ///< of the suspicion that it kills the job: a trial that saves or throws does not
    Reason ends_study =
        Reason::none; ///< resumably, when the trial is not tried again (unsaved, stateless: in any case)
};
[[nodiscard]] const Saying& saying_of(AttemptOutcome outcome);

/// Whether the trial is at fault: failed, disturbed, oversized.
[[nodiscard]] inline bool is_failure(AttemptOutcome outcome) { return saying_of(outcome).costs == Costs::failure; }

/// Whether such an outcome ends the trial, if no other attempt follows.
[[nodiscard]] bool ends_trial(AttemptOutcome outcome);

} // namespace ranktune::tuner
