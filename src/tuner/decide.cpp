// SPDX-License-Identifier: Apache-2.0
// The verdict on a report: ceiling, stoppers, scheduler, in this order. Pure.

#include <algorithm>
#include <cmath>

#include "ranktune/base/text.hpp"
#include "ranktune/study/objective.hpp"
#include "tuner/core.hpp"

namespace ranktune::tuner {
namespace {

const study::NamedMetric* find(const std::vector<study::NamedMetric>& metrics, const std::string& name) {
    const auto found = std::find_if(metrics.begin(), metrics.end(), [&](const auto& m) { return m.name == name; });
    return found == metrics.end() ? nullptr : &*found;
}

std::optional<Verdict> threshold_reached(const study::StopSpec& stop, const study::ReportArrived& report) {
    for (const auto& limit : stop.metrics) {
        const auto* metric = find(report.metrics, limit.metric);
        if (metric == nullptr) continue;
        const bool reached =
            limit.mode == study::Mode::max ? metric->value >= limit.threshold : metric->value <= limit.threshold;
        if (reached) return Verdict{Verb::stop, Reason::metric_threshold, metric->value, limit.threshold};
    }
    return std::nullopt;
}

/// Population standard deviation.
double deviation(const std::vector<double>& values) {
    double mean = 0.0;
    for (const double value : values) mean += value;
    mean /= static_cast<double>(values.size());
    double sum = 0.0;
    for (const double value : values) sum += (value - mean) * (value - mean);
    return std::sqrt(sum / static_cast<double>(values.size()));
}

std::optional<Verdict> plateau_reached(const study::StudySpec& spec, const TrialState& trial,
                                       const study::ReportArrived& report) {
    if (!spec.stop.plateau || report.iteration < spec.stop.plateau->grace) return std::nullopt;
    const auto& plateau = *spec.stop.plateau;
    const auto* metric = find(report.metrics, plateau.metric);
    if (metric == nullptr) return std::nullopt;
    const auto mode = spec.objective.mode;
    if (plateau.threshold && study::score(metric->value, mode) < study::score(*plateau.threshold, mode))
        return std::nullopt;
    std::vector<double> window = trial.window;
    if (window.size() == plateau.results) window.erase(window.begin());
    window.push_back(metric->value);
    if (window.size() < plateau.results) return std::nullopt;
    const double spread = deviation(window);
    if (!(spread < plateau.std)) return std::nullopt;
    return Verdict{Verb::stop, Reason::plateau, spread, static_cast<double>(plateau.results)};
}

} // namespace

std::optional<double> Tuner::Impl::objective_of(const study::ReportArrived& report) const {
    const auto* metric = find(report.metrics, spec.objective.metric);
    if (metric == nullptr) return std::nullopt;
    return metric->value;
}

Verdict Tuner::Impl::decide(TrialId id, const study::ReportArrived& report, std::optional<double> value) const {
    const TrialState& t = state.trials[id.value()];
    if (t.phase == TrialPhase::ending && t.verdict.verb == Verb::stop) return t.verdict;
    if (!value && !t.reported) return {Verb::stop, Reason::missing_metric, 0.0, 0.0};
    if (report.iteration >= spec.max_iterations) {
        return {Verb::stop, Reason::max_iterations, static_cast<double>(spec.max_iterations), 0.0};
    }
    if (!spec.stop.metrics.empty()) {
        if (const auto verdict = threshold_reached(spec.stop, report)) return *verdict;
    }
    if (const auto verdict = plateau_reached(spec, t, report)) return *verdict;
    if (spec.stop.trial_time) {
        const double limit = base::to_seconds(*spec.stop.trial_time);
        if (report.seconds >= limit) return {Verb::stop, Reason::trial_time, report.seconds, limit};
    }
    const double objective_value = value.value_or(not_a_number);
    // While the study drains no trial goes on in place, so a trial at a rung is paused there like any other.
    // In deterministic mode who waits for ranks is no part of the logic.
    const bool contended = !spec.deterministic && (state.draining || !waiting.empty());
    const Verdict verdict = scheduler->decide(
        {id, report.iteration, study::score(objective_value, spec.objective.mode), std::isnan(objective_value)},
        contended);
    if (state.draining && verdict.verb == Verb::go_on) return {Verb::pause, Reason::draining, 0.0, 0.0};
    return verdict;
}

Iteration Tuner::Impl::next_decision_point(TrialId id, Iteration current) const {
    // A stopper may speak after any report.
    if (!spec.stop.metrics.empty() || spec.stop.plateau || spec.stop.trial_time) return current + 1;
    return std::max(current + 1, std::min(scheduler->next_decision_point(id, current), spec.max_iterations));
}

std::string Tuner::Impl::missing_metric_message(const study::ReportArrived& report) const {
    std::vector<std::string> names;
    for (const auto& metric : report.metrics) names.push_back(metric.name);
    std::string text = "the first report of trial #" + std::to_string(report.trial.value()) +
                       " lacks the study's metric '" + spec.objective.metric + "'; it has ";
    text += names.empty() ? "no metrics at all" : base::join(names);
    const std::string_view nearest = base::nearest(spec.objective.metric, names);
    if (!nearest.empty()) text += ". Did you mean study.metric = \"" + std::string(nearest) + "\"?";
    return text;
}

} // namespace ranktune::tuner
