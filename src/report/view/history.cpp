// SPDX-License-Identifier: Apache-2.0
#include "report/view/history.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ranktune/base/text.hpp"
#include "report/screens/text.hpp"

namespace ranktune::report {
namespace {

/// The study's metric in a report; NaN without it, and where a constraint is violated, so that no view counts it.
double metric_of(const study::Reported& report, const tuner::Tuner& tuner) {
    const auto& names = tuner.state().metrics;
    const study::Objective& objective = tuner.spec().objective;
    const auto value_of = [&](const std::string& wanted) {
        for (const auto& metric : report.metrics)
            if (names.at(metric.id.value()) == wanted) return metric.value;
        return tuner::not_a_number;
    };
    for (const study::Constraint& limit : objective.constraints)
        if (limit.excess(value_of(limit.metric)) > 0.0) return tuner::not_a_number;
    return value_of(objective.metric);
}

/// Between two decision points a verdict says nothing.
bool is_decision(const study::Verdict& verdict) {
    return verdict.verb != study::Verb::go_on ||
           (verdict.reason != study::Reason::none && verdict.reason != study::Reason::below_rung);
}

} // namespace

void History::take(const study::Reported& report, std::uint64_t number, const tuner::Tuner& tuner) {
    const double value = metric_of(report, tuner);
    const double at = base::to_seconds(report.at);
    if (report.trial.value() >= curves_.size()) curves_.resize(report.trial.value() + 1);
    auto& curve = curves_[report.trial.value()];
    while (!curve.empty() && curve.back().iteration >= report.iteration) curve.pop_back();
    curve.push_back({report.iteration, value, at});
    const study::Verdict& verdict = report.verdict;
    if (is_decision(verdict))
        decisions_.push_back({report.trial, report.iteration, verdict.verb, verdict.reason, verdict.a, verdict.b, value,
                              at, false, number});
    if (tuner.spec().searcher.repeats == 1) take_best(report.trial, at, tuner);
}

/// A report of this trial, or with repeats its end, may have made it the best one.
void History::take_best(study::TrialId trial, double at, const tuner::Tuner& tuner) {
    const tuner::State& state = tuner.state();
    if (!state.best) return;
    const std::uint32_t repeats = tuner.spec().searcher.repeats;
    if (tuner::first_repeat(*state.best, repeats) != tuner::first_repeat(trial, repeats)) return;
    const double best = value_of_best(tuner);
    if (best_.empty() || best_.back().value != best) best_.push_back({at, state.iterations, *state.best, best});
}

std::span<const std::uint64_t> History::takeovers(study::TrialId trial) const {
    const auto found = takeovers_.find(trial.value());
    return found == takeovers_.end() ? std::span<const std::uint64_t>() : std::span(found->second);
}

std::uint64_t History::closed(study::TrialId trial) const {
    return trial.value() < closed_.size() ? closed_[trial.value()] : 0;
}

void History::take_version(const std::string& version) {
    if (std::ranges::find(versions_, version) == versions_.end()) versions_.push_back(version);
}

void History::take_incident(const study::Record& record) {
    const auto note = [this](study::StudyTime at, std::string text) {
        incidents_.push_back({base::to_seconds(at), std::move(text)});
    };
    if (const auto* lost = std::get_if<study::RankLost>(&record))
        note(lost->at, fmt::format("rank {} lost: {}", lost->rank.value(), lost->why));
    else if (const auto* died = std::get_if<study::JobDied>(&record))
        note(died->at,
             died->notes.empty() ? "the job died" : "the job died: " + study::describe(died->notes[0].note.failure));
    else if (const auto* retired = std::get_if<study::HostRetired>(&record))
        note(retired->at,
             fmt::format("{} taken out of service: {} failed there one after the other",
                         place_text(retired->host, retired->device), base::counted(retired->trials.size(), "trial")));
    else if (const auto* drain = std::get_if<study::DrainBegan>(&record))
        note(drain->at, "stopping: " + (drain->why.empty() ? study::describe(drain->reason, 0.0, 0.0) : drain->why));
    else if (const auto* steered = std::get_if<study::Steered>(&record))
        note(steered->at, steered->what + ", asked by " + steered->who);
    else if (const auto* changed = std::get_if<study::StudyChanged>(&record))
        note(changed->at, "the study file changed");
}

/// Keeps only the numbers of these records: the state has their content.
void History::take_number(const study::Record& record, std::uint64_t number) {
    if (const auto* exploited = std::get_if<study::Exploited>(&record)) {
        takeovers_[exploited->trial.value()].push_back(number);
    } else if (const auto* undone = std::get_if<study::ExploitUndone>(&record)) {
        takeovers_[undone->trial.value()].resize(undone->generation);
    } else if (const auto* closed = std::get_if<study::TrialClosed>(&record)) {
        if (closed->trial.value() >= closed_.size()) closed_.resize(closed->trial.value() + 1);
        closed_[closed->trial.value()] = number;
    } else if (const auto* reopened = std::get_if<study::TrialReopened>(&record)) {
        if (reopened->trial.value() < closed_.size()) closed_[reopened->trial.value()] = 0;
    }
}

void History::add(const study::Record& record, std::uint64_t number, const tuner::Tuner& tuner) {
    take_number(record, number);
    if (const auto* report = std::get_if<study::Reported>(&record)) {
        take(*report, number, tuner);
    } else if (const auto* promoted = std::get_if<study::TrialPromoted>(&record)) {
        decisions_.push_back({promoted->trial, promoted->from, study::Verb::go_on, promoted->reason,
                              static_cast<double>(promoted->from), static_cast<double>(promoted->target),
                              tuner::not_a_number, base::to_seconds(promoted->at), true, number});
    } else if (const auto* ended = std::get_if<study::AttemptEnded>(&record)) {
        ends_.push_back({ended->trial, ended->attempt, base::to_seconds(ended->at), ended->outcome,
                         study::describe(ended->failure), number});
    } else if (const auto* began = std::get_if<study::IncarnationBegan>(&record)) {
        starts_.push_back(
            {base::to_seconds(began->at), base::to_seconds(began->at), began->wall_time, began->workers.size()});
    } else if (const auto* created = std::get_if<study::StudyCreated>(&record)) {
        take_version(created->version);
    } else if (const auto* changed = std::get_if<study::StudyChanged>(&record)) {
        take_version(changed->version);
    }
    take_incident(record);
    const auto* closed = std::get_if<study::TrialClosed>(&record);
    if (closed != nullptr && tuner.spec().searcher.repeats > 1)
        take_best(closed->trial, base::to_seconds(closed->at), tuner);
    rank_time_.add(record, tuner);
    if (!starts_.empty()) starts_.back().end_s = base::to_seconds(tuner.state().now);
}

namespace {

tuner::Repetitions repetitions(const tuner::Tuner& tuner, study::TrialId trial) {
    return tuner::repetitions_of(trial, tuner.state().trials, tuner.spec());
}

} // namespace

std::vector<tuner::Repetitions> configurations_by_mean(const tuner::Tuner& tuner) {
    const study::Mode mode = tuner.spec().objective.mode;
    std::vector<tuner::Repetitions> all;
    for (std::uint32_t first = 0; first < tuner.state().trials.size(); first += tuner.spec().searcher.repeats)
        all.push_back(repetitions(tuner, study::TrialId{first}));
    std::ranges::sort(all, [&](const tuner::Repetitions& a, const tuner::Repetitions& b) {
        if (a.complete != b.complete) return a.complete;
        if (is_better(a, b, mode)) return true;
        return !is_better(b, a, mode) && a.first < b.first;
    });
    return all;
}

double value_of_best(const tuner::Tuner& tuner) {
    const tuner::State& state = tuner.state();
    if (!state.best) return tuner::not_a_number;
    return tuner.spec().searcher.repeats > 1 ? repetitions(tuner, *state.best).mean : state.trial(*state.best).best;
}

std::string text_of_best(const tuner::Tuner& tuner) {
    const tuner::State& state = tuner.state();
    if (!state.best) return "-";
    if (tuner.spec().searcher.repeats == 1) return metric_text(state.trial(*state.best).best);
    return fmt::format("{} (mean of {})", text_of_mean(tuner, *state.best), repetitions(tuner, *state.best).counted());
}

std::string text_of_mean(const tuner::Tuner& tuner, study::TrialId trial) {
    if (tuner.spec().searcher.repeats == 1) return {};
    const tuner::Repetitions all = repetitions(tuner, trial);
    if (std::isnan(all.deviation)) return metric_text(all.mean);
    return metric_text(all.mean) + " +- " + metric_text(all.deviation);
}

} // namespace ranktune::report
