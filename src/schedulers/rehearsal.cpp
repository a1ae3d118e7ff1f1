// SPDX-License-Identifier: Apache-2.0
#include "schedulers/rehearsal.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "ranktune/base/rng.hpp"
#include "ranktune/schedulers/objective_reader.hpp"
#include "ranktune/schedulers/scheduler.hpp"

namespace ranktune::schedulers {
namespace {

using base::Iteration;
using base::TrialId;
using study::Verb;

constexpr std::uint32_t most_trials = 1000;
/// Of the scores at a decision point, beside the differences between trials, which are uniform in [0, 1).
constexpr double noise = 0.3;
/// By how much the last trial is better than the first on average, if the searcher learns: as `auto` on jobs/digits.
constexpr double progress = 0.4;
constexpr double fastest = 0.7; ///< iteration times are uniform between this and 1.3

/// One study, of which only the decision points happen.
class Rehearsal {
  public:
    /// `rungs`: trials report there, whether or not they wait for an answer.
    Rehearsal(const study::StudySpec& spec, const std::vector<study::SchedulerPlan::Rung>& rungs, std::uint32_t groups,
              bool learns)
        : spec_(spec),
          rungs_(rungs),
          learns_(learns),
          scheduler_(spec.scheduler.algorithm->make(spec)),
          objective_(spec.objective),
          free_(groups) {
        for (const study::Goal& goal : spec.objective.goals()) define(goal.metric);
        for (const study::Constraint& limit : spec.objective.constraints) define(limit.metric);
    }

    /// Up to which iteration each trial was trained.
    std::vector<Iteration> run() {
        while (begin_one() || !under_way_.empty())
            if (free_ == 0 || !could_begin_) report();
        return trained_;
    }

  private:
    using Due = std::tuple<double, std::uint32_t, Iteration>; ///< time, trial, its next decision point

    void define(const std::string& metric) {
        if (std::ranges::find(metrics_, metric) != metrics_.end()) return;
        apply(study::MetricDefined{base::MetricId{static_cast<std::uint16_t>(metrics_.size())}, metric});
        metrics_.push_back(metric);
    }

    void apply(const study::Record& record) {
        scheduler_->apply(record);
        if (const auto* metric = std::get_if<study::MetricDefined>(&record)) objective_.apply(*metric);
    }

    bool begin_one() {
        could_begin_ = false;
        if (free_ == 0) return false;
        const auto created = static_cast<std::uint32_t>(trained_.size());
        if (waiting_.empty()) {
            const Work work = scheduler_->next({created < spec_.num_trials, !under_way_.empty(), TrialId{created}});
            if (const auto* create = std::get_if<Create>(&work); create != nullptr && created < spec_.num_trials) {
                apply(study::TrialCreated{TrialId{created}, {}, 1, create->bracket, create->target, {}, {}});
                trained_.push_back(0);
                waiting_.push_back(created);
            } else if (const auto* promotion = std::get_if<Promotion>(&work)) {
                apply(
                    study::TrialPromoted{promotion->trial, {}, promotion->from, promotion->target, promotion->reason});
                waiting_.push_back(promotion->trial.value());
            } else {
                return false;
            }
        }
        const std::uint32_t trial = waiting_.front();
        waiting_.pop_front();
        --free_;
        could_begin_ = true;
        apply(study::TrialStarted{TrialId{trial}, base::AttemptId{1}, {}, {base::Rank{1}}, {}});
        train(trial);
        return true;
    }

    void train(std::uint32_t trial) {
        const Iteration now = trained_[trial];
        Iteration next = std::min(scheduler_->next_decision_point(TrialId{trial}, now), spec_.max_iterations);
        for (const auto& rung : rungs_)
            if (rung.iteration > now) next = std::min(next, rung.iteration);
        base::RngStream random(spec_.seed, base::Purpose::fault, trial);
        const double pace = fastest + 2.0 * (1.0 - fastest) * random.uniform();
        under_way_.emplace(now_ + pace * static_cast<double>(next - now), trial, next);
    }

    [[nodiscard]] std::vector<study::MetricValue> metrics_of(std::uint32_t trial, Iteration iteration) const {
        std::vector<study::MetricValue> values;
        const auto value = [&](double worth) {
            values.push_back({base::MetricId{static_cast<std::uint16_t>(values.size())}, worth});
        };
        for (const study::Goal& goal : spec_.objective.goals()) {
            const auto number = static_cast<std::uint32_t>(values.size());
            base::RngStream quality(spec_.seed, base::Purpose::curve, trial, number);
            base::RngStream luck(spec_.seed, base::Purpose::curve, trial,
                                 static_cast<std::uint32_t>(iteration * 64) + number + 1);
            const double learned = learns_ ? progress * trial / spec_.num_trials : 0.0;
            const double worth = quality.uniform() + learned + noise * luck.uniform();
            value(goal.mode == study::Mode::max ? worth : -worth);
        }
        for (const study::Constraint& limit : spec_.objective.constraints)
            if (values.size() < metrics_.size()) value(limit.bound);
        return values;
    }

    void report() {
        const auto [time, trial, iteration] = under_way_.top();
        under_way_.pop();
        now_ = time;
        trained_[trial] = iteration;
        const TrialId id{trial};
        std::vector<study::MetricValue> metrics = metrics_of(trial, iteration);
        study::Verdict verdict{Verb::stop, study::Reason::max_iterations, static_cast<double>(iteration)};
        if (iteration < spec_.max_iterations) {
            const bool several = spec_.objective.several();
            const auto reading = objective_.read(metrics);
            const study::Score score =
                several ? objective_.score(reading) : study::Score(objective_.score(reading.value));
            verdict = scheduler_->decide({id, iteration, score}, !waiting_.empty());
        }
        apply(study::Reported{id, base::AttemptId{1}, {}, iteration, 0.0, std::move(metrics), verdict});
        if (verdict.verb == Verb::go_on) return train(trial);
        ++free_;
        const bool pauses = verdict.verb == Verb::pause;
        apply(study::AttemptEnded{id,
                                  base::AttemptId{1},
                                  {},
                                  pauses ? study::AttemptOutcome::paused : study::AttemptOutcome::stopped,
                                  false,
                                  {}});
        const bool finished = verdict.reason == study::Reason::max_iterations;
        if (!pauses)
            apply(study::TrialClosed{id,
                                     {},
                                     finished ? study::TrialPhase::finished : study::TrialPhase::stopped,
                                     verdict.reason,
                                     verdict.a,
                                     verdict.b,
                                     {}});
    }

    const study::StudySpec& spec_;
    const std::vector<study::SchedulerPlan::Rung>& rungs_;
    bool learns_;
    std::unique_ptr<Scheduler> scheduler_;
    ObjectiveReader objective_;
    std::uint32_t free_;
    bool could_begin_ = false;
    double now_ = 0.0;
    std::vector<std::string> metrics_;
    std::vector<Iteration> trained_; ///< by trial
    std::deque<std::uint32_t> waiting_;
    std::priority_queue<Due, std::vector<Due>, std::greater<>> under_way_;
};

std::uint64_t rounded(double value) { return static_cast<std::uint64_t>(std::llround(std::max(0.0, value))); }

} // namespace

void rehearse(study::SchedulerPlan& plan, const study::StudySpec& spec, std::uint32_t groups, bool learns) {
    const study::SchedulerInfo* algorithm = &*spec.scheduler.algorithm;
    if (plan.certainty != study::SchedulerPlan::Certainty::estimate || plan.rungs.empty()) return;
    study::StudySpec rehearsed = spec;
    rehearsed.deterministic = false;
    rehearsed.num_trials = std::min(spec.num_trials, most_trials);
    if (algorithm->make(rehearsed)->synchronous()) return;
    const std::uint32_t times = rehearsed.num_trials > 100 ? 10 : 20;
    const study::SchedulerPlan counted = rehearsed.num_trials == spec.num_trials ? plan : algorithm->plan(rehearsed);
    std::vector<double> totals;
    std::vector<double> reached(plan.rungs.size());
    for (std::uint32_t k = 0; k < times; ++k) {
        rehearsed.seed = spec.seed + k;
        double total = 0.0;
        for (const Iteration iteration : Rehearsal(rehearsed, plan.rungs, std::max(1U, groups), learns).run()) {
            total += static_cast<double>(iteration);
            for (std::size_t i = 0; i < reached.size(); ++i)
                reached[i] += iteration >= plan.rungs[i].iteration ? 1.0 / times : 0.0;
        }
        totals.push_back(total);
    }
    const double times_as_many = static_cast<double>(spec.num_trials) / rehearsed.num_trials;
    const double grows = learns ? times_as_many : std::sqrt(times_as_many);
    const auto of_all = [&](std::uint64_t by_ranks, double tried, std::uint64_t tried_by_ranks) {
        return rounded(static_cast<double>(by_ranks) + grows * (tried - static_cast<double>(tried_by_ranks)));
    };
    for (std::size_t i = 0; i < reached.size() && i < counted.rungs.size(); ++i)
        plan.rungs[i].trials = of_all(plan.rungs[i].trials, reached[i], counted.rungs[i].trials);
    std::ranges::sort(totals);
    double mean = 0.0;
    for (const double total : totals) mean += total / times;
    plan.fewest = of_all(plan.iterations, totals[totals.size() / 20], counted.iterations);
    plan.most = of_all(plan.iterations, totals[totals.size() - 1 - totals.size() / 20], counted.iterations);
    plan.iterations = of_all(plan.iterations, mean, counted.iterations);
}

} // namespace ranktune::schedulers
