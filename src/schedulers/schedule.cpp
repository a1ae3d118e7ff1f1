// SPDX-License-Identifier: Apache-2.0
// Hyper-parameters that change at given iterations: the schedule of a member of a population, or any other.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ranktune/schedulers/scheduler.hpp"
#include "ranktune/space/search_space.hpp"
#include "ranktune/study/algorithm.hpp"
#include "ranktune/study/schema.hpp"
#include "ranktune/study/spec.hpp"
#include "schedulers/checks.hpp"
#include "schedulers/saved_state.hpp"

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

/// Every trial is trained to the ceiling. At the first report at or after a change of the schedule it pauses, which
/// saves its state, and goes on at once from that state with the values of the schedule: a takeover of its own
/// checkpoint. So the record of a configuration, and what a crash leaves, are those of an exploit.
///
///   lr = [[10, 0.05]]:  decide(#0 at 10) -> pause (scheduled)   next() -> promote #0, from its checkpoint of 10
///
/// If the attempt is lost before it has saved that state, the trial trains up to the change again, as it was. If it
/// has paused and its program saved nothing at that iteration, it goes on from its newest checkpoint.
///
/// Cost of a report: O(1); of a change: O(log trials).
class Schedule final : public Scheduler {
  public:
    Schedule(space::SearchSpace space, std::vector<study::Scheduled> schedule, Iteration ceiling);

    [[nodiscard]] std::string_view name() const override { return "schedule"; }
    [[nodiscard]] bool exploits() const override { return true; }
    [[nodiscard]] bool pauses() const override { return true; }
    [[nodiscard]] study::Verdict decide(const Report& report, bool contended) const override;
    [[nodiscard]] Work next(const Pool& pool) const override;
    [[nodiscard]] std::optional<Exploit> exploit_at(const Promotion& promotion) const override;
    [[nodiscard]] Iteration next_decision_point(TrialId trial, Iteration current) const override;
    void study_changed(const study::StudySpec& spec) override { space_ = spec.space; }
    void apply(const study::Record& record) override;
    void snapshot(study::Encoder& out) const override;
    void restore(study::Decoder& in) override;
    void check_invariants() const override;

  private:
    /// saves: it has paused, and goes on from the state that its attempt saves before it ends.
    enum class Phase : std::uint8_t { runs, saves, paused, over };
    struct Member {
        space::Configuration first;        ///< with which it was made
        std::vector<std::uint32_t> before; ///< `passed` at each of its takeovers, the oldest first
        std::vector<SavedState> saved;     ///< committed and not released, the oldest first
        Iteration iteration = 0;           ///< of its newest report
        std::uint32_t passed = 0;          ///< changes of the schedule that it has taken over
        Phase phase = Phase::runs;
        bool obeyed = false; ///< its newest attempt ended because it was told to pause
        [[nodiscard]] std::uint32_t generation() const { return static_cast<std::uint32_t>(before.size()); }
        static void fields(auto&& each, auto& r) {
            each(r.first, r.before, r.saved, r.iteration, r.passed, r.phase, r.obeyed);
        }
    };

    [[nodiscard]] Member& member(TrialId trial) { return slot_of(members_, trial); }
    [[nodiscard]] const Member& member(TrialId trial) const { return slot_of(members_, trial); }
    /// How many changes of the schedule come up to this iteration.
    [[nodiscard]] std::uint32_t passed_by(Iteration iteration) const {
        return static_cast<std::uint32_t>(std::ranges::upper_bound(points_, iteration) - points_.begin());
    }
    [[nodiscard]] bool must_change(const Member& at, Iteration iteration) const {
        return at.passed < points_.size() && iteration >= points_[at.passed];
    }
    /// The state that the trial changes with; null: it has not saved that state.
    [[nodiscard]] const SavedState* state_to_change(const Member& at) const;
    [[nodiscard]] space::Configuration configuration_at(const Member& at, Iteration iteration) const;
    void on(const study::TrialCreated& record);
    void on(const study::TrialStarted& record) { member(record.trial).obeyed = false; }
    void on(const study::Reported& record);
    void on(const study::CheckpointCommitted& record);
    void on(const study::CheckpointReleased& record);
    void on(const study::Exploited& record);
    void on(const study::ExploitUndone& record);
    void on(const study::AttemptEnded& record);
    void on(const study::IncarnationBegan& record);
    void on(const study::TrialPromoted& record);
    void on(const study::TrialClosed& record) { set_phase(record.trial, Phase::over); }
    void on(const study::TrialReopened& record);
    void attempt_over(TrialId trial, bool obeyed);
    void set_phase(TrialId trial, Phase phase);

    space::SearchSpace space_;
    std::vector<study::Scheduled> schedule_;
    Iteration ceiling_;
    std::vector<Iteration> points_; ///< at which something changes, ascending
    std::vector<Member> members_;   ///< position is the TrialId
    std::set<TrialId> paused_;      ///< derived
};

} // namespace

Schedule::Schedule(space::SearchSpace space, std::vector<study::Scheduled> schedule, Iteration ceiling)
    : space_(std::move(space)), schedule_(std::move(schedule)), ceiling_(ceiling) {
    for (const study::Scheduled& each : schedule_)
        for (const auto& change : each.changes) points_.push_back(change.after);
    std::ranges::sort(points_);
    points_.erase(std::unique(points_.begin(), points_.end()), points_.end());
}

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
    std::visit(
        [this](const auto& r) {
            if constexpr (requires { on(r); }) on(r);
        },
        record);
}

void Schedule::on(const study::TrialCreated& record) {
    require_record(record.trial.value() == members_.size(), record.trial, "is created out of order");
    members_.emplace_back().first = record.configuration;
    members_.back().first.share_names(members_.front().first);
}

void Schedule::on(const study::Reported& record) {
    Member& at = member(record.trial);
    at.iteration = std::max(at.iteration, record.iteration);
    if (record.verdict.reason == Reason::scheduled) set_phase(record.trial, Phase::saves);
}

void Schedule::on(const study::CheckpointCommitted& record) {
    const study::CheckpointRef& checkpoint = record.checkpoint;
    member(record.trial).saved.push_back({checkpoint.iteration, checkpoint.generation, checkpoint.path});
}

void Schedule::on(const study::CheckpointReleased& record) {
    std::erase_if(member(record.trial).saved, [&](const SavedState& each) { return each.path == record.path; });
}

void Schedule::on(const study::Exploited& record) {
    Member& at = member(record.trial);
    at.before.push_back(at.passed);
    at.passed = std::max(at.passed, passed_by(record.iteration));
    require_record(at.generation() == record.generation, record.trial, "skips a generation");
}

void Schedule::on(const study::ExploitUndone& record) {
    Member& at = member(record.trial);
    require_record(at.generation() > record.generation, record.trial, "undoes a change that is none");
    at.passed = at.before[record.generation];
    at.before.resize(record.generation);
}

void Schedule::on(const study::AttemptEnded& record) {
    attempt_over(record.trial, record.outcome == study::AttemptOutcome::paused);
}

void Schedule::on(const study::IncarnationBegan&) {
    for (std::uint32_t i = 0; i < members_.size(); ++i) attempt_over(TrialId(i), members_[i].obeyed);
}

void Schedule::on(const study::TrialPromoted& record) {
    require_record(member(record.trial).phase == Phase::paused, record.trial,
                   "goes on although the schedule has not paused it");
    set_phase(record.trial, Phase::runs);
}

void Schedule::on(const study::TrialReopened& record) {
    set_phase(record.trial, Phase::runs);
    if (record.from_scratch) member(record.trial).saved.clear();
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
