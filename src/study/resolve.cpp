// SPDX-License-Identifier: Apache-2.0
// The resolved study file: everything written out, so that it means the same later and in another folder.
#include <algorithm>
#include <limits>
#include <set>
#include <string_view>

#include "base/joined.hpp"
#include "ranktune/study/parse.hpp"
#include "study/constraint.hpp"
#include "study/parse/foreign/foreign_range.hpp"
#include "study/parse/foreign/foreign_text.hpp"
#include "study/parse/key_rows.hpp"
#include "study/printed_values.hpp"
#include "study/toml_text.hpp"

namespace ranktune::study {
namespace {

/// Writes tables line by line.
class Writer {
  public:
    void table(std::string_view name) {
        if (!text_.empty()) text_ += "\n";
        text_ += "[" + std::string(name) + "]\n";
    }
    void line(std::string_view key, std::string_view value, std::string_view comment = {}) {
        (text_ += key) += " = " + std::string(value);
        if (!comment.empty()) (text_ += "  # ") += comment;
        text_ += "\n";
    }
    /// The keys of a table that one member each holds.
    void members(std::string_view table, const StudySpec& spec) {
        for (const KeyRow& row : key_rows()) {
            if (row.write == nullptr || row.key.substr(0, row.key.rfind('.')) != table) continue;
            if (const std::string value = row.write(spec); !value.empty()) line(row.name(), value);
        }
    }
    [[nodiscard]] std::string take() { return std::move(text_); }

  private:
    std::string text_;
};

std::string list_of(const auto& list, auto text_of_each) { return "[" + base::joined(list, text_of_each) + "]"; }

void write_study(const StudySpec& spec, Writer& out) {
    out.table("study");
    out.line("name", text_of(spec.name));
    if (spec.objective.several()) {
        const std::vector<Goal> goals = spec.objective.goals();
        out.line("metric", list_of(goals, [](const Goal& goal) { return text_of(goal.metric); }));
        out.line("mode", list_of(goals, [](const Goal& goal) { return text_of(goal.mode); }));
    } else {
        out.line("metric", text_of(spec.objective.metric));
        out.line("mode", text_of(spec.objective.mode));
    }
    if (const auto& constraints = spec.objective.constraints; !constraints.empty())
        out.line("constraints", list_of(constraints, [](const Constraint& each) { return text_of(text(each)); }));
    out.line("num_trials", std::to_string(spec.num_trials));
    out.line("max_iterations", std::to_string(spec.max_iterations));
    out.members("study", spec);
}

void write_program(const ProgramSpec& program, Writer& out) {
    if (!program.function.empty()) {
        out.line("python", text_of(program.function));
        if (program.restart_growth > 0) out.line("restart_growth", text_of(program.restart_growth));
    } else {
        out.line("command", text_of(program.command));
        out.line("flags",
                 program.flags == Flags::both ? text_of(std::string("both")) : text_of(program.flags != Flags::off));
    }
    if (!program.report.empty()) out.line("report", text_of(program.report));
    if (program.result != PrintedResult::none) out.line("result", text_of(std::string(name(program.result))));
    out.line("directory", text_of(program.directory));
    const auto variable = [](const auto& each) { return " " + each.name + " = " + text_of(each.value); };
    out.line("env", "{" + base::joined(program.env, variable, ",") + " }");
    out.line("keep_env", text_of(program.keep_env));
}

void write_trainable(const StudySpec& spec, Writer& out) {
    out.table("trainable");
    if (spec.trainable.program) {
        write_program(*spec.trainable.program, out);
        out.members("trainable", spec);
    } else {
        out.line("name", text_of(spec.trainable.name));
    }
    for (const auto& option : spec.trainable.options.entries()) out.line(option.name, text_of(option.value));
}

void write_data(const StudySpec& spec, Writer& out) {
    if (spec.data.empty()) return;
    out.table("data");
    out.members("data", spec);
    for (const DataFile& file : spec.data) out.line(file.name, text_of(file));
}

void write_resources(const StudySpec& spec, Writer& out) {
    out.table("resources");
    const ResourceSpec& resources = spec.resources;
    const bool some = resources.gpus == GpuUse::some;
    const std::string parameter = text_of("{" + resources.ranks_parameter + "}");
    const std::string ranks = resources.ranks_parameter.empty() || some ? std::to_string(resources.ranks) : parameter;
    out.line("ranks", ranks);
    if (resources.gpus == GpuUse::none) out.line("gpus", "0");
    if (some) out.line("gpus", parameter);
    const bool shared = resources.gpu_share < 1.0;
    if (resources.gpus == GpuUse::one_per_rank) out.line("gpus", shared ? text_of(resources.gpu_share) : ranks);
    out.members("resources", spec);
}

/// Whether a constant would read as something else when written plainly: a list is a choice, a call is a domain.
bool needs_long_form(const space::Value& value) {
    if (value.is_list()) return true;
    return value.is_string() &&
           (space::looks_like_call(value.as_string()) || !foreign_text(value.as_string(), "").empty());
}

/// The same of a choice: one between texts that are domains.
bool needs_long_form(const space::Choice& choice) {
    return std::ranges::any_of(
        choice.values, [](const space::Value& value) { return value.is_string() && is_domain(value.as_string()); });
}

/// The nested tables with a member that is called as in a range of another tool: `clip` of clip.min and clip.max.
std::set<std::string> range_like_tables(const space::SearchSpace& space) {
    std::set<std::string> tables;
    for (const space::Parameter& parameter : space.parameters()) {
        for (auto dot = parameter.name.find('.'); dot != std::string::npos; dot = parameter.name.find('.', dot + 1)) {
            const std::string member = parameter.name.substr(dot + 1, parameter.name.find('.', dot + 1) - dot - 1);
            if (is_word_of_ranges(member)) tables.insert(parameter.name.substr(0, dot));
        }
    }
    return tables;
}

/// Whether a parameter, written plainly, would be read as a bound of such a range.
bool reads_as_bound(const space::Parameter& parameter, const std::set<std::string>& range_like) {
    const auto dot = parameter.name.rfind('.');
    const bool plain = std::holds_alternative<space::Constant>(parameter.domain) ||
                       std::holds_alternative<space::Choice>(parameter.domain);
    return plain && dot != std::string::npos && range_like.contains(parameter.name.substr(0, dot));
}

bool holds_none(const space::Value& value) {
    return value.is_none() || (value.is_list() && std::ranges::any_of(value.as_list(), holds_none));
}

std::string parameter_text(const space::Parameter& parameter, const std::set<std::string>& range_like) {
    const auto* constant = std::get_if<space::Constant>(&parameter.domain);
    const auto* choice = std::get_if<space::Choice>(&parameter.domain);
    // A plain string under the name `condition` would be the condition of the table.
    const bool is_named_condition = parameter.name == "condition" || parameter.name.ends_with(".condition") ||
                                    parameter.name == "require" || parameter.name == "forbid";
    std::string value;
    if (constant != nullptr && constant->value.is_none()) {
        value = text_of(std::string("grid([None])")); // TOML has no such constant
    } else if (constant != nullptr) {
        value = text_of(constant->value);
    } else if (choice != nullptr) {
        // A plain list is one without an order here: see space_reader.cpp.
        const bool is_call = choice->ordered || space::in_order(choice->values) || !choice->weights.empty() ||
                             holds_none(choice->values);
        value = is_call ? text_of(space::full_text(*choice)) : text_of(space::Value(choice->values));
    } else {
        value = text_of(space::text(parameter.domain));
    }
    if (!parameter.condition && !is_named_condition && !reads_as_bound(parameter, range_like) &&
        (constant == nullptr || !needs_long_form(constant->value)) && (choice == nullptr || !needs_long_form(*choice)))
        return value;
    const bool is_value = constant != nullptr && !constant->value.is_none();
    std::string text = std::string("{ ") + (is_value ? "value" : "domain") + " = " + value;
    if (parameter.condition) text += ", condition = " + text_of(parameter.condition->text());
    return text + " }";
}

/// "from 4 to 8": for domains whose written bounds are not always values that are drawn.
std::string bounds_text(const space::Domain& domain) {
    const auto* integers = std::get_if<space::IntRange>(&domain);
    const auto* floats = std::get_if<space::FloatRange>(&domain);
    const auto in_words = [](const space::Value& least, const space::Value& greatest) {
        return "from " + least.text() + " to " + greatest.text();
    };
    if (integers != nullptr && integers->quantum == 1) return in_words(integers->lower, integers->upper);
    if (integers == nullptr && (floats == nullptr || floats->quantum == 0.0)) return "";
    const auto values = space::cardinality(domain);
    if (!values || *values == std::numeric_limits<std::uint64_t>::max()) return ""; // too many to count
    return in_words(space::value_at(domain, 0), space::value_at(domain, *values - 1));
}

void write_space(const StudySpec& spec, bool with_bounds, Writer& out) {
    out.table("space");
    for (const bool forbids : {false, true}) {
        std::vector<std::string> rules;
        for (const space::Rule& rule : spec.space.rules())
            if (rule.forbids == forbids) rules.push_back(rule.condition.text());
        if (!rules.empty()) out.line(forbids ? "forbid" : "require", text_of(rules));
    }
    const auto range_like = range_like_tables(spec.space);
    for (const space::Parameter& parameter : spec.space.parameters())
        out.line(parameter.name, parameter_text(parameter, range_like),
                 with_bounds ? bounds_text(parameter.domain) : "");
}

/// The options that apply, as the description lists them.
void write_algorithm(std::string_view table, const AlgorithmInfo& algorithm, const space::Configuration& options,
                     Writer& out) {
    out.table(table);
    out.line("type", text_of(algorithm.name));
    for (const AlgorithmOption& option : algorithm.options)
        if (applies(algorithm, options, option)) out.line(option.name, text_of(options.at(option.name)));
}

/// `start = [{ lr = 0.1, "opt.kind" = "sgd" }]`: one line, as every key.
void write_start(const SearcherSpec& searcher, Writer& out) {
    if (searcher.start.empty()) return;
    const auto value_text = [](const auto& entry) { return entry.name + " = " + text_of(entry.value); };
    out.line("start", list_of(searcher.start, [&](const space::Configuration& point) {
                 return "{ " + base::joined(point.entries(), value_text) + " }";
             }));
}

/// `warm_start = ["/data/a", { path = "/data/b.csv", metric = "acc" }]`
void write_warm_start(const SearcherSpec& searcher, Writer& out) {
    if (searcher.warm_start.empty()) return;
    out.line("warm_start", list_of(searcher.warm_start, [](const WarmSource& source) {
                 std::string entry = text_of(source.path);
                 if (source.metric.empty() && source.study.empty()) return entry;
                 entry = "{ path = " + entry;
                 if (!source.metric.empty()) entry += ", metric = " + text_of(source.metric);
                 if (!source.study.empty()) entry += ", study = " + text_of(source.study);
                 return entry + " }";
             }));
}

void write_explore(const SchedulerSpec& scheduler, Writer& out) {
    if (!scheduler.algorithm->explores) return;
    out.table("scheduler.explore"); // without a line: trials only take over states
    for (const Explored& each : scheduler.explore)
        out.line(each.name, each.factors.empty() ? text_of(std::string("resample")) : text_of(each.factors));
}

/// `lr = [[10, 0.05], [20, 0.01]]`
void write_schedule(const SchedulerSpec& scheduler, Writer& out) {
    if (scheduler.schedule.empty()) return;
    out.table("scheduler.schedule");
    for (const Scheduled& each : scheduler.schedule)
        out.line(each.name, list_of(each.changes, [](const Scheduled::Change& change) {
                     return "[" + std::to_string(change.after) + ", " + text_of(change.value) + "]";
                 }));
}

void write_stop(const StudySpec& spec, Writer& out) {
    const StopSpec& stop = spec.stop;
    if (!stop.metrics.empty() || stop.trial_time) out.table("stop");
    if (!stop.metrics.empty()) {
        out.line("metric", list_of(stop.metrics, [](const MetricStop& metric) {
                     const std::string op = metric.mode == Mode::max ? " >= " : " <= ";
                     return text_of(metric.metric + op + text_of(metric.threshold));
                 }));
    }
    out.members("stop", spec);
    const StudyStop& study = stop.study;
    if (study.target || study.no_better_in || study.iterations || study.trials_ok) {
        out.table("stop.study");
        out.members("stop.study", spec);
    }
    if (!stop.plateau) return;
    out.table("stop.plateau");
    out.line("metric", text_of(stop.plateau->metric));
    out.members("stop.plateau", spec);
}

void write_checkpoint(const CheckpointSpec& checkpoint, Writer& out) {
    out.table("checkpoint");
    if (!checkpoint.supported) out.line("supported", "false");
    switch (checkpoint.interval) {
        case CheckpointSpec::Interval::none:
            out.line("interval", "\"none\"");
            break;
        case CheckpointSpec::Interval::iterations:
            out.line("interval", std::to_string(checkpoint.iterations));
            break;
        case CheckpointSpec::Interval::time:
            out.line("interval", text_of(checkpoint.time));
            break;
        case CheckpointSpec::Interval::automatic:
            out.line("interval", "\"auto\"");
            out.line("mean_time_between_failures", text_of(checkpoint.mean_time_between_failures));
            break;
    }
    if (checkpoint.max_bytes) out.line("max_bytes", std::to_string(*checkpoint.max_bytes));
}

/// The quotes keep a file `train` of [data] apart from an option `data`.
void write_inputs(const StudySpec& spec, Writer& out) {
    std::vector<std::pair<std::string, std::string>> lines;
    for (const InputFile& input : spec.trainable.inputs) lines.emplace_back(input.option, text_of(input.content));
    for (const DataFile& file : spec.data)
        if (!file.content.empty()) lines.emplace_back(text_of("data." + file.name), text_of(file.content));
    if (!lines.empty()) out.table("inputs");
    for (const auto& [key, content] : lines) out.line(key, content);
}

std::string resolved(const StudySpec& spec, bool with_bounds) {
    Writer out;
    write_study(spec, out);
    write_trainable(spec, out);
    write_data(spec, out);
    write_resources(spec, out);
    write_space(spec, with_bounds, out);
    write_algorithm("searcher", *spec.searcher.algorithm, spec.searcher.options, out);
    out.members("searcher", spec);
    write_start(spec.searcher, out);
    write_warm_start(spec.searcher, out);
    write_algorithm("scheduler", *spec.scheduler.algorithm, spec.scheduler.options, out);
    write_explore(spec.scheduler, out);
    write_schedule(spec.scheduler, out);
    write_stop(spec, out);
    for (const char* table : {"failure", "checkpoint", "journal", "run", "slurm", "hooks"}) {
        if (std::string_view(table) == "checkpoint")
            write_checkpoint(spec.checkpoint, out);
        else
            out.table(table);
        out.members(table, spec);
    }
    if (spec.predict.by_program()) {
        out.table("predict");
        out.members("predict", spec);
    }
    for (const auto kind : {SideTask::Kind::before, SideTask::Kind::after_trial, SideTask::Kind::after}) {
        if (spec.side(kind).command.empty()) continue;
        out.table(name(kind));
        out.members(name(kind), spec);
    }
    write_inputs(spec, out);
    return out.take();
}

} // namespace

std::string resolved_toml(const StudySpec& spec) { return resolved(spec, false); }
std::string resolved_toml_with_bounds(const StudySpec& spec) { return resolved(spec, true); }

} // namespace ranktune::study
