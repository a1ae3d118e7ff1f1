// SPDX-License-Identifier: Apache-2.0
// What must hold after every step, in both directions: trials know their ranks, and ranks know their trial.

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "ranktune/study/objective.hpp"
#include "tuner/core.hpp"

namespace ranktune::tuner {
namespace {

void require(bool holds, const std::string& what) {
    if (!holds) throw std::logic_error("tuner invariant violated: " + what);
}

std::string named(TrialId id) { return "trial #" + std::to_string(id.value()); }

} // namespace

void Tuner::Impl::check_invariants() const {
    std::uint64_t count[7] = {};
    std::uint64_t held = 0;
    std::uint64_t checkpoint_bytes = 0;
    std::optional<TrialId> best;
    for (std::uint32_t i = 0; i < state.trials.size(); ++i) {
        const TrialId id{i};
        const TrialState& t = state.trials[i];
        ++count[static_cast<std::size_t>(t.phase)];
        for (const CheckpointRef& checkpoint : t.checkpoints) checkpoint_bytes += checkpoint.bytes;
        require(waiting.contains(id) == (t.phase == TrialPhase::waiting), named(id) + " and the waiting list disagree");
        const bool holds = holds_ranks(t);
        for (const Rank rank : t.ranks) {
            // Kept for views from an earlier incarnation, which may have had more ranks.
            if (!holds && rank.value() > state.workers.size()) continue;
            const WorkerState& worker = state.workers.at(rank.value() - 1);
            const bool held_by_this = worker.alive && worker.trial == id;
            require(holds ? held_by_this || !worker.alive : !held_by_this,
                    named(id) + " is " + std::string(name(t.phase)) + " but rank " + std::to_string(rank.value()) +
                        " disagrees");
            if (held_by_this) ++held;
        }
        require(!holds || !state.ended, named(id) + " has ranks although the study has ended");
        if (holds) require(t.ranks.size() == t.wanted_ranks, named(id) + " has another number of ranks than it wants");
        require(t.reported || std::isnan(t.best), named(id) + " has a best value but no report");
        if (!std::isnan(t.best)) {
            const auto ranked = [&](TrialId which) {
                return study::Ranked{study::score(state.trial(which).best, spec.objective.mode), which};
            };
            if (!best || study::better(ranked(id), ranked(*best))) best = id;
        }
        require(t.verdict.verb != Verb::go_on || t.phase != TrialPhase::paused || !t.reported,
                named(id) + " is paused although it was told to go on");
        if (is_final(t.phase)) require(t.closed_by != Reason::none, named(id) + " is closed without a reason");
    }
    require(std::equal(std::begin(count), std::end(count), std::begin(state.count)), "the counts by phase are off");
    require(best == state.best, "the best trial is not the best");
    require(checkpoint_bytes == state.checkpoint_bytes, "the bytes of all checkpoints are off");
    require(state.trials.size() <= spec.num_trials, "more trials than study.num_trials");

    std::uint64_t free = 0;
    std::uint64_t alive = 0;
    for (const auto& worker : state.workers) {
        const bool serving = serves(worker);
        if (serving) ++alive;
        const bool is_free = serving && !worker.trial;
        if (is_free) ++free;
        if (worker.alive && !serving && worker.trial) --held; // on a host that gets no more
        require(ledger.is_free(worker.info.rank) == is_free,
                "rank " + std::to_string(worker.info.rank.value()) + " and the ledger disagree");
    }
    require(free == ledger.free() && alive == ledger.alive(), "the ledger's counts are off");
    require(held + free == alive, "a rank is held by a trial that does not list it");
    if (state.ended) {
        require(count[1] + count[2] == 0 && held == 0, "the study ended while trials have ranks");
        if (is_over(state)) {
            require(count[0] + count[3] == 0, "the study ended for good with trials that are not final");
        }
    }
    for (std::uint32_t i = 0; i < state.trials.size(); ++i) {
        const TrialState& t = state.trials[i];
        const bool suspect = t.deaths >= deaths_to_suspect && !is_final(t.phase);
        require(suspects.contains(TrialId{i}) == suspect, named(TrialId{i}) + " and the list of suspects disagree");
    }
    if (spec.checkpoint.max_bytes) check_evictable();
    if (spec.deterministic) check_turns();
    scheduler->check_invariants();
}

/// The list is what a restored head would make of the state.
void Tuner::Impl::check_evictable() const {
    std::size_t listed = 0;
    for (std::uint32_t i = 0; i < state.trials.size(); ++i) {
        const TrialId id{i};
        require(evictable.contains(as_evictable(id)) == is_evictable(id),
                named(id) + " and the list of those whose checkpoints may go disagree");
        if (is_evictable(id)) ++listed;
    }
    require(listed == evictable.size(), "the list of trials whose checkpoints may go has too many");
}

/// Trials know their slots and slots their trials, and who needs ranks or holds them idly is known.
void Tuner::Impl::check_turns() const {
    const auto& slots = state.logical.slots();
    require(slots.size() == spec.max_concurrent, "another number of slots than study.max_concurrent");
    std::uint32_t returning_ranks = 0;
    for (std::uint32_t i = 0; i < state.trials.size(); ++i) {
        const TrialId id{i};
        const TrialState& t = state.trials[i];
        require(t.slot == no_slot || slots.at(t.slot).trial == id, named(id) + " and its slot disagree");
        require(!t.winding || leaving.contains(id), named(id) + " leaves, but its ranks are not counted on");
        require(t.phase != TrialPhase::ending, named(id) + " is ending in a deterministic study");
        require(unslotted.contains(id) == (t.phase == TrialPhase::waiting && t.slot == no_slot),
                named(id) + " and the list of those without a slot disagree");
        if (leaving.contains(id)) {
            require(holds_ranks(t), named(id) + " is waited for but holds no ranks");
            returning_ranks += t.wanted_ranks;
        }
    }
    require(returning_ranks == returning, "the number of ranks that come back is off");
    for (std::uint32_t s = 0; s < slots.size(); ++s) {
        const LogicalSlot& slot = slots[s];
        require(slot.clock <= state.logical.now(), "the clock of a slot is ahead of time");
        if (!slot.trial) continue;
        const TrialState& t = state.trial(*slot.trial);
        require(t.slot == s, named(*slot.trial) + " does not know its slot");
        require(t.phase == TrialPhase::waiting || t.phase == TrialPhase::running,
                named(*slot.trial) + " has a slot but is " + std::string(name(t.phase)));
        Iteration last = t.iteration;
        for (const auto& report : slot.held) {
            require(report.iteration > last, named(*slot.trial) + " holds reports out of order");
            last = report.iteration;
        }
        require(slot.received == last, named(*slot.trial) + " has received something else than it holds");
        const auto key = state.logical.key(s);
        require(state.logical.needy().contains(key) == needs_ranks(*slot.trial),
                named(*slot.trial) + " and the list of those that need ranks disagree");
        require(state.logical.parked().contains(key) == is_parked(*slot.trial),
                named(*slot.trial) + " and the list of those whose turn has not come disagree");
    }
}

} // namespace ranktune::tuner
