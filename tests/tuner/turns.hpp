// SPDX-License-Identifier: Apache-2.0
#pragma once
// A deterministic study without a core: trials, slots, and a log of what takes effect, in its order.

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "admission_snapshot.hpp"
#include "tuner/admission/by_turn.hpp"
#include "tuner/values.hpp"

namespace ranktune::tuner::testing {

/// Of which reports the state is saved before they are judged.
class SavesFirst final : public schedulers::Scheduler {
  public:
    std::set<std::pair<TrialId, Iteration>> reports;

    [[nodiscard]] bool saves_first(TrialId trial, Iteration iteration) const override {
        return reports.contains({trial, iteration});
    }
    [[nodiscard]] std::string_view name() const override { return "test"; }
    [[nodiscard]] study::Verdict decide(const schedulers::Report&, bool) const override { return {}; }
    [[nodiscard]] schedulers::Work next(const schedulers::Pool&) const override { return schedulers::NothingLeft{}; }
    [[nodiscard]] Iteration next_decision_point(TrialId, Iteration current) const override { return current + 1; }
    void apply(const study::Record&) override {}
    void snapshot(study::Encoder&) const override {}
    void restore(study::Decoder&) override {}
    [[nodiscard]] bool pauses() const override { return false; }
};

/// Changes trials as the core does before it lets the strategy apply a record. What may take effect does, at once.
class Turns {
  public:
    /// For trials 0, 1, 2, ...: how many reports each makes before it is told to stop. Trials are created and started
    /// as soon as there is room.
    Turns(std::uint32_t slots, std::vector<Iteration> lengths) : lengths_(std::move(lengths)) {
        spec_.max_concurrent = slots;
        turns_ = std::make_unique<ByTurn>(spec_, *trials_, scheduler_);
        settle();
    }

    [[nodiscard]] const ByTurn& turns() const { return *turns_; }
    [[nodiscard]] Trials& trials() { return *trials_; }
    [[nodiscard]] Trial& trial(std::uint32_t id) { return trials_->at(TrialId{id}); }
    /// "0@1 1@1 #0 failed": report 1 of trial 0, report 1 of trial 1, the end of trial 0.
    [[nodiscard]] const std::string& log() const { return log_; }
    /// What has been logged since the last call.
    [[nodiscard]] std::string news() { return log_.substr(std::exchange(told_, log_.size())); }

    /// Trial `id` is told to pause after this report, instead of going on.
    void pause_at(std::uint32_t id, Iteration iteration) { pauses_[id] = iteration; }
    /// This report of trial `id`, its last before it waits, is judged when the state is saved.
    void save_first(std::uint32_t id, Iteration iteration) {
        scheduler_.reports.insert({TrialId{id}, iteration});
        trial(id).decision_point = iteration;
    }
    /// The group of trial `id` saves its state.
    void save(std::uint32_t id, Iteration iteration) {
        CheckpointRef checkpoint{.iteration = iteration, .path = "s"};
        trial(id).checkpoints.push_back(checkpoint);
        apply(study::CheckpointCommitted{TrialId{id}, AttemptId{1}, {}, checkpoint});
    }
    void report(std::uint32_t id, Iteration iteration) {
        const TrialId trial{id};
        const Standing standing = turns_->standing(trial, iteration);
        REQUIRE((standing == Standing::next || standing == Standing::early));
        if (standing == Standing::next)
            admit({trial, AttemptId{1}, iteration, 0.0, {}});
        else
            turns_->apply(study::ReportHeld{trial, AttemptId{1}, {}, iteration, 0.0, {}});
        settle();
    }
    /// An attempt ends; its ranks are back.
    void over(std::uint32_t id, AttemptOutcome outcome, bool retry = false, const Failure& failure = {}) {
        const bool ran = trial(id).phase == TrialPhase::running;
        trials_->end_attempt(TrialId{id});
        if (ran) trials_->set_phase(TrialId{id}, TrialPhase::waiting);
        if (ran && !retry && ends_trial(outcome)) turns_->end({TrialId{id}, outcome, failure});
        turns_->apply(study::AttemptEnded{TrialId{id}, AttemptId{1}, {}, outcome, retry, failure});
        settle();
    }
    void start(std::uint32_t id) {
        trials_->begin_attempt({TrialId{id}, AttemptId{1}, {}, {Rank{id + 1}}, {}}, 0);
        turns_->apply(study::TrialStarted{TrialId{id}, AttemptId{1}, {}, {}, Fresh{}});
        check();
    }
    /// Reopens a failed trial.
    void reopen(std::uint32_t id) {
        trials_->set_phase(TrialId{id}, TrialPhase::waiting);
        apply(study::TrialReopened{TrialId{id}, {}, false});
    }
    /// A record that changes no trial.
    void apply(const study::Record& record) {
        turns_->apply(record);
        settle();
    }
    /// The head dies: running trials wait again.
    void begin_again() {
        for (std::uint32_t i = 0; i < trials_->size(); ++i) {
            if (trial(i).phase == TrialPhase::running) trials_->set_phase(TrialId{i}, TrialPhase::waiting);
            if (trial(i).attempt.live) trials_->end_attempt(TrialId{i});
        }
        apply(study::IncarnationBegan{});
    }

    [[nodiscard]] std::vector<std::uint32_t> line(std::size_t most = 100) const {
        std::vector<std::uint32_t> seen;
        turns_->visit_line([&](TrialId id) {
            seen.push_back(id.value());
            return seen.size() < most;
        });
        return seen;
    }

    [[nodiscard]] study::Bytes snapshot() const { return testing::snapshot_of(*trials_, *turns_); }
    /// Replaces everything by what a snapshot keeps.
    void replace_by_restored() {
        const study::Bytes bytes = snapshot();
        auto trials = std::make_unique<Trials>();
        auto turns = std::make_unique<ByTurn>(spec_, *trials, scheduler_);
        testing::restore_from(bytes, *trials, *turns);
        turns_ = std::move(turns);
        trials_ = std::move(trials);
        check();
        REQUIRE(snapshot() == bytes);
    }
    void check() const { turns_->check_invariants(); }

  private:
    void settle() {
        check();
        for (;;) {
            if (turns_->room() == Admission::Room::one && trials_->size() < lengths_.size()) {
                create();
            } else if (const auto fact = turns_->next()) {
                std::visit([this](const auto& one) { admit(one); }, *fact);
            } else {
                return;
            }
            check();
        }
    }
    void create() {
        Trial t = in_phase(TrialPhase::waiting);
        t.decision_point = lengths_[trials_->size()];
        trials_->add(std::move(t));
        const TrialId id{static_cast<std::uint32_t>(trials_->size() - 1)};
        turns_->apply(study::TrialCreated{id, {}, 1, 0, 0, {}, {}});
        start(id.value());
    }
    void admit(const ReportFact& fact) {
        Trial& t = trials_->at(fact.trial);
        log_ += (log_.size() > told_ ? " " : "") + std::to_string(fact.trial.value()) + "@" +
                std::to_string(fact.iteration);
        t.iteration = fact.iteration;
        const auto pause = pauses_.find(fact.trial.value());
        const bool pauses = pause != pauses_.end() && pause->second == fact.iteration;
        const bool stops = fact.iteration == lengths_[fact.trial.value()];
        if (pauses) leave(fact.trial, TrialPhase::paused);
        turns_->apply(study::Reported{fact.trial,
                                      fact.attempt,
                                      {},
                                      fact.iteration,
                                      0.0,
                                      {},
                                      {pauses  ? Verb::pause
                                       : stops ? Verb::stop
                                               : Verb::go_on}});
        if (!pauses && stops) close(fact.trial, TrialPhase::stopped);
    }
    void admit(const EndFact& fact) {
        log_ += (log_.size() > told_ ? " #" : "#") + std::to_string(fact.trial.value()) + " " +
                std::string(name(fact.outcome));
        close(fact.trial, fact.outcome == AttemptOutcome::finished ? TrialPhase::finished : TrialPhase::failed);
    }
    void close(TrialId id, TrialPhase phase) {
        leave(id, phase);
        turns_->apply(study::TrialClosed{id, {}, phase, Reason::none, 0, 0, {}});
    }
    void leave(TrialId id, TrialPhase phase) { trials_->set_phase(id, phase); }

    study::StudySpec spec_;
    SavesFirst scheduler_;
    std::vector<Iteration> lengths_;
    std::unique_ptr<Trials> trials_ = std::make_unique<Trials>();
    std::unique_ptr<ByTurn> turns_;
    std::map<std::uint32_t, Iteration> pauses_;
    std::string log_;
    std::size_t told_ = 0;
};

} // namespace ranktune::tuner::testing
