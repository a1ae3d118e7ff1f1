// SPDX-License-Identifier: Apache-2.0
#include "studydir/results.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "storage/journal/journal.hpp"

namespace ranktune::studydir {
namespace {

using storage::Column;
using Role = storage::Column::Role;

constexpr double missing = std::numeric_limits<double>::quiet_NaN();

std::string verb_name(study::Verb verb) {
    return verb == study::Verb::go_on ? "go_on" : std::string(study::name(verb));
}

Column field(std::string name, std::string units, std::string long_name, Column::Values values) {
    return {std::move(name), Role::field, std::move(units), std::move(long_name), std::move(values)};
}

/// The common type of a parameter's values, over all trials that have it.
enum class Common { none, integer, number, text };

Common common_of(const space::Value& value) {
    if (value.is_int()) return Common::integer;
    if (value.is_double()) return Common::number;
    return Common::text;
}

Common join(Common a, Common b) {
    if (a == Common::none) return b;
    if (a == b) return a;
    return a == Common::text || b == Common::text ? Common::text : Common::number;
}

/// One column per parameter: integers when every trial has an integer, numbers (NaN: absent) when all are numbers,
/// otherwise their text (empty: absent).
Column parameter_column(const std::string& name, Common kind, const tuner::Trials& trials) {
    Column column{name, Role::parameter, "", "hyper-parameter " + name, {}};
    if (kind == Common::integer) {
        std::vector<std::int64_t> values;
        for (const auto& trial : trials) values.push_back(trial.configuration.at(name).as_int());
        column.values = std::move(values);
    } else if (kind == Common::number) {
        std::vector<double> values;
        for (const auto& trial : trials) {
            const auto* value = trial.configuration.find(name);
            values.push_back(value != nullptr ? value->as_double() : missing);
        }
        column.values = std::move(values);
    } else {
        std::vector<std::string> values;
        for (const auto& trial : trials) {
            const auto* value = trial.configuration.find(name);
            values.push_back(value != nullptr ? value->text() : "");
        }
        column.values = std::move(values);
    }
    return column;
}

void add_parameters(const tuner::Trials& trials, std::vector<Column>& columns) {
    struct Seen {
        Common kind = Common::none;
        std::size_t count = 0;
    };
    std::vector<std::string> order;
    std::map<std::string, Seen> seen;
    for (const auto& trial : trials)
        for (const auto& entry : trial.configuration.entries()) {
            auto& parameter = seen[entry.name];
            if (parameter.count++ == 0) order.push_back(entry.name);
            parameter.kind = join(parameter.kind, common_of(entry.value));
        }
    for (const auto& name : order) {
        auto kind = seen[name].kind;
        if (kind == Common::integer && seen[name].count < trials.size())
            kind = Common::number; // integers have no "absent"
        columns.push_back(parameter_column(name, kind, trials));
    }
}

template <class T, class F>
std::vector<T> collect(const tuner::Trials& trials, F&& get) {
    std::vector<T> values;
    values.reserve(trials.size());
    for (const auto& trial : trials) values.push_back(static_cast<T>(get(trial)));
    return values;
}

/// With several objectives: columns of the further ones at the best iteration, and of each trial's front.
void add_objectives(const tuner::Tuner& tuner, std::vector<Column>& columns) {
    const study::Objective& objective = tuner.spec().objective;
    if (!objective.several()) return;
    const auto& trials = tuner.state().trials;
    for (std::size_t i = 0; i < objective.others.size(); ++i)
        columns.push_back(
            field("best." + objective.others[i].metric, "", "metric of the best iteration",
                  collect<double>(trials, [i](const auto& t) { return i < t.others.size() ? t.others[i] : missing; })));
    columns.push_back(field("pareto_rank", "", "0: on the Pareto front; 1: beaten only by those; ...; -1: no result",
                            tuner::pareto_ranks(trials, objective)));
}

} // namespace

ResultsBuilder::ResultsBuilder(const study::StudySpec& spec) : tuner_(spec) {}

void ResultsBuilder::add(const study::Record& record) {
    // The study file may have lost the commands of side tasks since: the tuner may not know them.
    if (add_side(record)) return;
    tuner_.apply(record);
    if (const auto* report = std::get_if<study::Reported>(&record)) add_report(*report);
}

bool ResultsBuilder::add_side(const study::Record& record) {
    constexpr auto of_trial = study::SideTask::Kind::after_trial;
    if (const auto* started = std::get_if<study::SideStarted>(&record)) {
        if (started->task.kind == of_trial) // the attempt before counts no more
            for (auto& [name, values] : after_)
                if (started->task.trial.value() < values.size()) values[started->task.trial.value()] = missing;
        return true;
    }
    if (const auto* report = std::get_if<study::SideReported>(&record)) {
        if (report->task.kind != of_trial) return true;
        const std::size_t row = report->task.trial.value();
        for (const study::NamedMetric& metric : report->metrics) {
            auto& values = after_[metric.name];
            if (row >= values.size()) values.resize(row + 1, missing);
            values[row] = metric.value;
        }
        return true;
    }
    return std::holds_alternative<study::SideEnded>(record);
}

void ResultsBuilder::add_report(const study::Reported& report) {
    const std::size_t row = trial_.size();
    trial_.push_back(report.trial.value());
    attempt_.push_back(report.attempt.value());
    iteration_.push_back(static_cast<std::int64_t>(report.iteration));
    time_.push_back(base::to_seconds(report.at));
    seconds_.push_back(report.seconds);
    verdict_.push_back(verb_name(report.verdict.verb));
    for (const auto& metric : report.metrics) {
        if (metric.id.value() >= metrics_.size()) metrics_.resize(metric.id.value() + std::size_t{1});
        auto& column = metrics_[metric.id.value()];
        column.resize(row, missing);
        column.push_back(metric.value);
    }
}

storage::ResultTable ResultsBuilder::reports() const {
    storage::ResultTable table{"reports", "one row per report of a trial, in the order of arrival", {}};
    table.columns.push_back(field("trial", "", "number of the trial", trial_));
    table.columns.push_back(field("attempt", "", "number of the attempt within the trial, from 1", attempt_));
    table.columns.push_back(field("iteration", "iterations", "iterations the trial has completed", iteration_));
    table.columns.push_back(field("time", "s", "study time of the report; time without a head left out", time_));
    table.columns.push_back(field("seconds", "s", "training time of the trial so far, all attempts", seconds_));
    table.columns.push_back(field("verdict", "", "what the trial was told: go_on, pause or stop", verdict_));
    for (std::size_t id = 0; id < metrics_.size(); ++id) {
        auto values = metrics_[id];
        values.resize(trial_.size(), missing);
        const auto& name = tuner_.state().metrics.at(id);
        table.columns.push_back({name, Role::metric, "", "metric " + name, std::move(values)});
    }
    return table;
}

storage::ResultTable ResultsBuilder::trials() const {
    const auto& trials = tuner_.state().trials;
    storage::ResultTable table{"trials", "one row per trial; row i is trial i", {}};
    auto& columns = table.columns;
    std::vector<std::int64_t> ids(trials.size());
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i);
    columns.push_back(field("trial", "", "number of the trial", std::move(ids)));
    columns.push_back(field("state", "", "finished, stopped, failed, paused, waiting or running",
                            collect<std::string>(trials, [](const auto& t) { return study::name(t.phase); })));
    columns.push_back(
        field("reason", "", "why it was closed, in words", collect<std::string>(trials, [](const auto& t) {
                  return t.closed_by == study::Reason::none ? std::string()
                                                            : study::describe(t.closed_by, t.closed_a, t.closed_b);
              })));
    columns.push_back(field("message", "", "of a failure",
                            collect<std::string>(trials, [](const auto& t) { return study::describe(t.failure); })));
    columns.push_back(field("attempts", "", "how often it was started",
                            collect<std::int64_t>(trials, [](const auto& t) { return t.attempt.id.value(); })));
    columns.push_back(field("ranks", "", "ranks per attempt",
                            collect<std::int64_t>(trials, [](const auto& t) { return t.wanted_ranks; })));
    columns.push_back(field("bracket", "", "bracket of the scheduler",
                            collect<std::int64_t>(trials, [](const auto& t) { return t.bracket; })));
    columns.push_back(field("iteration", "iterations", "iterations completed",
                            collect<std::int64_t>(trials, [](const auto& t) { return t.iteration; })));
    columns.push_back(field("best", "", "best finite value of the study's metric",
                            collect<double>(trials, [](const auto& t) { return t.best; })));
    columns.push_back(field("best_iteration", "iterations", "iteration of the best value",
                            collect<std::int64_t>(trials, [](const auto& t) { return t.best_iteration; })));
    columns.push_back(field("last", "", "last value of the study's metric",
                            collect<double>(trials, [](const auto& t) { return t.last; })));
    add_objectives(tuner_, columns);
    columns.push_back(field("seconds", "s", "training time, all attempts",
                            collect<double>(trials, [](const auto& t) { return t.seconds; })));
    columns.push_back(field("created", "s", "study time when it was created",
                            collect<double>(trials, [](const auto& t) { return base::to_seconds(t.created); })));
    columns.push_back(field("started", "s", "study time of its first attempt",
                            collect<double>(trials, [](const auto& t) { return base::to_seconds(t.started); })));
    columns.push_back(field("ended", "s", "study time when it was closed",
                            collect<double>(trials, [](const auto& t) { return base::to_seconds(t.ended); })));
    columns.push_back(field("checkpoint", "", "newest checkpoint, relative to the study directory",
                            collect<std::string>(trials, [](const auto& t) {
                                return t.checkpoints.empty() ? std::string() : t.checkpoints.back().path;
                            })));
    add_parameters(trials, columns);
    for (auto [name, values] : after_) {
        values.resize(trials.size(), missing);
        columns.push_back({name, Role::metric, "", "metric " + name + " of [after_trial]", std::move(values)});
    }
    return table;
}

storage::Results ResultsBuilder::finish(const std::string& written) const {
    const auto& spec = tuner_.spec();
    storage::Results results;
    results.study = spec.name;
    results.uuid = tuner_.state().uuid;
    results.metric = spec.objective.metric;
    results.mode = study::name(spec.objective.mode);
    if (spec.objective.several())
        for (const study::Goal& goal : spec.objective.goals())
            results.objectives += (results.objectives.empty() ? "" : ", ") + goal.metric +
                                  (goal.mode == study::Mode::max ? " (max)" : " (min)");
    results.version = tuner_.state().version;
    results.written = written;
    results.tables.push_back(reports());
    results.tables.push_back(trials());
    return results;
}

void write_results(storage::FileSystem& files, const std::string& directory, const study::StudySpec& spec,
                   const std::string& written) {
    ResultsBuilder builder(spec);
    storage::read_journal(files, directory, [&](study::Record&& record) { builder.add(record); });
    storage::publish_results(files, directory + "/metrics.h5", builder.finish(written));
}

} // namespace ranktune::studydir
