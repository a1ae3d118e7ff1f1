// SPDX-License-Identifier: Apache-2.0
#include "tuner/outcomes.hpp"

#include <array>

namespace ranktune::tuner {
namespace {

constexpr std::size_t outcome_count = static_cast<std::size_t>(last_attempt_outcome) + 1;

struct Row {
    std::array<Ending, told_count> cells; ///< go_on, pause, stop, out
    Saying saying;
};

using enum AttemptOutcome;
using enum Then;

/// In the order of the outcomes' numbers. The group may have been told to pause in the moment in which its trial was
/// told to stop: what is recorded counts. A trial that failed or was lost after it had been told to stop is over as it
/// was told only where its group could not help it (lost, unsaved).
constexpr std::array<Row, outcome_count> table = {{
    //          told: go_on                 pause                   stop                  out
    /* paused      */ {{{{paused, pauses}, {paused, pauses}, {stopped, obeys}, {paused, nothing}}},
                       {Costs::nothing, false, true, true, Reason::none}},
    /* stopped     */
    {{{{stopped, waits}, {paused, pauses}, {stopped, obeys}, {stopped, nothing}}},
     {Costs::nothing, false, true, false, Reason::none}},
    /* finished    */
    {{{{finished, is_over}, {finished, is_over}, {stopped, obeys}, {finished, nothing}}},
     {Costs::nothing, false, true, false, Reason::none}},
    /* failed      */
    {{{{failed, may_fail}, {failed, may_fail}, {failed, may_fail}, {failed, nothing}}},
     {Costs::failure, true, false, true, Reason::none}},
    /* lost        */
    {{{{lost, may_be_lost}, {lost, pauses}, {lost, obeys}, {lost, nothing}}},
     {Costs::loss, false, false, false, Reason::none}},
    /* unreadable  */
    {{{{unreadable, falls_back}, {unreadable, falls_back}, {unreadable, falls_back}, {unreadable, nothing}}},
     {Costs::nothing, false, false, false, Reason::none}},
    /* unsaved     */
    {{{{unsaved, waits}, {unsaved, waits}, {unsaved, obeys}, {unsaved, nothing}}},
     {Costs::nothing, false, false, false, Reason::unsaved}},
    /* disturbed   */
    {{{{disturbed, may_fail}, {disturbed, may_fail}, {disturbed, may_fail}, {disturbed, nothing}}},
     {Costs::failure, true, false, true, Reason::none}},
    /* unreachable */
    {{{{unreachable, may_be_lost}, {unreachable, may_be_lost}, {unreachable, may_be_lost}, {unreachable, nothing}}},
     {Costs::loss, true, false, false, Reason::unreachable}},
    /* unstarted   */
    {{{{unstarted, waits}, {unstarted, waits}, {unstarted, waits}, {unstarted, nothing}}},
     {Costs::nothing, true, false, false, Reason::unstarted}},
    /* stateless   */
    {{{{stateless, waits}, {stateless, waits}, {stateless, waits}, {stateless, nothing}}},
     {Costs::nothing, false, false, false, Reason::stateless}},
}};

const Row& row_of(AttemptOutcome outcome) { return table[static_cast<std::size_t>(outcome)]; }

} // namespace

Ending ending_of(AttemptOutcome outcome, Told told) { return row_of(outcome).cells[static_cast<std::size_t>(told)]; }
const Saying& saying_of(AttemptOutcome outcome) { return row_of(outcome).saying; }

bool ends_trial(AttemptOutcome outcome) { return outcome != paused && outcome != unreachable; }

} // namespace ranktune::tuner
