// SPDX-License-Identifier: Apache-2.0
#include "tuner/tuner.hpp"

#include <algorithm>
#include <cmath>

#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/study/objective.hpp"
#include "schedulers/built_in.hpp"
#include "schedulers/checks.hpp"
#include "searchers/built_in.hpp"
#include "tuner/admission/by_arrival.hpp"
#include "tuner/admission/by_barrier.hpp"
#include "tuner/admission/by_turn.hpp"
#include "tuner/archive.hpp"
#include "tuner/causes.hpp"
#include "tuner/resume.hpp"

namespace ranktune::tuner {
namespace {

constexpr std::uint8_t snapshot_version = 26;

std::unique_ptr<Admission> make_admission(const study::StudySpec& spec, State& state,
                                          const schedulers::Scheduler& scheduler) {
    if (spec.deterministic) return std::make_unique<ByTurn>(spec, state.trials, scheduler);
    if (scheduler.synchronous()) return std::make_unique<ByBarrier>(state.trials, state.placement, scheduler);
    return std::make_unique<ByArrival>(state.trials);
}

/// The fields of the state that a snapshot holds, apart from those that save themselves.
template <class Archive, class S>
void state_fields(Archive& archive, S& s) {
    const auto each = [&archive](auto&... field) { (archive(field), ...); };
    each(s.uuid, s.version, s.wall_time, s.incarnation, s.now, s.began, s.metrics, s.reports, s.records, s.iterations,
         s.interruptions, s.scored, s.best, s.nearest, s.suggested);
    Tickets::fields(archive, s.tickets);
    each(s.draining, s.drain_began, s.drain_reason, s.drain_message, s.drain_by, s.ended, s.outcome, s.end_reason,
         s.end_message, s.deterministic_until, s.simulation);
    Requests::fields(archive, s.requests);
    Pace::fields(archive, s.pace);
    Blame::fields(archive, s.blame);
    Retention::fields(archive, s.retention);
    LastResults::fields(archive, s.last_results);
}

using schedulers::require;

} // namespace

Tuner::Tuner(study::StudySpec spec) : Tuner(std::move(spec), nullptr, nullptr) {}

Tuner::Tuner(study::StudySpec spec, std::unique_ptr<schedulers::Scheduler> scheduler,
             std::unique_ptr<searchers::Searcher> searcher)
    : spec_(std::move(spec)),
      searcher_(searcher ? std::move(searcher) : searchers::make_searcher(spec_)),
      scheduler_(scheduler ? std::move(scheduler) : schedulers::make_scheduler(spec_)),
      admission_(make_admission(spec_, state_, *scheduler_)),
      learns_(searcher_->learns()),
      exploits_(scheduler_->exploits()),
      objective_(spec_.objective) {
    if (exploits_ && !spec_.checkpoint.supported)
        throw base::UsageError(
            "scheduler " + std::string(scheduler_->name()) +
            " has trials take over the checkpoints of others: that needs a trainable that saves them");
    if (spec_.searcher.repeats > 1 && spec_.scheduler.algorithm && !spec_.scheduler.algorithm->trains_all)
        throw base::UsageError("searcher.repeats needs a scheduler that trains every trial to its end, not " +
                               spec_.scheduler.algorithm->name);
    if (spec_.resources.gpus == study::GpuUse::some) {
        if (scheduler_->synchronous() || exploits_)
            throw base::UsageError("resources.gpus may be 0, and the trials of " + std::string(scheduler_->name()) +
                                   " wait for each other: give each of them GPUs, or none");
        state_.placement.keep_kinds_apart();
    }
    state_.observations = searchers::Observations(spec_.space.dimensions());
    constexpr std::uint32_t reserved = 1'000'000;
    state_.trials.reserve(std::min(spec_.num_trials, reserved));
}

// ---- snapshot

bool is_of_this_version(const study::Snapshot& snapshot) {
    return !snapshot.state.empty() && static_cast<std::uint8_t>(snapshot.state.front()) == snapshot_version;
}

void Tuner::snapshot(study::Encoder& out) const {
    out.u8(snapshot_version);
    Writer write{out};
    state_fields(write, state_);
    state_.trials.snapshot(write);
    state_.placement.snapshot(write);
    scheduler_->snapshot(out);
    admission_->snapshot(out);
    state_.observations.snapshot(out);
    searcher_->snapshot(out);
}

void Tuner::restore(study::Decoder& in) {
    if (in.u8() != snapshot_version)
        throw base::FormatError("this snapshot was written by another version of ranktune");
    Reader read{in};
    state_fields(read, state_);
    state_.trials.restore(read);
    for (std::uint32_t i = 0; state_.placement.keeps_kinds_apart() && i < state_.trials.size(); ++i) {
        Trial& t = trial(TrialId{i});
        t.workers = spec_.workers_for(t.configuration);
    }
    state_.placement.restore(read);
    if (spec_.objective.several()) state_.front.find(state_.trials, spec_.objective);
    state_.blame.restored(state_.trials);
    state_.retention.list_all(state_.trials, spec_);
    scheduler_->restore(in); // the admission asks it
    admission_->restore(in);
    state_.observations = searchers::Observations(spec_.space.dimensions());
    state_.observations.restore(in);
    searcher_->restore(in);
    objective_ = schedulers::ObjectiveReader(spec_.objective);
    metric_ids_.clear();
    for (std::size_t i = 0; i < state_.metrics.size(); ++i) {
        const MetricId id{static_cast<std::uint16_t>(i)};
        metric_ids_.emplace(state_.metrics[i], id);
        objective_.apply(state_.metrics[i], id);
    }
    slowest_ = state_.pace.deadline() ? slowest_running() : 0.0;
}

std::optional<searchers::Searcher::Preparation> Tuner::preparation(std::uint64_t number) const {
    const Ticket* ticket = state_.tickets.unanswered(number);
    if (ticket == nullptr) return {};
    return searcher_->prepare(number, state_.observations.first(ticket->seen));
}

std::uint64_t Tuner::digest() const {
    study::Bytes bytes;
    study::Encoder encoder(bytes);
    snapshot(encoder);
    return base::Digest().add(bytes).value();
}

// ---- invariants

void Tuner::check_invariants() const {
    state_.trials.check_invariants();
    state_.placement.check_invariants();
    state_.blame.check_invariants(state_.trials);
    state_.retention.check_invariants(state_.trials, spec_);
    state_.pace.check_invariants();
    state_.tickets.check_invariants();
    state_.requests.check_invariants();
    state_.last_results.check_invariants(state_.trials, spec_);
    admission_->check_invariants();
    scheduler_->check_invariants();
    state_.front.check_invariants(state_.trials, spec_.objective);
    std::uint64_t held = 0;
    for (std::uint32_t i = 0; i < state_.trials.size(); ++i) {
        const TrialId id{i};
        const Trial& t = state_.trials[id];
        const bool holds = t.attempt.live;
        for (const Rank rank : t.attempt.ranks) {
            // Ranks kept for views may be of an earlier incarnation, which may have had more ranks.
            if (!state_.placement.knows(rank)) continue;
            const WorkerState& worker = state_.placement.worker(rank);
            const bool held_by_this = worker.alive && worker.trial == id;
            require(holds ? held_by_this || !worker.alive : !held_by_this,
                    named(id) + " is " + std::string(name(t.phase)) + " but rank " + std::to_string(rank.value()) +
                        " disagrees");
            if (held_by_this && state_.placement.serves(worker)) ++held;
        }
        require(!holds || !state_.ended, named(id) + " has ranks although the study has ended");
        if (t.phase == TrialPhase::running)
            require(t.attempt.ranks.size() == t.wanted_ranks, named(id) + " has another number of ranks than it wants");
        require(t.reported || std::isnan(t.best), named(id) + " has a best value but no report");
        require(
            t.verdict.verb != Verb::go_on || t.phase != TrialPhase::paused || !t.reported || admission_->at_barrier(id),
            named(id) + " is paused although it was told to go on");
        if (is_final(t.phase)) require(t.closed_by != Reason::none, named(id) + " is closed without a reason");
    }
    const auto best = spec_.searcher.repeats > 1 ? best_by_mean(state_.trials, spec_) : best_of_all();
    require(best == state_.best, "the best trial is not the best");
    require(state_.trials.size() <= spec_.num_trials, "more trials than study.num_trials");
    require(held + state_.placement.free() == state_.placement.alive(),
            "a rank is held by a trial that does not list it");
    require(!state_.pace.deadline() || slowest_ == slowest_running(),
            "the slowest of the trials that run is another one");
    if (!state_.ended) return;
    require(state_.trials.live_attempts() == 0, "the study ended while trials have ranks");
    if (is_over(state_))
        require(state_.in(TrialPhase::waiting) + state_.in(TrialPhase::paused) == 0,
                "the study ended for good with trials that are not final");
}

} // namespace ranktune::tuner
