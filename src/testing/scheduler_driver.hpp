// SPDX-License-Identifier: Apache-2.0
#pragma once
// Drives one scheduler the way the tuner does: asks, writes the answer into a record, applies it. For comparisons with
// Ray, `result` is its on_trial_result, `complete` its on_trial_complete.

#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "ranktune/study/codec.hpp"
#include "ranktune/study/record.hpp"
#include "ranktune/study/spec.hpp"
#include "schedulers/built_in.hpp"

namespace ranktune::testing {

using base::TrialId;
using schedulers::Pool;
using schedulers::Promotion;
using schedulers::Scheduler;
using schedulers::Work;
using study::Reason;
using study::Verb;
using study::Verdict;

class SchedulerDriver {
  public:
    /// Checks the invariants after every record when `checked`.
    explicit SchedulerDriver(study::StudySpec spec, bool checked = true)
        : spec_(std::move(spec)), scheduler_(schedulers::make_scheduler(spec_)), checked_(checked) {
        apply(study::MetricDefined{study::MetricId(0), "noise"});
        apply(study::MetricDefined{study::MetricId(1), spec_.objective.metric});
    }

    /// Creates the next trial.
    TrialId add() {
        const Work work = scheduler_->next({.can_create = true, .active = true, .trial = TrialId(trials_)});
        const auto* create = std::get_if<schedulers::Create>(&work); // a promotion may come first
        return add_in(create == nullptr ? 0 : create->bracket);
    }
    TrialId add_in(std::uint32_t bracket) {
        const TrialId trial(trials_++);
        apply(study::TrialCreated{trial, {}, 1, bracket, 0, {}, {}});
        return trial;
    }

    [[nodiscard]] Verdict ask(TrialId trial, base::Iteration iteration, double value, bool contended = false) const {
        return scheduler_->decide({trial, iteration, study::score(value, spec_.objective.mode), std::isnan(value)},
                                  contended);
    }
    void tell(TrialId trial, base::Iteration iteration, double value, const Verdict& verdict) {
        apply(study::Reported{trial,
                              base::AttemptId(1),
                              {},
                              iteration,
                              0.0,
                              {{study::MetricId(0), 0.5}, {study::MetricId(1), value}},
                              verdict});
    }
    /// A report and its verdict; a paused trial releases its ranks at once.
    Verdict report(TrialId trial, base::Iteration iteration, double value, bool contended = false) {
        const Verdict verdict = ask(trial, iteration, value, contended);
        tell(trial, iteration, value, verdict);
        if (verdict.verb == Verb::pause) ended(trial, study::AttemptOutcome::paused);
        return verdict;
    }
    Verb result(TrialId trial, base::Iteration iteration, double value) { return report(trial, iteration, value).verb; }
    /// The trainable ends on its own with this last report.
    void complete(TrialId trial, base::Iteration iteration, double value) {
        tell(trial, iteration, value, {Verb::stop, Reason::trainable_done});
        ended(trial, study::AttemptOutcome::finished);
        close(trial, study::TrialPhase::finished, Reason::trainable_done);
    }

    void started(TrialId trial) { apply(study::TrialStarted{trial, base::AttemptId(1), {}, {base::Rank(1)}, {}}); }
    void ended(TrialId trial, study::AttemptOutcome outcome, bool retry = false) {
        apply(study::AttemptEnded{trial, base::AttemptId(1), {}, outcome, retry, {}});
    }
    void close(TrialId trial, study::TrialPhase phase, Reason reason) {
        apply(study::TrialClosed{trial, {}, phase, reason, 0, 0, {}});
    }
    void fail(TrialId trial) {
        ended(trial, study::AttemptOutcome::failed);
        close(trial, study::TrialPhase::failed, Reason::exception);
    }
    void promote(const Promotion& promotion) {
        apply(study::TrialPromoted{promotion.trial, {}, promotion.from, promotion.target, promotion.reason});
    }
    [[nodiscard]] Work work(const Pool& pool) const { return scheduler_->next(pool); }
    /// The next promotion, if there is one.
    [[nodiscard]] std::optional<Promotion> next(const Pool& pool = {}) const {
        const Work next = work(pool);
        const auto* promotion = std::get_if<Promotion>(&next);
        return promotion == nullptr ? std::nullopt : std::optional(*promotion);
    }

    void apply(const study::Record& record) {
        scheduler_->apply(record);
        if (checked_) scheduler_->check_invariants();
    }

    [[nodiscard]] study::Bytes snapshot() const {
        study::Bytes bytes;
        study::Encoder out(bytes);
        scheduler_->snapshot(out);
        return bytes;
    }
    /// A new scheduler of the same study, with the state in `bytes`.
    [[nodiscard]] std::unique_ptr<Scheduler> restored(const study::Bytes& bytes) const {
        auto other = schedulers::make_scheduler(spec_);
        study::Decoder in(bytes);
        other->restore(in);
        if (!in.empty()) throw base::FormatError("the snapshot is longer than what was read");
        return other;
    }
    void replace_by_restored() { scheduler_ = restored(snapshot()); }

    [[nodiscard]] const Scheduler& scheduler() const { return *scheduler_; }
    [[nodiscard]] const study::StudySpec& spec() const { return spec_; }
    [[nodiscard]] std::uint32_t trials() const { return trials_; }

  private:
    study::StudySpec spec_;
    std::unique_ptr<Scheduler> scheduler_;
    std::uint32_t trials_ = 0;
    bool checked_;
};

} // namespace ranktune::testing
