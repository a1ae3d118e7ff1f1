// SPDX-License-Identifier: Apache-2.0
#include "tuner/rules/outcomes.hpp"

#include <array>

namespace ranktune::tuner {
namespace {

constexpr std::size_t outcome_count = static_cast<std::size_t>(last_attempt_outcome) + 1;

struct Row {
    std::array<Ending, told_count> cells; ///< in the order of Told
    Saying saying;
};

/// In the order of the outcome codes. A trial that is paused, and whose state could not be saved, has failed like one
/// that trains, and so has one that has its result and then fails: the result may be wrong. A group that yields its
/// ranks without anything to save stops; a group that stops unasked ends its trial.
// clang-format off
struct Table {
    using enum AttemptOutcome;
    using enum Then;
    static constexpr std::array<Row, outcome_count> rows = {{
        //                 told to go on               to yield its ranks          to pause                    otherwise winds down
        /* paused      */ {{{{paused, pauses},           {paused, pauses},           {paused, pauses},           {paused, nothing}}},        {.clears_host = true, .clears_trial = true}},
        /* stopped     */ {{{{finished, is_over},        {stopped, waits},           {paused, pauses},           {stopped, nothing}}},       {.clears_host = true}},
        /* finished    */ {{{{finished, is_over},        {finished, is_over},        {finished, is_over},        {finished, nothing}}},      {.clears_host = true}},
        /* failed      */ {{{{failed, may_fail},         {failed, may_fail},         {failed, may_fail},         {failed, spoils}}},        {.costs = Costs::failure, .against_host = true, .clears_trial = true}},
        /* lost        */ {{{{lost, may_be_lost},        {lost, may_be_lost},        {lost, pauses},             {lost, nothing}}},          {.costs = Costs::loss}},
        /* unreadable  */ {{{{unreadable, falls_back},   {unreadable, falls_back},   {unreadable, falls_back},   {unreadable, nothing}}},    {}},
        /* unsaved     */ {{{{unsaved, waits},           {unsaved, waits},           {unsaved, waits},           {unsaved, nothing}}},       {.ends_study = Reason::unsaved}},
        /* disturbed   */ {{{{disturbed, may_fail},      {disturbed, may_fail},      {disturbed, may_fail},      {disturbed, spoils}}},     {.costs = Costs::failure, .against_host = true, .clears_trial = true}},
        /* unreachable */ {{{{unreachable, may_be_lost}, {unreachable, may_be_lost}, {unreachable, may_be_lost}, {unreachable, nothing}}},   {.costs = Costs::loss, .against_host = true, .ends_study = Reason::unreachable}},
        /* unstarted   */ {{{{unstarted, waits},         {unstarted, waits},         {unstarted, waits},         {unstarted, nothing}}},     {.against_host = true, .ends_study = Reason::unstarted}},
        /* stateless   */ {{{{stateless, waits},         {stateless, waits},         {stateless, waits},         {stateless, nothing}}},     {.ends_study = Reason::stateless}},
        /* oversized   */ {{{{oversized, fails},         {oversized, fails},         {oversized, fails},         {oversized, spoils}}},     {.costs = Costs::failure, .against_host = true, .clears_trial = true}},
        /* resized     */ {{{{resized, waits},           {resized, waits},           {resized, pauses},          {resized, nothing}}},       {.clears_host = true, .clears_trial = true}},
        /* permanent   */ {{{{permanent, fails},         {permanent, fails},         {permanent, fails},         {permanent, spoils}}},     {.costs = Costs::failure, .against_host = true, .clears_trial = true}},
    }};
};
// clang-format on

const Row& row_of(AttemptOutcome outcome) { return Table::rows[static_cast<std::size_t>(outcome)]; }

} // namespace

Ending ending_of(AttemptOutcome outcome, Told told) { return row_of(outcome).cells[static_cast<std::size_t>(told)]; }
const Saying& saying_of(AttemptOutcome outcome) { return row_of(outcome).saying; }

bool ends_trial(AttemptOutcome outcome) {
    return outcome != AttemptOutcome::paused && outcome != AttemptOutcome::unreachable;
}

} // namespace ranktune::tuner
