// SPDX-License-Identifier: Apache-2.0
#include "report/export/export.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ranktune/base/utf8.hpp"
#include "report/explain/endings.hpp"
#include "report/screens/front.hpp"
#include "report/view/history.hpp"
#include "report/view/last_metrics.hpp"
#include "report/view/origins.hpp"
#include "report/view/side_tasks.hpp"
#include "storage/results.hpp"
#include "study/printed_values.hpp"
#include "tuner/lineage.hpp"

namespace ranktune::report {
namespace {

using Json = nlohmann::ordered_json;
using tuner::Trial;

Json number(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    return value;
}

/// The host of a rank in that incarnation: the next one may run elsewhere.
std::string host_of(const LoadedStudy& study, std::size_t incarnation, study::Rank rank) {
    if (incarnation >= study.workers.size()) return {};
    const auto& workers = study.workers[incarnation];
    return rank.value() == 0 || rank.value() > workers.size() ? std::string() : workers[rank.value() - 1].host;
}

Json attempt_json(const LoadedStudy& study, const AttemptStart& start) {
    Json ranks = Json::array();
    Json hosts = Json::array();
    for (const auto rank : std::span(study.ranks).subspan(start.first_rank, start.rank_count)) {
        ranks.push_back(rank.value());
        hosts.push_back(host_of(study, start.incarnation, rank));
    }
    Json attempt = {{"attempt", start.attempt.value()},
                    {"start", base::to_seconds(start.at)},
                    {"from_iteration", start.from},
                    {"ranks", ranks},
                    {"hosts", hosts}};
    if (start.whose != start.trial) attempt["from_trial"] = start.whose.value();
    return attempt;
}

/// What the trial took over from others, and the configuration with which it went on.
Json takeovers_json(const Trial& trial) {
    Json all = Json::array();
    for (std::size_t i = 0; i < trial.takeovers.size(); ++i) {
        const tuner::Takeover& takeover = trial.takeovers[i];
        const bool newest = i + 1 == trial.takeovers.size();
        all.push_back({{"iteration", takeover.iteration},
                       {"donor", takeover.donor.trial.value()},
                       {"donor_iteration", takeover.donor.checkpoint.iteration},
                       {"configuration_before", json_of(takeover.before)},
                       {"configuration", json_of(newest ? trial.configuration : trial.takeovers[i + 1].before)}});
    }
    return all;
}

/// The schedule that led to a trial's weights.
Json schedule_json(const std::vector<tuner::Stretch>& stretches) {
    Json all = Json::array();
    for (const tuner::Stretch& stretch : stretches)
        all.push_back({{"trial", stretch.trial.value()},
                       {"from", stretch.from},
                       {"to", stretch.to},
                       {"configuration", json_of(*stretch.configuration)}});
    return all;
}

/// Members that the journal does not tell are left out.
Json origin_json(const OriginView& from) {
    using Kind = study::Origin::Kind;
    Json json = {{"kind", study::name(from.origin.kind)}};
    if (from.origin.kind == Kind::repeat) {
        json["trial"] = from.origin.index;
        json["repeat"] = from.origin.count;
        return json;
    }
    json["index"] = from.origin.index;
    if (!from.who.empty()) {
        json["who"] = from.who;
        json["request"] = from.asked;
    }
    if (!from.model.empty()) {
        json["model"] = from.model;
        json["results"] = from.results;
    }
    if (from.expected) json["expected"] = number(*from.expected);
    if (from.gain) json["gain"] = number(*from.gain);
    if (!from.note.empty()) json["note"] = from.note;
    if (from.origin.kind == Kind::stopgap && from.origin.count > 0) json["failures"] = from.origin.count;
    if (!from.failure.empty()) json["failure"] = from.failure;
    return json;
}

Json side_json(const tuner::SideWork& work) {
    Json metrics = Json::object();
    for (const study::NamedMetric& metric : work.metrics) metrics[metric.name] = number(metric.value);
    Json json = {{"state", tuner::name(work.phase)}, {"attempts", work.attempt.value()}, {"metrics", metrics}};
    if (!work.failure.empty()) json["message"] = study::describe(work.failure);
    json["start"] = work.attempt == study::AttemptId{} ? Json(nullptr) : Json(base::to_seconds(work.started));
    json["end"] = work.ended == study::StudyTime{} ? Json(nullptr) : Json(base::to_seconds(work.ended));
    return json;
}

/// `attempts`: indices into study.starts.
Json trial_json(const LoadedStudy& study, study::TrialId id, std::span<const std::size_t> attempts) {
    const Trial& t = study.tuner->state().trial(id);
    Json checkpoints = Json::array();
    for (const auto& c : t.checkpoints) {
        checkpoints.push_back({{"iteration", c.iteration},
                               {"value", c.value ? number(*c.value) : Json(nullptr)},
                               {"path", c.path},
                               {"bytes", c.bytes},
                               {"digest", fmt::format("{:016x}", c.digest)}});
    }
    Json runs = Json::array();
    for (const std::size_t index : attempts) runs.push_back(attempt_json(study, study.starts[index]));
    const bool closed = study::is_final(t.phase);
    const study::Mode mode = study.tuner->spec().objective.mode;
    Json trial = {{"id", id.value()},
                  {"configuration", json_of(tuner::best_configuration(t))},
                  {"origin", origin_json(study.origins.of(id, t.origin, mode))},
                  {"state", study::name(t.phase)},
                  {"reason", reason_text(t)},
                  {"message", study::describe(t.failure)},
                  {"iterations", t.iteration},
                  {"seconds", t.seconds}};
    trial["best"] = t.reported && !std::isnan(t.best) ? Json{{"value", number(t.best)}, {"iteration", t.best_iteration}}
                                                      : Json(nullptr);
    if (!t.others.empty()) { // several objectives: all of them, in the order of study.objectives
        trial["best"]["values"] = Json::array({number(t.best)});
        for (const double value : t.others) trial["best"]["values"].push_back(number(value));
    }
    const auto* weights = tuner::best_checkpoint(t, study.tuner->spec().objective);
    if (weights != nullptr && !trial["best"].is_null()) trial["best"]["checkpoint_iteration"] = weights->iteration;
    trial["last"] = t.reported ? Json{{"value", number(t.last)}, {"iteration", t.attempt.iteration}} : Json(nullptr);
    if (!t.takeovers.empty()) trial["takeovers"] = takeovers_json(t);
    // Also where only the best report rests on a takeover, which was undone since: `configuration` is that of the
    // report.
    if (!t.takeovers.empty() || t.newest_takeover > 0 || tuner::best_configuration(t) != t.configuration)
        trial["schedule"] = schedule_json(lineage(study.tuner->state(), id));
    const std::uint32_t repeats = study.tuner->spec().searcher.repeats;
    if (repeats > 1) trial["repeats_of"] = tuner::first_repeat(id, repeats).value();
    if (const auto* work = study.tuner->state().side.find({study::SideTask::Kind::after_trial, id}))
        trial["after_trial"] = side_json(*work);
    trial["checkpoints"] = checkpoints;
    trial["attempts"] = runs;
    if (const auto tags = study.notes.tags(id); !tags.empty()) trial["tags"] = tags;
    for (const studydir::Note& note : study.notes.of(id))
        if (!note.text.empty()) trial["notes"].push_back({{"time", note.time}, {"who", note.who}, {"note", note.text}});
    trial["created"] = base::to_seconds(t.created);
    trial["start"] = attempts.empty() ? Json(nullptr) : Json(base::to_seconds(t.started));
    trial["end"] = closed ? Json(base::to_seconds(t.ended)) : Json(nullptr);
    return trial;
}

/// Indices into study.starts, sorted by trial, each trial's in the order of its attempts.
std::vector<std::size_t> by_trial(const LoadedStudy& study) {
    std::vector<std::size_t> order(study.starts.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return study.starts[a].trial < study.starts[b].trial; });
    return order;
}

/// The JSON text, indented for nesting at `level`, with one space per level.
std::string text_at(const Json& json, std::size_t level) {
    // Replace bytes in names and messages that are not UTF-8.
    const std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace);
    std::string indented;
    for (const char c : text) {
        indented += c;
        if (c == '\n') indented.append(level, ' '); // inside a JSON string it is written as \\n
    }
    return indented;
}

/// An array of the outermost object, written element by element.
class ArrayWriter {
  public:
    ArrayWriter(std::ostream& out, const char* name) : out_(out) { out_ << ",\n \"" << name << "\": ["; }
    void add(const Json& element) {
        out_ << (any_ ? ",\n  " : "\n  ") << text_at(element, 2);
        any_ = true;
    }
    void end() { out_ << (any_ ? "\n ]" : "]"); }

  private:
    std::ostream& out_;
    bool any_ = false;
};

/// The cell for a text, byte for byte.
std::string csv_bytes(const std::string& text) {
    if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
    std::string quoted = "\"";
    for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    return quoted + "\"";
}

std::string csv(const std::string& text) { return csv_bytes(base::as_utf8(text)); }

/// The cells best and best_iteration; both empty when there is no best value, as in the JSON.
std::string best_cells(const Trial& trial) {
    if (!trial.reported || std::isnan(trial.best)) return ",";
    return space::float_text(trial.best) + ',' + std::to_string(trial.best_iteration);
}

/// The header: the table's own columns, then the study's names, made unique as in metrics.h5.
void write_header(std::ostream& out, std::vector<std::string> columns, const std::vector<storage::ChosenName>& chosen) {
    for (auto& name : storage::column_names({columns.begin(), columns.end()}, chosen))
        columns.push_back(std::move(name));
    for (std::size_t i = 0; i < columns.size(); ++i) out << (i == 0 ? "" : ",") << csv(columns[i]);
    out << "\r\n";
}

} // namespace

nlohmann::ordered_json json_of(const space::Value& value) {
    if (value.is_none()) return nullptr;
    if (value.is_bool()) return value.as_bool();
    if (value.is_int()) return value.as_int();
    if (value.is_double()) return number(value.as_double());
    if (value.is_string()) return value.as_string();
    Json list = Json::array();
    for (const auto& item : value.as_list()) list.push_back(json_of(item));
    return list;
}

nlohmann::ordered_json json_of(const space::Configuration& configuration) {
    Json json = Json::object();
    for (const auto& entry : configuration.entries()) json[entry.name] = json_of(entry.value);
    return json;
}

namespace {

/// Writes everything up to the reports; returns the names of the metrics. Takes the study by value, to free its memory.
std::vector<std::string> export_study_and_trials(const LoadedStudy study, std::ostream& out) {
    const auto& state = study.tuner->state();
    const auto& spec = study.tuner->spec();
    Json about = {{"name", spec.name},
                  {"uuid", state.uuid},
                  {"version", state.version},
                  {"metric", spec.objective.metric},
                  {"mode", study::name(spec.objective.mode)},
                  {"num_trials", spec.num_trials},
                  {"max_iterations", spec.max_iterations},
                  {"seed", spec.seed},
                  {"starts", study.began},
                  {"ended", state.ended},
                  {"exit_code", state.ended ? Json(static_cast<int>(state.outcome)) : Json(nullptr)},
                  {"outcome", state.end_message},
                  {"best_trial", state.best ? Json(state.best->value()) : Json(nullptr)}};
    if (spec.searcher.repeats > 1) {
        about["repeats"] = spec.searcher.repeats;
        about["best_mean"] = number(value_of_best(*study.tuner));
    }
    if (spec.objective.several()) {
        for (const study::Goal& goal : spec.objective.goals())
            about["objectives"].push_back({{"metric", goal.metric}, {"mode", study::name(goal.mode)}});
        about["front"] = Json::array();
        for (const study::TrialId id : front_of(*study.tuner)) about["front"].push_back(id.value());
    }
    if (!state.simulation.empty()) about["simulated"] = state.simulation;
    for (const auto kind : {study::SideTask::Kind::before, study::SideTask::Kind::after})
        if (const auto* work = state.side.find({kind, {}})) about[std::string(study::name(kind))] = side_json(*work);
    out << "{\n \"schema\": 1,\n \"study\": " << text_at(about, 1);
    ArrayWriter trials(out, "trials");
    const std::vector<std::size_t> order = by_trial(study);
    auto attempt = order.begin();
    for (std::uint32_t i = 0; i < state.trials.size(); ++i) {
        const auto first = attempt;
        while (attempt != order.end() && study.starts[*attempt].trial.value() == i) ++attempt;
        trials.add(trial_json(study, study::TrialId{i}, {first, attempt}));
    }
    trials.end();
    return state.metrics;
}

} // namespace

void export_json(LoadedStudy&& study, const EachReport& each_report, std::ostream& out) {
    const std::vector<std::string> names = export_study_and_trials(std::move(study), out);
    ArrayWriter reports(out, "reports");
    each_report([&](const study::Reported& report) {
        Json metrics = Json::object();
        Json::object_t::Container& members = metrics.get_ref<Json::object_t&>(); // its operator[] searches all before
        for (const auto& metric : report.metrics)
            members.emplace_back(names.at(metric.id.value()), number(metric.value));
        reports.add({{"trial", report.trial.value()},
                     {"attempt", report.attempt.value()},
                     {"iteration", report.iteration},
                     {"seconds", report.seconds},
                     {"time", base::to_seconds(report.at)},
                     {"metrics", metrics}});
    });
    reports.end();
    out << "\n}\n";
}

namespace {

/// The newest value of each metric of each trial, and that in the report of its best iteration.
struct TrialMetrics {
    LastMetrics last;
    LastMetrics at_best;
};

TrialMetrics trial_metrics(const tuner::State& state, const EachReport& each_report) {
    TrialMetrics metrics;
    each_report([&](const study::Reported& report) {
        metrics.last.add(report);
        if (state.trial(report.trial).best_iteration == report.iteration) metrics.at_best.add(report);
    });
    return metrics;
}

/// The cells of a trial's own columns.
void write_facts(std::ostream& out, const Trial& t) {
    const bool closed = study::is_final(t.phase);
    out << study::name(t.phase) << ',' << csv(closed ? study::describe(t.closed_by, t.closed_a, t.closed_b) : "") << ','
        << t.iteration << ',' << best_cells(t) << ',' << (t.reported ? space::float_text(t.last) : "") << ','
        << space::float_text(t.seconds) << ',' << t.attempt.id.value() << ',' << t.wanted_ranks << ','
        << (t.attempt.id.value() > 0 ? space::float_text(base::to_seconds(t.started)) : "") << ','
        << (closed ? space::float_text(base::to_seconds(t.ended)) : "") << ',' << csv(study::describe(t.failure));
}

} // namespace

void export_trials_csv(const tuner::Tuner& tuner, const EachReport& each_report, std::ostream& out,
                       const RowColumns& rows) {
    const auto& state = tuner.state();
    const auto& parameters = tuner.spec().space.parameters();
    std::vector<storage::ChosenName> chosen;
    for (const auto& parameter : parameters) chosen.push_back({parameter.name, "parameter"});
    for (const auto& name : rows.names) chosen.push_back({name, "column"});
    std::vector<std::size_t> others; // metrics beside the objective
    for (std::size_t i = 0; i < state.metrics.size(); ++i) {
        if (state.metrics[i] == tuner.spec().objective.metric) continue;
        others.push_back(i);
        chosen.push_back({state.metrics[i], "metric"});
        chosen.push_back({state.metrics[i] + ".at_best", "metric"});
    }
    const std::vector<std::string> side = side_metrics(state);
    for (const auto& name : side) chosen.push_back({name, "metric"});
    std::vector<std::string> own = {"trial",   "state",    "reason", "iterations", "best", "best_iteration", "last",
                                    "seconds", "attempts", "ranks",  "start",      "end",  "message"};
    const auto& objective = tuner.spec().objective;
    const auto ranks = objective.several() ? tuner::pareto_ranks(state.trials, objective) : std::vector<std::int64_t>();
    if (objective.several()) own.emplace_back("pareto_rank");
    write_header(out, std::move(own), chosen);
    const TrialMetrics metrics = others.empty() ? TrialMetrics{} : trial_metrics(state, each_report);
    const auto cell = [&](const LastMetrics& values, study::TrialId trial, std::size_t metric) {
        out << ',';
        if (values.has(trial, metric)) out << space::float_text(values.of(trial, metric));
    };
    for (std::uint32_t i = 0; i < state.trials.size(); ++i) {
        const study::TrialId id{i};
        out << i << ',';
        write_facts(out, state.trials[i]);
        if (!ranks.empty()) out << ',' << (ranks[i] < 0 ? "" : std::to_string(ranks[i]));
        for (const auto& parameter : parameters) {
            const auto* value = tuner::best_configuration(state.trials[i]).find(parameter.name);
            out << ',' << (value == nullptr ? "" : csv(value->text()));
        }
        if (rows.cells)
            for (const std::string& each : rows.cells(tuner::best_configuration(state.trials[i])))
                out << ',' << csv_bytes(each);
        for (const std::size_t metric : others) {
            cell(metrics.last, id, metric);
            cell(metrics.at_best, id, metric);
        }
        for (const auto& name : side) {
            const auto value = side_metric(state, id, name);
            out << ',' << (value ? space::float_text(*value) : "");
        }
        out << "\r\n";
    }
}

namespace {

/// Empty: the program did not end by itself.
std::string exit_code_of(const Trial& task) {
    if (task.phase == study::TrialPhase::finished) return "0";
    return task.failure.exit_code ? std::to_string(*task.failure.exit_code) : "";
}

/// What a task said that is no number, by name.
std::map<std::string, std::string> texts_of(const studydir::Notes& notes, study::TrialId task) {
    std::map<std::string, std::string> texts;
    for (const studydir::Note& note : notes.of(task)) {
        if (note.who != studydir::trial_itself || note.text.empty()) continue;
        const studydir::SaidValue value = studydir::said_value(note.text);
        texts[value.name] = value.text;
    }
    return texts;
}

/// Names of values, in the order in which tasks gave the first of each: numbers, then what is only texts.
std::vector<std::string> value_names(const LoadedStudy& study) {
    const auto& state = study.tuner->state();
    std::vector<std::string> names;
    for (const std::string& metric : state.metrics)
        if (metric != study::task_metric) names.push_back(metric);
    std::set<std::string> known(names.begin(), names.end());
    for (std::uint32_t i = 0; i < state.trials.size(); ++i)
        for (const auto& [name, text] : texts_of(study.notes, study::TrialId{i}))
            if (known.insert(name).second) names.push_back(name);
    return names;
}

/// The cells of a task's own columns. `last`: its newest attempt; null: it has not started.
void write_task(std::ostream& out, const LoadedStudy& study, const Trial& task, const AttemptStart* last) {
    out << study::name(task.phase) << ',' << exit_code_of(task) << ',';
    if (last != nullptr && last->rank_count > 0)
        out << csv(host_of(study, last->incarnation, study.ranks[last->first_rank]));
    out << ',';
    if (last != nullptr && study::is_final(task.phase))
        out << space::float_text(base::to_seconds(task.ended - last->at));
    out << ',' << task.attempt.id.value() << ',' << csv(study::describe(task.failure));
}

} // namespace

void export_tasks_csv(const LoadedStudy& study, const EachReport& each_report, std::ostream& out,
                      const RowColumns& rows) {
    const auto& state = study.tuner->state();
    std::vector<std::string> parameters;
    std::vector<storage::ChosenName> chosen;
    for (const auto& parameter : study.tuner->spec().space.parameters())
        if (!rows.cells || parameter.name != study::row_parameter) parameters.push_back(parameter.name);
    for (const auto& name : parameters) chosen.push_back({name, "parameter"});
    for (const auto& name : rows.names) chosen.push_back({name, "column"});
    const std::vector<std::string> values = value_names(study);
    for (const auto& name : values) chosen.push_back({name, "metric"});
    const std::vector<std::string> side = side_metrics(state);
    for (const auto& name : side) chosen.push_back({name, "metric"});
    write_header(out, {"task", "state", "exit_code", "host", "seconds", "attempts", "message"}, chosen);
    LastMetrics numbers;
    if (!values.empty()) each_report([&](const study::Reported& report) { numbers.add(report); });
    std::map<std::string, std::size_t> ids;
    for (std::size_t i = 0; i < state.metrics.size(); ++i) ids.emplace(state.metrics[i], i);
    std::vector<const AttemptStart*> last(state.trials.size());
    for (const AttemptStart& start : study.starts)
        if (start.trial.value() < last.size()) last[start.trial.value()] = &start;
    for (std::uint32_t i = 0; i < state.trials.size(); ++i) {
        const study::TrialId id{i};
        const Trial& task = state.trials[i];
        out << i << ',';
        write_task(out, study, task, last[i]);
        for (const auto& name : parameters) {
            const auto* value = task.configuration.find(name);
            out << ',' << (value == nullptr ? "" : csv(value->text()));
        }
        if (rows.cells)
            for (const std::string& each : rows.cells(task.configuration)) out << ',' << csv_bytes(each);
        const auto texts = texts_of(study.notes, id);
        for (const auto& name : values) {
            const auto metric = ids.find(name);
            const auto text = texts.find(name);
            out << ',';
            if (metric != ids.end() && numbers.has(id, metric->second))
                out << space::float_text(numbers.of(id, metric->second));
            else if (text != texts.end())
                out << csv(text->second);
        }
        for (const auto& name : side) {
            const auto value = side_metric(state, id, name);
            out << ',' << (value ? space::float_text(*value) : "");
        }
        out << "\r\n";
    }
}

void export_reports_csv(const std::vector<std::string>& metrics, const EachReport& each_report, std::ostream& out) {
    std::vector<storage::ChosenName> chosen;
    for (const auto& metric : metrics) chosen.push_back({metric, "metric"});
    write_header(out, {"trial", "attempt", "iteration", "seconds", "time"}, chosen);
    each_report([&](const study::Reported& report) {
        std::vector<std::string> cells(metrics.size());
        for (const auto& metric : report.metrics) {
            cells.at(metric.id.value()) = space::float_text(metric.value);
        }
        out << report.trial.value() << ',' << report.attempt.value() << ',' << report.iteration << ','
            << space::float_text(report.seconds) << ',' << space::float_text(base::to_seconds(report.at));
        for (const auto& cell : cells) out << ',' << cell;
        out << "\r\n";
    });
}

} // namespace ranktune::report
