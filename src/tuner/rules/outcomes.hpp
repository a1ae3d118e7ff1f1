// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the end of an attempt means: a table of outcomes by what the trial had been told.

#include <optional>

#include "tuner/values/trial.hpp"

namespace ranktune::tuner {

/// What the group of the attempt that ended had been told. yield: it was asked for its ranks, by another trial or
/// a user. pause: the job ends, or its trial is paused and needs the state that it saves. out: its trial has its
/// result, or goes on from another state; only ranks come back. (In a deterministic study also where its trial is
/// paused.)
enum class Told : std::uint8_t { go_on, yield, pause, out };
inline constexpr std::size_t told_count = 4;

/// What happens to the trial. (One that is paused stays so where another one waits.)
enum class Then : std::uint8_t {
    pauses,      ///< waits, and nothing is held against it
    waits,       ///< for ranks, to go on from its newest checkpoint
    may_fail,    ///< waits, while failure.max_failures allows it and it does not fail again in the same words
    fails,       ///< has failed: another attempt would fail like this one
    may_be_lost, ///< waits, while failure.max_losses allows it
    falls_back,  ///< waits, to go on from the checkpoint before; without one it has failed
    is_over,     ///< has finished, if it ever reported; otherwise it has failed, and may_fail
    spoils,      ///< a trial that has its result has failed after all; the search keeps the result
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

/// Whether the trial is at fault: failed, disturbed, oversized, permanent.
[[nodiscard]] inline bool is_failure(AttemptOutcome outcome) { return saying_of(outcome).costs == Costs::failure; }

/// Whether such an outcome ends the trial, if no other attempt follows.
[[nodiscard]] bool ends_trial(AttemptOutcome outcome);

} // namespace ranktune::tuner
