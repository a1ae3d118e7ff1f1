// SPDX-License-Identifier: Apache-2.0
#pragma once
// A custom scheduler: a trial stops when it is worse than the mean of the finished trials at the same iteration.
//
// It shows every rule of a scheduler in its smallest form: only `apply` changes the state; the same records give the
// same state; a snapshot contains the whole state.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <ranktune/algorithms.hpp>

class MeanStopping final : public ranktune::Scheduler {
  public:
    explicit MeanStopping(const ranktune::StudySpec& study)
        : warmup_(static_cast<std::uint64_t>(study.scheduler.options.at("warmup").as_int())),
          min_finished_(static_cast<std::uint64_t>(study.scheduler.options.at("min_finished").as_int())),
          slack_(study.scheduler.options.at("slack").as_double()),
          ceiling_(study.max_iterations),
          sign_(study.objective.mode == ranktune::Mode::max ? 1.0 : -1.0),
          objective_(study.objective) {}

    std::string_view name() const override { return "mean_stopping"; }
    bool pauses() const override { return false; }

    /// Nothing is paused, so there are only new trials to train.
    ranktune::Work next(const ranktune::Pool& pool) const override {
        if (pool.can_create) return ranktune::Create{};
        return ranktune::NothingLeft{};
    }

    /// A trial waits for verdicts only from iteration `warmup` on.
    ranktune::Iteration next_decision_point(ranktune::TrialId, ranktune::Iteration current) const override {
        return std::max(current + 1, std::min(std::max<std::uint64_t>(warmup_, 1), ceiling_));
    }

    /// Scores are signed so that larger is better; a non-finite one is worst.
    ranktune::Verdict decide(const ranktune::SchedulerReport& report, bool /*contended*/) const override {
        using ranktune::Reason;
        using ranktune::Verb;
        if (report.iteration >= ceiling_) return {Verb::stop, Reason::max_iterations, static_cast<double>(ceiling_)};
        if (report.iteration < warmup_) return {Verb::go_on, Reason::below_rung};
        const auto at = finished_.find(report.iteration);
        if (at == finished_.end() || at->second.count < min_finished_) return {Verb::go_on, Reason::first_arrival};
        const double limit = at->second.sum / static_cast<double>(at->second.count) - slack_;
        const double score = report.score.rank();
        if (score >= limit) return {Verb::go_on, Reason::none};
        return {Verb::stop, Reason::scheduler_limit, sign_ * score, sign_ * limit};
    }

    void apply(const ranktune::Record& record) override {
        if (const auto* metric = std::get_if<ranktune::MetricDefined>(&record)) {
            objective_.apply(*metric);
        } else if (const auto* report = std::get_if<ranktune::Reported>(&record)) {
            // After a lost rank a trial repeats iterations: the later report counts.
            curves_[report->trial.value()][report->iteration] = objective_.score(objective_.value(*report));
        } else if (const auto* closed = std::get_if<ranktune::TrialClosed>(&record)) {
            if (closed->phase == ranktune::TrialPhase::finished) {
                for (const auto& [iteration, score] : curves_[closed->trial.value()])
                    if (std::isfinite(score)) finished_[iteration].add(score);
            }
            // A failed trial may be reopened, and goes on.
            if (closed->phase != ranktune::TrialPhase::failed) curves_.erase(closed->trial.value());
        }
    }

    void snapshot(ranktune::Encoder& out) const override {
        out.u8(version);
        objective_.snapshot(out);
        out.varint(finished_.size());
        for (const auto& [iteration, mean] : finished_) {
            out.varint(iteration);
            out.varint(mean.count);
            out.f64(mean.sum);
        }
        out.varint(curves_.size());
        for (const auto& [trial, curve] : curves_) {
            out.varint(trial);
            out.varint(curve.size());
            for (const auto& [iteration, score] : curve) {
                out.varint(iteration);
                out.f64(score);
            }
        }
    }

    /// The decoder itself refuses reads beyond the end and impossible counts.
    void restore(ranktune::Decoder& in) override {
        if (in.u8() != version) throw ranktune::FormatError("a snapshot of another version of mean_stopping");
        objective_.restore(in);
        finished_.clear();
        curves_.clear();
        for (std::size_t left = in.count(); left > 0; --left) {
            Mean& mean = finished_[in.varint()];
            mean.count = in.varint();
            mean.sum = in.f64();
        }
        for (std::size_t trials = in.count(); trials > 0; --trials) {
            auto& curve = curves_[in.varint()];
            for (std::size_t left = in.count(); left > 0; --left) {
                const std::uint64_t iteration = in.varint();
                curve[iteration] = in.f64();
            }
        }
    }

  private:
    static constexpr std::uint8_t version = 1;

    struct Mean {
        std::uint64_t count = 0;
        double sum = 0.0;
        void add(double score) {
            ++count;
            sum += score;
        }
    };

    std::uint64_t warmup_;
    std::uint64_t min_finished_;
    double slack_;
    std::uint64_t ceiling_;
    double sign_; ///< converts between metric and score
    ranktune::ObjectiveReader objective_;
    std::map<std::uint64_t, Mean> finished_;                          ///< by iteration, of finished trials
    std::map<std::uint64_t, std::map<std::uint64_t, double>> curves_; ///< by trial, of trials that may go on
};

/// The description used by study files, `ranktune algorithms` and `ranktune init`.
inline ranktune::SchedulerInfo describe_mean_stopping() {
    using ranktune::OptionKind;
    ranktune::SchedulerInfo info;
    info.name = "mean_stopping";
    info.description = "a trial stops when it is worse than the mean of the finished trials at the same iteration.";
    info.options = {
        {.name = "warmup",
         .kind = OptionKind::integer,
         .standard = 1,
         .description = "The first iteration at which trials are compared.",
         .low = 1.0},
        {.name = "min_finished",
         .kind = OptionKind::integer,
         .standard = 3,
         .description = "Finished trials needed for a comparison.",
         .low = 1.0},
        {.name = "slack",
         .kind = OptionKind::number,
         .standard = 0.0,
         .description = "How much worse than the mean a trial may be, in units of the metric.",
         .low = 0.0},
    };
    info.check = [](const ranktune::AlgorithmCheck& check) {
        const auto warmup = static_cast<std::uint64_t>(check.options.at("warmup").as_int());
        if (check.reads_file && check.max_iterations && warmup >= *check.max_iterations)
            check.complain("warmup", "is not below study.max_iterations (" + std::to_string(*check.max_iterations) +
                                         "): no trial would be compared");
    };
    info.make = [](const ranktune::StudySpec& study) { return std::make_unique<MeanStopping>(study); };
    return info;
}
