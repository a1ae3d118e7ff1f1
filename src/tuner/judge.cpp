// SPDX-License-Identifier: Apache-2.0
// What an admitted fact means. A report is judged by the ceiling, the stoppers and the scheduler, in this order. Pure.

#include <algorithm>
#include <cmath>

#include "ranktune/study/objective.hpp"
#include "tuner/decide.hpp"
#include "tuner/rules/causes.hpp"

namespace ranktune::tuner {
namespace {

/// Population standard deviation.
double deviation(const std::vector<double>& values) {
    double mean = 0.0;
    for (const double value : values) mean += value;
    mean /= static_cast<double>(values.size());
    double sum = 0.0;
    for (const double value : values) sum += (value - mean) * (value - mean);
    return std::sqrt(sum / static_cast<double>(values.size()));
}

/// The value of a metric in a report.
std::optional<double> value_of(const ReportFact& fact, const std::vector<std::string>& names, const std::string& name) {
    for (const auto& metric : fact.metrics)
        if (names[metric.id.value()] == name) return metric.value;
    return std::nullopt;
}

std::optional<Verdict> threshold_reached(const study::StopSpec& stop, const ReportFact& fact,
                                         const std::vector<std::string>& names) {
    for (const auto& limit : stop.metrics) {
        const auto value = value_of(fact, names, limit.metric);
        if (!value) continue;
        const bool reached = limit.mode == study::Mode::max ? *value >= limit.threshold : *value <= limit.threshold;
        if (reached) return Verdict{Verb::stop, Reason::metric_threshold, *value, limit.threshold};
    }
    return std::nullopt;
}

std::optional<Verdict> plateau_reached(const study::StudySpec& spec, const Trial& trial, const ReportFact& fact,
                                       const std::vector<std::string>& names) {
    const auto& plateau = *spec.stop.plateau;
    if (fact.iteration < plateau.grace) return std::nullopt;
    const auto value = value_of(fact, names, plateau.metric);
    if (!value) return std::nullopt;
    const auto mode = spec.objective.mode;
    if (plateau.threshold && study::score(*value, mode) < study::score(*plateau.threshold, mode)) return std::nullopt;
    std::vector<double> window = trial.window;
    if (window.size() == plateau.results) window.erase(window.begin());
    window.push_back(*value);
    if (window.size() < plateau.results) return std::nullopt;
    const double spread = deviation(window);
    if (!(spread < plateau.std)) return std::nullopt;
    return Verdict{Verb::stop, Reason::plateau, spread, static_cast<double>(plateau.results)};
}

Verdict verdict_on(const Core& core, const ReportFact& fact, Round& round) {
    const Trial& t = core.state.trials[fact.trial];
    if (core.admission->has_ended(fact.trial)) return {}; // the record that follows says why
    const auto reading = core.objective.read(fact.metrics);
    if (!reading.complete && !t.reported) return {Verb::stop, Reason::missing_metric, 0.0, 0.0};
    if (fact.iteration >= core.spec.max_iterations)
        return {Verb::stop, Reason::max_iterations, static_cast<double>(core.spec.max_iterations), 0.0};
    if (!core.spec.stop.metrics.empty())
        if (const auto verdict = threshold_reached(core.spec.stop, fact, core.state.metrics)) return *verdict;
    if (core.spec.stop.plateau)
        if (const auto verdict = plateau_reached(core.spec, t, fact, core.state.metrics)) return *verdict;
    if (core.spec.stop.trial_time) {
        const double limit = base::to_seconds(*core.spec.stop.trial_time);
        if (fact.seconds >= limit) return {Verb::stop, Reason::trial_time, fact.seconds, limit};
    }
    const double value = reading.feasible() ? reading.value : study::violated(core.spec.objective.mode);
    // While the study drains, no trial goes on in place, so a trial at a rung is paused like any other.
    const auto wants_the_same = [&](TrialId id) { return core.state.trials[id].workers == t.workers; };
    const bool contended = core.admission->contention_shows() &&
                           (core.state.draining || std::ranges::any_of(core.state.trials.waiting(), wants_the_same));
    const schedulers::Report report{
        fact.trial, fact.iteration,
        core.spec.objective.several() ? core.objective.score(reading) : study::score(value, core.spec.objective.mode),
        std::isnan(value)};
    Verdict verdict = core.scheduler->decide(report, contended);
    if (verdict.verb == Verb::exploit) {
        const schedulers::Exploit wanted = core.scheduler->exploit(report);
        const bool waits = !core.state.draining; // while draining the trial pauses anyway
        if (waits) round.exploit = takeover(core, fact.trial, fact.iteration, wanted, round.now);
        verdict.verb = round.exploit ? Verb::exploit : Verb::go_on;
        verdict.reason = round.exploit ? Reason::exploited : Reason::no_donor;
        verdict.a = static_cast<double>(wanted.donor.value());
        verdict.b = static_cast<double>(wanted.iteration);
    }
    return verdict;
}

/// How a trial without a further attempt ends.
study::TrialClosed judged(const Core& core, const EndFact& fact, StudyTime now) {
    const auto closed = [&](TrialPhase phase, Reason reason, double a, double b, Failure failure) {
        return study::TrialClosed{fact.trial, now, phase, reason, a, b, std::move(failure)};
    };
    const std::uint32_t losses = core.state.trials[fact.trial].losses;
    switch (fact.outcome) {
        case AttemptOutcome::finished:
            return closed(TrialPhase::finished, Reason::trainable_done, 0.0, 0.0, {});
        case AttemptOutcome::lost:
            return closed(TrialPhase::failed, Reason::lost, losses, 0.0,
                          {"its ranks were lost " + std::to_string(losses) + " times"});
        case AttemptOutcome::disturbed:
            if (core.admission->disturbance_is_a_loss())
                return closed(TrialPhase::failed, Reason::lost, losses, 0.0, fact.failure);
            [[fallthrough]];
        default:
            return closed(TrialPhase::failed, Reason::exception, 0.0, 0.0, fact.failure);
    }
}

} // namespace

study::Reported judged(const Core& core, ReportFact&& fact, Round& round) {
    round.exploit.reset();
    const Verdict verdict = verdict_on(core, fact, round);
    return {fact.trial, fact.attempt, round.now, fact.iteration, fact.seconds, std::move(fact.metrics), verdict};
}

/// nullopt: the donor has no such checkpoint. `iteration` of the trial.
std::optional<study::Exploited> takeover(const Core& core, TrialId id, Iteration iteration,
                                         const schedulers::Exploit& wanted, StudyTime now) {
    if (wanted.donor.value() >= core.state.trials.size()) return {};
    const auto& all = core.state.trials[wanted.donor].checkpoints;
    const auto found =
        std::find_if(all.rbegin(), all.rend(), [&](const auto& each) { return each.iteration == wanted.iteration; });
    if (found == all.rend()) return {};
    return study::Exploited{
        id, now, iteration, {wanted.donor, *found}, core.state.trials[id].generation() + 1, wanted.configuration};
}

Next judged(const Core& core, Fact& fact, Round& round) {
    if (auto* report = std::get_if<ReportFact>(&fact)) return judged(core, std::move(*report), round);
    return judged(core, std::get<EndFact>(fact), round.now);
}

Iteration next_decision_point(const Core& core, TrialId id, Iteration current) {
    // A stopper may end a trial after any report.
    if (!core.spec.stop.metrics.empty() || core.spec.stop.plateau || core.spec.stop.trial_time) return current + 1;
    return std::max(current + 1, std::min(core.scheduler->next_decision_point(id, current), core.spec.max_iterations));
}

std::vector<std::string> metric_names(const Core& core, const study::Reported& report) {
    std::vector<std::string> names;
    for (const auto& metric : report.metrics) names.push_back(core.state.metrics[metric.id.value()]);
    return names;
}

} // namespace ranktune::tuner
