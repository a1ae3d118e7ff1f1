// SPDX-License-Identifier: Apache-2.0
#include "schedulers/schedule.hpp"

#include <memory>
#include <utility>
#include <variant>

#include "ranktune/base/error.hpp"
#include "ranktune/study/schema.hpp"
#include "ranktune/study/spec.hpp"
#include "schedulers/checks.hpp"

namespace ranktune::schedulers {

study::SchedulerInfo describe_schedule();

namespace {

using base::Iteration;
using base::TrialId;
using study::Reason;
using study::Verb;

constexpr std::uint8_t schedule_version = 2;

study::SchedulerPlan plan_schedule(const study::StudySpec& spec) {
    return {.words = "hyper-parameters on a schedule",
            .paused_checkpoints = spec.num_trials,
            .certainty = study::SchedulerPlan::Certainty::exact};
}

} // namespace

Schedule::Schedule(space::SearchSpace space, std::vector<study::Scheduled> schedule, Iteration ceiling)
    : space_(std::move(space)), schedule_(std::move(schedule)), ceiling_(ceiling) {
    for (const study::Scheduled& each : schedule_)
        for (const auto& change : each.changes) points_.push_back(change.after);
    std::ranges::sort(points_);
    points_.erase(std::unique(points_.begin(), points_.end()), points_.end());
}

Schedule::Member& Schedule::member(TrialId trial) { return slot_of(members_, trial); }
const Schedule::Member& Schedule::member(TrialId trial) const { return slot_of(members_, trial); }

// ---- decisions

study::Verdict Schedule::decide(const Report& report, bool) const {
    if (report.iteration >= ceiling_) return {Verb::stop, Reason::max_iterations, static_cast<double>(ceiling_)};
    const Member& at = member(report.trial);
    if (!must_change(at, report.iteration)) return {Verb::go_on, Reason::below_rung};
    return {Verb::pause, Reason::scheduled, static_cast<double>(report.iteration)};
}

Iteration Schedule::next_decision_point(TrialId trial, Iteration current) const {
    const Member& at = member(trial);
    const Iteration change = at.passed < points_.size() ? points_[at.passed] : ceiling_;
    return std::max(current + 1, std::min(change, ceiling_));
}

/// Trials go on before others begin.
Work Schedule::next(const Pool& pool) const {
    if (!paused_.empty()) {
        const TrialId trial = *paused_.begin();
        const Iteration from = member(trial).iteration;
        const std::uint32_t later = passed_by(from);
        return Promotion{trial, from, later < points_.size() ? std::min(points_[later], ceiling_) : ceiling_};
    }
    if (pool.can_create) return Create{};
    return NothingLeft{};
}

const SavedState* Schedule::state_to_change(const Member& at) const {
    const auto newest = std::find_if(at.saved.rbegin(), at.saved.rend(),
                                     [&](const SavedState& each) { return each.generation == at.generation(); });
    if (newest == at.saved.rend() || !must_change(at, at.iteration)) return nullptr;
    return at.obeyed || newest->iteration >= points_[at.passed] ? &*newest : nullptr;
}

std::optional<Exploit> Schedule::exploit_at(const Promotion& promotion) const {
    const Member& at = member(promotion.trial);
    const SavedState* state = state_to_change(at);
    if (state == nullptr) return {};
    return Exploit{promotion.trial, state->iteration, configuration_at(at, at.iteration)};
}

/// A hyper-parameter whose condition comes true gets the middle of its domain, unless the schedule has a value for it.
space::Configuration Schedule::configuration_at(const Member& at, Iteration iteration) const {
    const auto& parameters = space_.parameters();
    return space_.assemble([&](std::size_t i) -> space::Value {
        const auto scheduled = std::ranges::find(schedule_, parameters[i].name, &study::Scheduled::name);
        if (scheduled != schedule_.end()) {
            const auto& changes = scheduled->changes;
            const auto last = std::find_if(changes.rbegin(), changes.rend(),
                                           [&](const auto& change) { return change.after <= iteration; });
            if (last != changes.rend()) return last->value;
        }
        const space::Value* first = at.first.find(parameters[i].name);
        return first != nullptr ? *first : space::decode(parameters[i].domain, 0.5);
    });
}

// ---- state

void Schedule::set_phase(TrialId trial, Phase phase) {
    Member& at = member(trial);
    if (at.phase == Phase::paused) paused_.erase(trial);
    at.phase = phase;
    if (at.phase == Phase::paused) paused_.insert(trial);
}

void Schedule::apply(const study::Record& record) {
    if (const auto* report = std::get_if<study::Reported>(&record)) {
        Member& at = member(report->trial);
        at.iteration = std::max(at.iteration, report->iteration);
        if (report->verdict.reason == Reason::scheduled) set_phase(report->trial, Phase::saves);
    } else if (const auto* trial = std::get_if<study::TrialCreated>(&record)) {
        if (trial->trial.value() != members_.size())
            throw base::FormatError("trial " + std::to_string(trial->trial.value()) + " is created out of order");
        members_.emplace_back().first = trial->configuration;
        members_.back().first.share_names(members_.front().first);
    } else if (const auto* start = std::get_if<study::TrialStarted>(&record)) {
        member(start->trial).obeyed = false;
    } else if (const auto* saved = std::get_if<study::CheckpointCommitted>(&record)) {
        const study::CheckpointRef& checkpoint = saved->checkpoint;
        member(saved->trial).saved.push_back({checkpoint.iteration, checkpoint.generation, checkpoint.path});
    } else if (const auto* gone = std::get_if<study::CheckpointReleased>(&record)) {
        std::erase_if(member(gone->trial).saved, [&](const SavedState& each) { return each.path == gone->path; });
    } else if (const auto* change = std::get_if<study::Exploited>(&record)) {
        apply_to(*change);
    } else if (const auto* back = std::get_if<study::ExploitUndone>(&record)) {
        apply_to(*back);
    } else if (const auto* end = std::get_if<study::AttemptEnded>(&record)) {
        attempt_over(end->trial, end->outcome == study::AttemptOutcome::paused);
    } else if (std::holds_alternative<study::IncarnationBegan>(record)) {
        for (std::uint32_t i = 0; i < members_.size(); ++i) attempt_over(TrialId(i), members_[i].obeyed);
    } else if (const auto* promotion = std::get_if<study::TrialPromoted>(&record)) {
        if (member(promotion->trial).phase != Phase::paused)
            throw base::FormatError("trial " + std::to_string(promotion->trial.value()) +
                                    " goes on although the schedule has not paused it");
        set_phase(promotion->trial, Phase::runs);
    } else if (const auto* close = std::get_if<study::TrialClosed>(&record)) {
        set_phase(close->trial, Phase::over);
    } else if (const auto* again = std::get_if<study::TrialReopened>(&record)) {
        set_phase(again->trial, Phase::runs);
        if (again->from_scratch) member(again->trial).saved.clear();
    }
}

void Schedule::apply_to(const study::Exploited& record) {
    Member& at = member(record.trial);
    at.before.push_back(at.passed);
    at.passed = std::max(at.passed, passed_by(record.iteration));
    if (at.generation() != record.generation)
        throw base::FormatError("trial " + std::to_string(record.trial.value()) + " skips a generation");
}

void Schedule::apply_to(const study::ExploitUndone& record) {
    Member& at = member(record.trial);
    if (at.generation() <= record.generation)
        throw base::FormatError("trial " + std::to_string(record.trial.value()) + " undoes a change that is none");
    at.passed = at.before[record.generation];
    at.before.resize(record.generation);
}

void Schedule::attempt_over(TrialId trial, bool obeyed) {
    Member& at = member(trial);
    at.obeyed = obeyed;
    if (at.phase == Phase::saves) set_phase(trial, Phase::paused);
}

// ---- snapshots

void Schedule::snapshot(study::Encoder& out) const {
    out.u8(schedule_version);
    out.varint(points_.size());
    study::put(out, members_);
}

void Schedule::restore(study::Decoder& in) {
    require_format(in.u8() == schedule_version, "schedule", "has another version");
    require_format(in.varint() == points_.size(), "schedule", "has another number of changes");
    study::get(in, members_);
    paused_.clear();
    for (std::uint32_t i = 0; i < members_.size(); ++i) {
        Member& at = members_[i];
        require_format(at.phase <= Phase::over, "schedule", "has a phase that there is not");
        at.first.share_names(members_.front().first);
        if (at.phase == Phase::paused) paused_.insert(TrialId{i});
    }
    require_invariants(*this, "schedule");
}

void Schedule::check_invariants() const {
    for (std::size_t i = 0; i < members_.size(); ++i) {
        const Member& at = members_[i];
        require(at.passed <= points_.size(), "schedule: trial ", i, " has passed more changes than there are");
        require(at.before.empty() || at.before.back() <= at.passed, "schedule: trial ", i, " went back");
        require(at.passed == 0 || points_[at.passed - 1] <= at.iteration, "schedule: trial ", i, " changed too early");
        require((at.phase == Phase::paused) == paused_.contains(TrialId(static_cast<std::uint32_t>(i))),
                "schedule: trial ", i, " and the list of those that are paused disagree");
    }
}

// ---- description

study::SchedulerInfo describe_schedule() {
    study::SchedulerInfo info;
    info.name = "schedule";
    info.description =
        "every trial trains to the end, and hyper-parameters change at given iterations. `[scheduler.schedule]` says "
        "which, and when. `ranktune replay DIR --schedule TRIAL` writes such a study.";
    info.foreign_names = {"PopulationBasedTrainingReplay"};
    info.several_objectives = true;
    info.schedules = true;
    info.make = [](const study::StudySpec& spec) {
        return std::make_unique<Schedule>(spec.space, spec.scheduler.schedule, spec.max_iterations);
    };
    info.needs_checkpoints =
        study::CheckpointNeed{.instead = "let the trainable itself change the value as it trains, with \"fifo\""};
    info.plan = plan_schedule;
    return info;
}

} // namespace ranktune::schedulers
