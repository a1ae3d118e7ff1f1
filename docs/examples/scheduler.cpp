// SPDX-License-Identifier: Apache-2.0
// A scheduler of your own: a trial stops when its metric has not improved for so many iterations. Its description, its
// registration, and the contract of all schedulers as its test. jobs/custom-scheduler has one with its build files.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include <ranktune/base/time.hpp>
#include <ranktune/schedulers/objective_reader.hpp>
#include <ranktune/schedulers/scheduler.hpp>
#include <ranktune/study/algorithm.hpp>
#include <ranktune/study/codec.hpp>
#include <ranktune/study/fixed.hpp>
#include <ranktune/study/objective.hpp>
#include <ranktune/study/record.hpp>
#include <ranktune/study/schema.hpp>
#include <ranktune/study/side_task.hpp>
#include <ranktune/study/spec.hpp>
#include <ranktune/study/steering.hpp>
#include <ranktune/study/vocabulary.hpp>
#include <ranktune/testing/contract.hpp>
#include <ranktune/trainables/algorithms.hpp>

namespace base = ranktune::base;
namespace schedulers = ranktune::schedulers;
namespace study = ranktune::study;

class Patience final : public schedulers::Scheduler {
  public:
    explicit Patience(const study::StudySpec& spec)
        : patience_(static_cast<base::Iteration>(spec.scheduler.options.at("patience").as_int())),
          ceiling_(spec.max_iterations),
          sign_(spec.objective.mode == study::Mode::max ? 1.0 : -1.0),
          objective_(spec.objective) {}

    std::string_view name() const override { return "patience"; }
    bool pauses() const override { return false; }

    study::Verdict decide(const schedulers::Report& report, bool /*contended*/) const override {
        if (report.iteration >= ceiling_)
            return {study::Verb::stop, study::Reason::max_iterations, static_cast<double>(ceiling_)};
        const auto best = best_.find(report.trial);
        if (best == best_.end() || report.score.rank() > best->second.score) return {};
        if (report.iteration < best->second.iteration + patience_) return {};
        return {study::Verb::stop, study::Reason::scheduler_limit, sign_ * report.score.rank(),
                sign_ * best->second.score};
    }
    schedulers::Work next(const schedulers::Pool& pool) const override {
        if (pool.can_create) return schedulers::Create{};
        return schedulers::NothingLeft{};
    }
    base::Iteration next_decision_point(base::TrialId, base::Iteration current) const override { return current + 1; }

    void apply(const study::Record& record) override {
        if (const auto* metric = std::get_if<study::MetricDefined>(&record)) objective_.apply(*metric);
        // A failed trial may be reopened, and goes on.
        const auto* closed = std::get_if<study::TrialClosed>(&record);
        if (closed != nullptr && closed->phase != study::TrialPhase::failed) best_.erase(closed->trial);
        // A user who resumes a trial wants it to train: its patience begins anew.
        const auto* steered = std::get_if<study::Steered>(&record);
        if (steered != nullptr && steered->ask.verb == study::SteerVerb::resume) best_.erase(steered->ask.trial);
        if (const auto* report = std::get_if<study::Reported>(&record)) {
            const double score = objective_.score(objective_.value(*report));
            const auto [best, first] = best_.try_emplace(report->trial, Best{report->iteration, score});
            if (!first && score > best->second.score) best->second = {report->iteration, score};
        }
    }
    void snapshot(study::Encoder& out) const override {
        out.u8(1); // version
        objective_.snapshot(out);
        out.varint(best_.size());
        for (const auto& [trial, best] : best_) {
            out.varint(trial.value());
            out.varint(best.iteration);
            out.f64(best.score);
        }
    }
    void restore(study::Decoder& in) override {
        if (in.u8() != 1) throw base::FormatError("a snapshot of another version of patience");
        objective_.restore(in);
        best_.clear();
        for (std::size_t left = in.count(); left > 0; --left) {
            const base::TrialId trial(static_cast<std::uint32_t>(in.varint()));
            const base::Iteration iteration = in.varint();
            best_[trial] = {iteration, in.f64()};
        }
    }

  private:
    struct Best {
        base::Iteration iteration = 0;
        double score = 0.0; ///< larger is better
    };
    base::Iteration patience_;
    base::Iteration ceiling_;
    double sign_; ///< from a score back to the metric
    schedulers::ObjectiveReader objective_;
    std::map<base::TrialId, Best> best_; ///< of trials that may go on
};

study::SchedulerInfo describe_patience() {
    study::SchedulerInfo info;
    info.name = "patience";
    info.description = "a trial stops when its metric has not improved for `patience` iterations.";
    info.options = {{.name = "patience",
                     .kind = study::OptionInfo::Kind::integer,
                     .standard = 3,
                     .description = "Iterations without a better value.",
                     .low = 1.0}};
    info.make = [](const study::StudySpec& spec) { return std::make_unique<Patience>(spec); };
    return info;
}

/// The verdict on the third of three reports.
study::Verdict third(double first, double second, double value) {
    study::StudySpec spec;
    spec.objective = {"loss", study::Mode::min};
    spec.max_iterations = 10;
    spec.scheduler =
        study::chosen(std::make_shared<const study::SchedulerInfo>(describe_patience()), {{"patience", 2}});
    Patience scheduler(spec);
    scheduler.apply(study::MetricDefined{study::MetricId(0), "loss"});
    base::Iteration iteration = 0;
    for (const double loss : {first, second}) {
        study::Reported report;
        report.at = base::StudyTime(std::chrono::seconds(iteration));
        report.iteration = ++iteration;
        report.metrics = {{study::MetricId(0), loss}};
        scheduler.apply(report);
    }
    return scheduler.decide({base::TrialId(0), 3, study::score(value, study::Mode::min)}, false);
}

int main() {
    ranktune::trainables::register_scheduler(describe_patience()); // a program calls run_program(argc, argv) next
    for (const std::string& rule : ranktune::testing::check_scheduler(describe_patience())) {
        std::fprintf(stderr, "%s\n", rule.c_str());
        return 1;
    }
    const bool right = third(1.0, 2.0, 1.5).verb == study::Verb::stop &&
                       third(1.0, 2.0, 0.5).verb == study::Verb::go_on &&
                       third(2.0, 1.0, 1.5).verb == study::Verb::go_on;
    return right ? 0 : 1;
}
