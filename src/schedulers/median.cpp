// SPDX-License-Identifier: Apache-2.0
// Median stopping (Golovin et al., "Google Vizier", KDD 2017, section 3.2.2), as in Ray Tune.

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <limits>
#include <variant>
#include <vector>

#include "ranktune/schedulers/objective_reader.hpp"
#include "ranktune/schedulers/scheduler.hpp"
#include "ranktune/study/spec.hpp"
#include "schedulers/checks.hpp"
#include "schedulers/median_set.hpp"
#include "schedulers/rungs/heap.hpp"
#include "schedulers/rungs/rung_options.hpp"

namespace ranktune::schedulers {
namespace {

using study::Reason;
using study::Verb;

constexpr std::uint8_t median_version = 1;
constexpr double worst = -std::numeric_limits<double>::infinity();

constexpr std::uint8_t median_paused = 1;
constexpr std::uint8_t median_released = 2;
constexpr std::uint8_t median_closed = 4;

/// At iteration t >= grace a trial stops iff its best value so far is strictly worse than the median, over all other
/// trials that have reached t (running, finished, stopped or failed), of the mean of their values over [grace, t], and
/// there are at least min_samples of these. A non-finite value makes a running mean worst from then on.
///
/// For skipped iterations the mean counts as unchanged; iterations that are repeated after a loss are neither counted
/// nor judged again. With hard_stop = false the trial pauses instead; when no new trial can be created, `next` resumes
/// paused trials, lowest id first, and what they report then is neither judged nor counted.
///
///   grace 0, min_samples 1; another trial reported 0, 100, ... 500:   decide(t = 5: 240) -> stop: 250 is better
///
/// Cost per report O(log trials); memory 40 bytes per trial and 8 per counted report (the mean at every iteration is
/// kept, because any later trial is compared with it).
class MedianStopping final : public Scheduler {
  public:
    struct Options {
        double grace = 1.0; ///< >= 0; compared with iterations
        std::uint32_t min_samples = 3;
        bool hard_stop = true;
        base::Iteration ceiling = 1;
    };
    MedianStopping(const Options& options, const study::Objective& objective);

    [[nodiscard]] std::string_view name() const override { return "median"; }
    [[nodiscard]] study::Verdict decide(const Report& report, bool contended) const override;
    [[nodiscard]] Work next(const Pool& pool) const override;
    [[nodiscard]] base::Iteration next_decision_point(base::TrialId trial, base::Iteration current) const override;
    void apply(const study::Record& record) override;
    void snapshot(study::Encoder& out) const override;
    void restore(study::Decoder& in) override;
    void check_invariants() const override;
    [[nodiscard]] bool pauses() const override { return !options_.hard_stop; }

  private:
    struct Slot {
        double best = worst;       ///< score; -infinity before the first finite one
        double sum = 0.0;          ///< of the scores counted
        std::uint64_t count = 0;   ///< reports at or after the grace period
        base::Iteration next = 0;  ///< one more than the last iteration reported
        bool paused : 1 = false;   ///< by this rule
        bool released : 1 = false; ///< was paused once; now runs to the end unjudged
        bool closed : 1 = false;
    };
    struct LowerFirst {
        bool operator()(base::TrialId a, base::TrialId b) const { return a < b; }
    };

    [[nodiscard]] const Slot& slot(base::TrialId trial) const { return slot_of(slots_, trial); }
    [[nodiscard]] Slot& slot(base::TrialId trial) { return slot_of(slots_, trial); }
    [[nodiscard]] static double mean(const Slot& slot);
    [[nodiscard]] double value(double score) const;
    void on(const study::MetricDefined& record) { objective_.apply(record); }
    void on(const study::TrialCreated& record);
    void on(const study::Reported& record);
    void on(const study::TrialPromoted& record);
    void on(const study::TrialClosed& record);
    void on(const study::TrialReopened& record) { slot(record.trial).closed = false; }
    void count(Slot& slot, base::Iteration iteration, double score);
    void refresh();

    Options options_;
    study::Mode mode_;
    ObjectiveReader objective_;
    base::Iteration first_;                  ///< the first whole iteration that is not before the grace period
    std::vector<MedianSet> levels_;          ///< position t - first_: running means at t of all trials that reached it
    std::vector<Slot> slots_;                ///< position is the TrialId
    Heap<base::TrialId, LowerFirst> paused_; ///< the top is paused; others may have left
};

} // namespace

MedianStopping::MedianStopping(const Options& options, const study::Objective& objective)
    : options_(options),
      mode_(objective.mode),
      objective_(objective),
      first_(static_cast<base::Iteration>(std::ceil(options.grace))) {
    assert(options.grace >= 0.0);
}

/// A sum that overflowed is worst, like a non-finite value.
double MedianStopping::mean(const Slot& at) {
    const double mean = at.sum / static_cast<double>(at.count);
    if (!std::isfinite(mean)) return worst;
    return mean;
}

/// Back from a score to the metric's own sign.
double MedianStopping::value(double score) const { return mode_ == study::Mode::max ? score : -score; }

study::Verdict MedianStopping::decide(const Report& report, bool) const {
    const Slot& at = slot(report.trial);
    if (report.iteration >= options_.ceiling) {
        return {Verb::stop, Reason::max_iterations, static_cast<double>(options_.ceiling)};
    }
    const bool repeated = report.iteration < at.next;
    const bool judged_before = repeated && report.iteration + 1 < at.next;
    if (at.released || report.iteration < first_ || judged_before) return {Verb::go_on, Reason::below_rung};

    const std::size_t level = report.iteration - first_;
    const bool counted = repeated && at.count > 0; // its own mean is in the level: leave it out
    const std::size_t all = level < levels_.size() ? levels_[level].size() : 0;
    const std::size_t others = all - (counted ? 1 : 0);
    if (others == 0 || others < options_.min_samples) return {Verb::go_on, Reason::first_arrival};
    const double median = counted ? levels_[level].median_without(mean(at)) : levels_[level].median();
    const double best = std::max(at.best, report.score.rank());
    if (!(best < median)) return {Verb::go_on, Reason::none};
    return {options_.hard_stop ? Verb::stop : Verb::pause, Reason::below_median, value(best), value(median)};
}

Work MedianStopping::next(const Pool& pool) const {
    if (pool.can_create) return Create{};
    if (paused_.empty()) return NothingLeft{};
    const base::TrialId trial = paused_.top();
    return Promotion{trial, slot(trial).next - 1, options_.ceiling, Reason::promoted};
}

base::Iteration MedianStopping::next_decision_point(base::TrialId trial, base::Iteration current) const {
    if (slot(trial).released) return std::max(options_.ceiling, current + 1);
    return std::max(current + 1, std::min(first_, options_.ceiling));
}

void MedianStopping::apply(const study::Record& record) {
    std::visit(
        [this](const auto& r) {
            if constexpr (requires { on(r); }) on(r);
        },
        record);
}

void MedianStopping::on(const study::TrialCreated& record) {
    require_record(record.trial.value() == slots_.size(), record.trial, "is created out of order");
    slots_.emplace_back();
}

void MedianStopping::on(const study::TrialClosed& record) {
    Slot& at = slot(record.trial);
    require_record(!at.closed, record.trial, "is closed twice");
    at.closed = true;
    at.paused = false;
    refresh();
}

void MedianStopping::on(const study::Reported& record) {
    Slot& at = slot(record.trial);
    if (at.released) return;
    count(at, record.iteration, objective_.score(objective_.value(record)));
    if (record.verdict.verb == Verb::pause && record.verdict.reason == Reason::below_median) {
        require_record(at.count > 0, record.trial, "is paused by the median rule before the grace period is over");
        at.paused = true;
        paused_.push(record.trial);
    }
}

void MedianStopping::count(Slot& at, base::Iteration iteration, double score) {
    at.best = std::max(at.best, score);
    if (iteration < at.next) return; // repeated after a loss
    // Beyond the ceiling nothing is ever compared.
    const base::Iteration end = std::min(iteration, options_.ceiling) + 1;
    if (end > first_ && levels_.size() < end - first_) levels_.resize(end - first_);
    if (at.count > 0) {
        for (base::Iteration t = at.next; t + 1 < end; ++t) levels_[t - first_].insert(mean(at));
    }
    at.next = iteration + 1;
    if (iteration < first_) return;
    at.sum += score;
    ++at.count;
    if (iteration <= options_.ceiling) levels_[iteration - first_].insert(mean(at));
}

void MedianStopping::on(const study::TrialPromoted& record) {
    Slot& at = slot(record.trial);
    require_record(at.paused, record.trial, "is resumed although the median rule has not paused it");
    at.paused = false;
    at.released = true;
    refresh();
}

void MedianStopping::refresh() {
    while (!paused_.empty() && !slot(paused_.top()).paused) paused_.pop();
}

void MedianStopping::snapshot(study::Encoder& out) const {
    out.u8(median_version);
    objective_.snapshot(out);
    out.varint(first_);
    out.varint(slots_.size());
    for (const Slot& at : slots_) {
        out.u8(static_cast<std::uint8_t>((at.paused ? median_paused : 0) | (at.released ? median_released : 0) |
                                         (at.closed ? median_closed : 0)));
        out.varint(at.next);
        out.varint(at.count);
        out.f64(at.best);
        out.f64(at.sum);
    }
    out.varint(levels_.size());
    for (const MedianSet& level : levels_) level.snapshot(out);
}

void MedianStopping::restore(study::Decoder& in) {
    require_format(in.u8() == median_version, "median", "has another version");
    objective_.restore(in);
    require_format(in.varint() == first_, "median", "has another grace period");
    slots_.assign(in.count(), Slot{});
    paused_.clear();
    for (std::uint32_t i = 0; i < slots_.size(); ++i) {
        Slot& at = slots_[i];
        const std::uint8_t bits = in.u8();
        at.paused = (bits & median_paused) != 0;
        at.released = (bits & median_released) != 0;
        at.closed = (bits & median_closed) != 0;
        at.next = in.varint();
        at.count = in.varint();
        at.best = in.f64();
        at.sum = in.f64();
        if (at.paused) paused_.push(base::TrialId(i));
    }
    levels_.assign(in.count(), MedianSet{});
    for (MedianSet& level : levels_) level.restore(in);
    require_invariants(*this, "median");
}

void MedianStopping::check_invariants() const {
    std::vector<std::size_t> ends_at(levels_.size() + 1, 0); // trials by the number of levels that they may be in
    std::size_t paused = 0;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        const Slot& at = slots_[i];
        require(!at.paused || (!at.released && !at.closed), "median: trial ", i, " is paused twice or has ended");
        require(!at.paused || at.count > 0, "median: trial ", i, " is paused within the grace period");
        require(at.count == 0 || at.next > first_, "median: trial ", i, " has a mean within the grace period");
        require(at.count <= at.next, "median: trial ", i, " has more reports than iterations");
        require(!std::isnan(at.best), "median: trial ", i, " has no best value");
        if (at.paused) ++paused;
        if (at.count > 0) ++ends_at[std::min<std::size_t>(levels_.size(), at.next - first_)];
    }
    std::size_t reached = 0;
    for (std::size_t level = levels_.size(); level-- > 0;) {
        reached += ends_at[level + 1];
        require(levels_[level].valid(), "median: the means at iteration ", first_ + level, " are out of order");
        require(levels_[level].size() <= reached, "median: more means than trials at iteration ", first_ + level);
    }
    require(paused_.valid() && paused_.size() >= paused, "median: a paused trial would never go on");
    require(paused_.empty() || slots_[paused_.top().value()].paused, "median: a trial that runs would be resumed");
}

// ---- in study files

namespace {

std::vector<study::AlgorithmOption> median_options() {
    using Kind = study::OptionInfo::Kind;
    return {
        {.name = "grace",
         .kind = Kind::number,
         .standard = 1.0,
         .description = "Iterations before the first comparison; not above the ceiling.",
         .low = 0.0,
         .high = 1e15,
         .foreign_names = {{"Ray Tune", "grace_period"}, {"Optuna", "n_warmup_steps"}}},
        {.name = "min_samples",
         .kind = Kind::integer,
         .standard = 3,
         .description = "Other trials needed for a comparison.",
         .low = 1.0,
         .high = std::numeric_limits<std::int32_t>::max(),
         .foreign_names = {{"Ray Tune", "min_samples_required"},
                           {"Optuna", "n_min_trials"},
                           {"Optuna", "n_startup_trials"}}},
        {.name = "hard_stop",
         .kind = Kind::boolean,
         .standard = true,
         .description = "false: pause instead, and resume when nothing else is left (needs checkpoints)."},
    };
}

void check_median(const study::AlgorithmCheck& check) {
    if (check.reads_file) check_ceiling(check, "grace", "; it counts iterations");
}

std::unique_ptr<Scheduler> make_median(const study::StudySpec& spec) {
    const space::Configuration& options = spec.scheduler.options;
    return std::make_unique<MedianStopping>(
        MedianStopping::Options{.grace = options.at("grace").as_double(),
                                .min_samples = static_cast<std::uint32_t>(options.at("min_samples").as_int()),
                                .hard_stop = options.at("hard_stop").as_bool(),
                                .ceiling = spec.max_iterations},
        spec.objective);
}

study::SchedulerPlan plan_median(const study::StudySpec& spec) {
    const bool pauses = !spec.scheduler.options.at("hard_stop").as_bool();
    return {.words = "median stopping", .paused_checkpoints = pauses ? 2 * std::uint64_t{spec.num_trials} : 0};
}

} // namespace

study::SchedulerInfo describe_median() {
    study::SchedulerInfo info;
    info.name = "median";
    info.description = "a trial stops when its best value is worse than the median of the others' running means.";
    info.options = median_options();
    info.foreign_names = {"medianstopping", "median_stopping_rule"};
    info.check = check_median;
    info.make = make_median;
    info.needs_checkpoints = {
        .when = {{"hard_stop", false}},
        .afterwards = ", with hard_stop = true in [scheduler], which never pauses, and begin again with --fresh"};
    info.plan = plan_median;
    return info;
}

} // namespace ranktune::schedulers
