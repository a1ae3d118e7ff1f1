// SPDX-License-Identifier: Apache-2.0
#include "tuner/tuner.hpp"

#include <algorithm>
#include <cmath>

#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/study/objective.hpp"
#include "ranktune/study/schema.hpp"
#include "schedulers/built_in.hpp"
#include "schedulers/checks.hpp"
#include "searchers/built_in.hpp"
#include "tuner/admission/by_arrival.hpp"
#include "tuner/admission/by_barrier.hpp"
#include "tuner/admission/by_turn.hpp"
#include "tuner/apply.hpp"
#include "tuner/resume.hpp"
#include "tuner/rules/causes.hpp"

namespace ranktune::tuner {
namespace {

constexpr std::uint8_t snapshot_version = 31;

std::unique_ptr<Admission> make_admission(const study::StudySpec& spec, State& state,
                                          const schedulers::Scheduler& scheduler) {
    if (spec.deterministic) return std::make_unique<ByTurn>(spec, state.trials, scheduler);
    if (scheduler.synchronous()) return std::make_unique<ByBarrier>(state.trials, state.placement, scheduler);
    return std::make_unique<ByArrival>(state.trials);
}

/// The fields of the state that a snapshot holds, apart from those that save themselves.
void state_fields(auto&& each, auto& s) {
    each(s.uuid, s.version, s.wall_time, s.incarnation, s.now, s.began, s.metrics, s.reports, s.records, s.iterations,
         s.interruptions, s.since_better, s.ended_well, s.scored, s.best, s.nearest, s.suggested, s.tickets, s.draining,
         s.drain_began, s.drain_reason, s.drain_message, s.drain_by, s.ended, s.outcome, s.end_reason, s.end_message,
         s.deterministic_until, s.simulation, s.requests, s.pace, s.blame, s.retention, s.last_results);
}

using schedulers::require;

} // namespace

Tuner::Tuner(study::StudySpec spec) : Tuner(std::move(spec), nullptr, nullptr) {}

Tuner::Tuner(study::StudySpec spec, std::unique_ptr<schedulers::Scheduler> scheduler,
             std::unique_ptr<searchers::Searcher> searcher)
    : core_(std::move(spec), std::move(scheduler), std::move(searcher)) {}

Core::Core(study::StudySpec study, std::unique_ptr<schedulers::Scheduler> own_scheduler,
           std::unique_ptr<searchers::Searcher> own_searcher)
    : spec(std::move(study)),
      searcher(own_searcher ? std::move(own_searcher) : searchers::make_searcher(spec)),
      scheduler(own_scheduler ? std::move(own_scheduler) : schedulers::make_scheduler(spec)),
      admission(make_admission(spec, state, *scheduler)),
      learns(searcher->learns()),
      exploits(scheduler->exploits()),
      objective(spec.objective) {
    if (exploits && !spec.checkpoint.supported)
        throw base::UsageError(
            "scheduler " + std::string(scheduler->name()) +
            " has trials take over the checkpoints of others: that needs a trainable that saves them");
    if (spec.searcher.repeats > 1 && spec.scheduler.algorithm && !spec.scheduler.algorithm->trains_all)
        throw base::UsageError("searcher.repeats needs a scheduler that trains every trial to its end, not " +
                               spec.scheduler.algorithm->name);
    if (spec.resources.gpus == study::GpuUse::some) {
        if (scheduler->synchronous() || exploits)
            throw base::UsageError("resources.gpus may be 0, and the trials of " + std::string(scheduler->name()) +
                                   " wait for each other: give each of them GPUs, or none");
        state.placement.keep_kinds_apart();
    }
    state.observations = searchers::Observations(spec.space.dimensions());
}

// ---- snapshot

bool is_of_this_version(const study::Snapshot& snapshot) {
    return !snapshot.state.empty() && static_cast<std::uint8_t>(snapshot.state.front()) == snapshot_version;
}

void Tuner::snapshot(study::Encoder& out) const {
    out.u8(snapshot_version);
    state_fields([&out](const auto&... each) { (study::put(out, each), ...); }, core_.state);
    core_.state.trials.snapshot(out);
    study::put(out, core_.state.side);
    study::put(out, core_.state.placement);
    core_.scheduler->snapshot(out);
    core_.admission->snapshot(out);
    core_.state.observations.snapshot(out);
    core_.searcher->snapshot(out);
}

void Tuner::restore(study::Decoder& in) {
    if (in.u8() != snapshot_version)
        throw base::FormatError("this snapshot was written by another version of ranktune");
    state_fields([&in](auto&... each) { (study::get(in, each), ...); }, core_.state);
    core_.state.trials.restore(in);
    study::get(in, core_.state.side);
    for (std::uint32_t i = 0; core_.state.placement.keeps_kinds_apart() && i < core_.state.trials.size(); ++i) {
        Trial& t = trial(core_, TrialId{i});
        t.workers = core_.spec.workers_for(t.configuration);
    }
    study::get(in, core_.state.placement);
    if (core_.spec.objective.several()) core_.state.front.find(core_.state.trials, core_.spec.objective);
    core_.state.blame.restored(core_.state.trials);
    core_.state.retention.list_all(core_.state.trials, core_.spec);
    core_.scheduler->restore(in); // the admission asks it
    core_.admission->restore(in);
    core_.state.observations = searchers::Observations(core_.spec.space.dimensions());
    core_.state.observations.restore(in);
    core_.searcher->restore(in);
    core_.objective = schedulers::ObjectiveReader(core_.spec.objective);
    core_.metric_ids.clear();
    for (std::size_t i = 0; i < core_.state.metrics.size(); ++i) {
        const MetricId id{static_cast<std::uint16_t>(i)};
        core_.metric_ids.emplace(core_.state.metrics[i], id);
        core_.objective.apply(core_.state.metrics[i], id);
    }
    core_.slowest = core_.state.pace.deadline() ? slowest_running(core_) : 0.0;
    tell_all(core_, [this](TrialId id) { // what was owed then was sent then
        Output sent;
        tell(id, sent);
    });
}

std::optional<searchers::Searcher::Preparation> Tuner::preparation(std::uint64_t number) const {
    const Ticket* ticket = core_.state.tickets.unanswered(number);
    if (ticket == nullptr) return {};
    return core_.searcher->prepare(number, core_.state.observations.first(ticket->seen));
}

void Tuner::apply(const study::Record& record) { tuner::apply(core_, record); }
std::string Tuner::objection(const study::Steering& ask) const { return tuner::objection(core_, ask); }
std::vector<study::Command> Tuner::pending_commands() const { return tuner::pending_commands(core_); }
study::SuggestionBasis Tuner::basis_of(const study::Origin& origin) const { return tuner::basis_of(core_, origin); }
std::optional<StudyTime> Tuner::timer() const { return tuner::timer(core_); }

std::uint64_t Tuner::digest() const {
    study::Bytes bytes;
    study::Encoder encoder(bytes);
    snapshot(encoder);
    return base::Digest().add(bytes).value();
}

// ---- invariants

void Tuner::check_invariants() const {
    core_.state.trials.check_invariants();
    core_.state.placement.check_invariants();
    core_.state.blame.check_invariants(core_.state.trials);
    core_.state.retention.check_invariants(core_.state.trials, core_.spec);
    core_.state.pace.check_invariants();
    core_.state.side.check_invariants();
    core_.state.tickets.check_invariants();
    core_.state.requests.check_invariants();
    core_.state.last_results.check_invariants(core_.state.trials, core_.spec);
    core_.admission->check_invariants();
    core_.scheduler->check_invariants();
    core_.state.front.check_invariants(core_.state.trials, core_.spec.objective);
    std::uint64_t held = 0;
    for (std::uint32_t i = 0; i < core_.state.trials.size(); ++i) {
        const TrialId id{i};
        const Trial& t = core_.state.trials[id];
        const bool holds = t.attempt.live;
        for (const Rank rank : t.attempt.ranks) {
            // Ranks kept for views may be of an earlier incarnation, which may have had more ranks.
            if (!core_.state.placement.knows(rank)) continue;
            const WorkerState& worker = core_.state.placement.worker(rank);
            const bool held_by_this = worker.alive && worker.trial == id;
            require(holds ? held_by_this || !worker.alive : !held_by_this,
                    named(id) + " is " + std::string(name(t.phase)) + " but rank " + std::to_string(rank.value()) +
                        " disagrees");
            if (held_by_this && core_.state.placement.serves(worker)) ++held;
        }
        require(!holds || !core_.state.ended, named(id) + " has ranks although the study has ended");
        if (t.phase == TrialPhase::running)
            require(t.attempt.ranks.size() == t.wanted_ranks, named(id) + " has another number of ranks than it wants");
        require(t.reported || std::isnan(t.best), named(id) + " has a best value but no report");
        require(t.verdict.verb != Verb::go_on || t.phase != TrialPhase::paused || !t.reported ||
                    core_.admission->at_barrier(id),
                named(id) + " is paused although it was told to go on");
        if (is_final(t.phase)) require(t.closed_by != Reason::none, named(id) + " is closed without a reason");
    }
    for (const TrialId unit : core_.state.side.running()) {
        const WorkerState& worker = core_.state.placement.worker(core_.state.side.all().at(unit).rank);
        require(worker.aside == unit, "a side task runs on a rank that disagrees");
        if (core_.state.placement.serves(worker)) ++held;
        require(!core_.state.ended, "a side task has a rank although the study has ended");
    }
    const auto best =
        core_.spec.searcher.repeats > 1 ? best_by_mean(core_.state.trials, core_.spec) : best_of_all(core_);
    require(best == core_.state.best, "the best trial is not the best");
    require(core_.state.trials.size() <= core_.spec.num_trials, "more trials than study.num_trials");
    require(held + core_.state.placement.free() == core_.state.placement.alive(),
            "a rank is held by a trial that does not list it");
    require(!core_.state.pace.deadline() || core_.slowest == slowest_running(core_),
            "the slowest of the trials that run is another one");
    if (!core_.state.ended) return;
    require(core_.state.trials.live_attempts() == 0, "the study ended while trials have ranks");
    if (is_over(core_.state))
        require(core_.state.in(TrialPhase::waiting) + core_.state.in(TrialPhase::paused) == 0,
                "the study ended for good with trials that are not final");
}

} // namespace ranktune::tuner
