// SPDX-License-Identifier: Apache-2.0
#include "report/screens/trial_table.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "ranktune/base/error.hpp"
#include "report/explain/endings.hpp"
#include "report/explain/next_steps.hpp"
#include "report/screens/front.hpp"
#include "report/screens/screens.hpp"
#include "report/view/history.hpp"
#include "report/view/side_tasks.hpp"
#include "storage/results.hpp"

namespace ranktune::report {
namespace {

using Field = TrialTable::Field;
using study::TrialId;
using study::TrialPhase;
using tuner::Trial;

/// `program`: until its first report it imports, loads its data and trains its first iteration.
std::string state_text(const Trial& t, bool interrupted, bool program) {
    if (interrupted && t.phase == TrialPhase::running) return "interrupted";
    if (t.on_hold) return fmt::format("held {}", t.iteration);
    switch (t.phase) {
        case TrialPhase::waiting:
        case TrialPhase::running: {
            const char* word = t.phase == TrialPhase::waiting ? "wait" : program && t.attempt.silent ? "start" : "run";
            return fmt::format("{} -> {}", word, t.target);
        }
        case TrialPhase::paused:
            return fmt::format("paused {}", t.iteration);
        case TrialPhase::failed:
            return t.failures + t.losses > 1 ? fmt::format("failed {}x", t.failures + t.losses) : "failed";
        default:
            return std::string(study::name(t.phase));
    }
}

/// "#5@20 (3)": what the trial took over last, and how often it did.
std::string takeover_text(const Trial& trial) {
    if (trial.takeovers.empty()) return "-";
    const tuner::Donor& donor = trial.takeovers.back().donor;
    return fmt::format("#{}@{} ({})", donor.trial.value(), donor.checkpoint.iteration, trial.takeovers.size());
}

std::optional<space::Value> known_number(double value) {
    return std::isnan(value) ? std::nullopt : std::optional<space::Value>(value);
}

/// Numbers before strings before others; within a kind by value.
bool comes_before(const space::Value& a, const space::Value& b) {
    if (a.is_number() && b.is_number()) return a.as_double() < b.as_double();
    if (a.is_string() && b.is_string()) return a.as_string() < b.as_string();
    if (a.is_bool() && b.is_bool()) return !a.as_bool() && b.as_bool();
    const auto kind = [](const space::Value& v) { return v.is_number() ? 0 : v.is_string() ? 1 : v.is_bool() ? 2 : 3; };
    return kind(a) < kind(b);
}

std::string newest_note(const studydir::Notes& notes, TrialId trial) {
    std::string text;
    for (const studydir::Note& note : notes.of(trial))
        if (!note.text.empty()) text = note.text;
    return text;
}

/// The fields that every study has.
std::vector<Field> own_fields(const tuner::Tuner& tuner, bool interrupted, const studydir::Notes* notes) {
    const auto* state = &tuner.state();
    const bool program = tuner.spec().trainable.program.has_value();
    const auto trial = [state](TrialId id) -> const Trial& { return state->trial(id); };
    std::vector<Field> fields;
    const auto words = [&](std::string name, auto text) {
        fields.push_back({std::move(name), [=](TrialId id) { return text(trial(id)); },
                          [=](TrialId id) { return std::optional<space::Value>(text(trial(id))); }, true});
    };
    const auto whole = [&](std::string name, auto number) {
        fields.push_back(
            {std::move(name), [=](TrialId id) { return std::to_string(number(trial(id))); },
             [=](TrialId id) { return std::optional<space::Value>(static_cast<std::int64_t>(number(trial(id)))); }});
    };
    fields.push_back({"trial",
                      [=](TrialId id) { return (state->leads(id) ? "*  #" : "#") + std::to_string(id.value()); },
                      [](TrialId id) { return std::optional<space::Value>(static_cast<std::int64_t>(id.value())); }});
    fields.push_back({"state", [=](TrialId id) { return state_text(trial(id), interrupted, program); },
                      [=](TrialId id) -> std::optional<space::Value> {
                          if (interrupted && trial(id).phase == TrialPhase::running) return "interrupted";
                          return std::string(study::name(trial(id).phase));
                      },
                      true});
    words("group", [](const Trial& t) { return t.attempt.live ? ranks_text(t.attempt.ranks) : std::string("-"); });
    fields.push_back(
        {"it", [=](TrialId id) { return trial(id).reported ? std::to_string(trial(id).iteration) : "-"; },
         [=](TrialId id) { return std::optional<space::Value>(static_cast<std::int64_t>(trial(id).iteration)); }});
    fields.push_back({"best", [=](TrialId id) { return metric_text(trial(id).best); },
                      [=](TrialId id) { return known_number(trial(id).reported ? trial(id).best : NAN); }});
    fields.push_back({"last", [=](TrialId id) { return metric_text(trial(id).reported ? trial(id).last : NAN); },
                      [=](TrialId id) { return known_number(trial(id).reported ? trial(id).last : NAN); }});
    if (tuner.spec().searcher.repeats > 1)
        fields.push_back({"mean", [&tuner](TrialId id) { return text_of_mean(tuner, id); },
                          [&tuner](TrialId id) {
                              return known_number(tuner::repetitions_of(id, tuner.state().trials, tuner.spec()).mean);
                          }});
    constexpr std::size_t two_numbers = 32; // which are not cut
    if (fields.back().name == "mean") fields.back().limit = two_numbers;
    whole("best_it", [](const Trial& t) { return t.best_iteration; });
    fields.push_back({"time", [=](TrialId id) { return trial(id).reported ? short_duration(trial(id).seconds) : "-"; },
                      [=](TrialId id) { return std::optional<space::Value>(trial(id).seconds); }});
    whole("attempts", [](const Trial& t) { return t.attempt.id.value(); });
    whole("bracket", [](const Trial& t) { return t.bracket; });
    whole("ranks", [](const Trial& t) { return t.wanted_ranks; });
    words("reason", [](const Trial& t) { return reason_text(t); });
    words("took_over", [](const Trial& t) { return takeover_text(t); });
    fields.back().title = "took over";
    fields.back().limit = two_numbers;
    if (notes == nullptr) return fields;
    fields.push_back({"tags", [=](TrialId id) { return base::join(notes->tags(id)); },
                      [=](TrialId id) -> std::optional<space::Value> {
                          space::Value::List tags;
                          for (std::string& tag : notes->tags(id)) tags.emplace_back(std::move(tag));
                          return space::Value(std::move(tags));
                      },
                      true});
    fields.push_back({"note", [=](TrialId id) { return newest_note(*notes, id); },
                      [=](TrialId id) { return std::optional<space::Value>(newest_note(*notes, id)); }, true});
    return fields;
}

/// Throws when no trial can ever be in state `word`.
void require_state(const std::string& word, const std::string& at) {
    std::vector<std::string> known{"interrupted"};
    for (std::size_t i = 0; i < study::phase_count; ++i) known.emplace_back(study::name(static_cast<TrialPhase>(i)));
    if (std::ranges::find(known, word) == known.end())
        throw base::UsageError(at + ": '" + word + "' is no state of a trial" +
                               base::suggestion(word, std::span<const std::string>(known)) +
                               "; known: " + base::join(known));
}

Field parameter_field(const tuner::State* state, const std::string& name) {
    return {name, [=](TrialId id) { return value_text(tuner::best_configuration(state->trial(id)), name); },
            [=](TrialId id) -> std::optional<space::Value> {
                const auto* value = tuner::best_configuration(state->trial(id)).find(name);
                return value == nullptr ? std::nullopt : std::optional(*value);
            }};
}

} // namespace

TrialTable::TrialTable(const tuner::Tuner& tuner, const TableRequest& request, bool interrupted, const Style& style)
    : tuner_(tuner), request_(request), style_(style), own_(own_fields(tuner, interrupted, request.notes)) {
    add_metrics();
    for (const auto& parameter : tuner_.spec().space.parameters())
        parameters_.push_back(parameter_field(&tuner_.state(), parameter.name));
    name_apart();
    if (request_.columns.empty()) choose_columns();
    for (const std::string& name : request_.columns) shown_.push_back(&field(name, "--columns"));
    take_sort();
    if (!request_.filter.empty()) take_filter();
}

void TrialTable::add_metrics() {
    const std::string& objective = tuner_.spec().objective.metric;
    metrics_.push_back(*std::ranges::find(own_, "best", &Field::name));
    metrics_.back().name = objective;
    const auto goals = tuner_.spec().objective.goals();
    for (std::size_t i = 1; i < goals.size(); ++i) {
        const auto value = [state = &tuner_.state(), i](TrialId id) { return objective_value(state->trial(id), i); };
        metrics_.push_back({goals[i].metric, [=](TrialId id) { return metric_text(value(id)); },
                            [=](TrialId id) { return known_number(value(id)); }});
    }
    const auto& names = tuner_.state().metrics;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (std::ranges::find(goals, names[i], &study::Goal::metric) != goals.end()) continue;
        metrics_.push_back({.name = names[i], .metric = i});
    }
    for (const std::string& name : side_metrics(tuner_.state())) {
        const auto value = [state = &tuner_.state(), name](TrialId id) { return side_metric(*state, id, name); };
        metrics_.push_back({name, [=](TrialId id) { return metric_text(value(id).value_or(NAN)); },
                            [=](TrialId id) { return known_number(value(id).value_or(NAN)); }});
    }
}

void TrialTable::name_apart() {
    std::set<std::string> taken;
    for (const Field& each : own_) taken.insert(each.name);
    std::vector<storage::ChosenName> chosen;
    for (const Field& each : parameters_) chosen.push_back({each.name, "parameter"});
    for (const Field& each : metrics_) chosen.push_back({each.name, "metric"});
    const auto names = storage::column_names(std::move(taken), std::move(chosen));
    auto name = names.begin();
    for (auto* fields : {&parameters_, &metrics_})
        for (Field& each : *fields) {
            each.apart = each.name != *name;
            each.name = *name++;
        }
}

const Field* TrialTable::find(const std::string& name) const {
    const auto in = [](const std::vector<Field>& fields, std::string_view wanted) -> const Field* {
        const auto found = std::ranges::find(fields, wanted, &Field::name);
        return found == fields.end() ? nullptr : &*found;
    };
    if (const Field* found = in(own_, name)) return found;
    if (const Field* found = in(parameters_, name)) return found;
    if (const Field* found = in(metrics_, name)) return found;
    if (name.starts_with("metric.")) return in(metrics_, std::string_view(name).substr(7));
    return name.starts_with("parameter.") ? in(parameters_, std::string_view(name).substr(10)) : nullptr;
}

/// `where`: the option, and perhaps the column of its text.
const Field& TrialTable::field(const std::string& name, const std::string& where) const {
    if (const Field* found = find(name)) return *found;
    std::vector<std::string> known;
    for (const auto* fields : {&own_, &metrics_, &parameters_})
        for (const Field& each : *fields) known.push_back(each.name);
    throw base::UsageError(where + ": '" + name + "' is no metric, hyper-parameter or column of this study" +
                           base::suggestion(name, std::span<const std::string>(known)) + " (" + base::join(known) +
                           ")" +
                           (tuner_.state().metrics.empty() ? "; more metrics are known when a trial reports" : ""));
}

void TrialTable::choose_columns() {
    for (const char* name : {"trial", "state", "group", "it"}) shown_.push_back(find(name));
    const std::size_t goals = tuner_.spec().objective.goals().size();
    for (std::size_t i = 0; i < goals; ++i) shown_.push_back(&metrics_[i]);
    if (const Field* mean = find("mean"); mean != nullptr && tuner_.spec().searcher.repeats > 1) shown_.push_back(mean);
    for (std::size_t i = 0; i < parameters_.size(); ++i)
        if (!std::holds_alternative<space::Constant>(tuner_.spec().space.parameters()[i].domain))
            shown_.push_back(&parameters_[i]);
    // A trial on a schedule of its own takes over nobody else's state.
    const auto& trials = tuner_.state().trials;
    bool any = false;
    for (std::uint32_t i = 0; i < trials.size() && !any; ++i)
        any = !trials[i].takeovers.empty() && trials[i].takeovers.back().donor.trial != TrialId{i};
    if (any) shown_.push_back(find("took_over"));
    for (std::size_t i = goals; request_.more_columns && i < metrics_.size(); ++i) {
        if (metrics_[i].apart) // mostly the current value of that hyper-parameter
            left_out_.push_back(metrics_[i].name);
        else
            shown_.push_back(&metrics_[i]);
    }
    shown_.push_back(find("time"));
}

void TrialTable::take_sort() {
    std::string name = request_.sort;
    const auto colon = name.rfind(':');
    if (const std::string order = colon == std::string::npos ? "" : name.substr(colon + 1);
        order == "desc" || order == "asc") {
        descending_ = order == "desc";
        name.resize(colon);
    } else if (colon != std::string::npos && find(name) == nullptr) {
        throw base::UsageError("--sort: '" + order + "' is no order; accepted: NAME, NAME:asc, NAME:desc");
    }
    if (!name.empty()) sort_ = &field(name, "--sort");
}

void TrialTable::take_filter() {
    try {
        filter_.emplace(
            request_.filter,
            [this](const std::string& name, const std::string& at) {
                filters_metrics_ |= field(name, at).metric.has_value();
            },
            [](const std::string& name, const std::string& word, const std::string& at) {
                if (name == "state") require_state(word, at);
            });
    } catch (const base::UsageError& error) {
        throw base::UsageError(std::string("--filter: ") + error.what());
    }
}

/// All trials that pass the filter, in the order of the table. The caller cuts the list at max_rows.
std::vector<TrialId> TrialTable::selected(const LastMetrics& last) const {
    std::vector<TrialId> ids = by_rank(tuner_);
    if (filter_)
        std::erase_if(ids, [&](TrialId id) {
            return !filter_->holds([&](const std::string& name) { return value_of(field(name, ""), id, last); });
        });
    if (sort_ == nullptr) return ids;
    std::ranges::sort(ids);
    std::vector<std::pair<std::optional<space::Value>, TrialId>> keyed;
    for (const TrialId id : ids) keyed.emplace_back(value_of(*sort_, id, last), id);
    std::ranges::stable_sort(keyed, [this](const auto& a, const auto& b) {
        if (!a.first || !b.first) return a.first.has_value() && !b.first.has_value(); // without a value: last
        return descending_ ? comes_before(*b.first, *a.first) : comes_before(*a.first, *b.first);
    });
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = keyed[i].second;
    return ids;
}

std::optional<space::Value> TrialTable::value_of(const Field& field, TrialId id, const LastMetrics& last) {
    return field.metric ? known_number(last.of(id, *field.metric)) : field.value(id);
}

/// `last`: null where the field is not a metric that needs it.
TextColumn TrialTable::column_of(const Field& field, const std::vector<TrialId>& ids, const LastMetrics* last) {
    TextColumn column{field.title.empty() ? field.name : field.title, field.left, {}, field.limit};
    for (const TrialId id : ids)
        column.cells.push_back(printable(field.metric ? metric_text(last->of(id, *field.metric)) : field.cell(id)));
    return column;
}

/// Drops metrics and hyper-parameters, from the last one on, until a row fits; on very narrow terminals also time,
/// iteration and group. Returns the names of those that were dropped.
std::vector<std::string> TrialTable::drop_to_fit(std::vector<TextColumn>& columns, std::size_t width) {
    constexpr std::size_t fixed = 5; // trial, state, group, iteration, objective; then those that vary; time
    std::vector<std::string> dropped;
    const auto drop = [&](std::size_t at) {
        dropped.insert(dropped.begin(), columns[at].title);
        columns.erase(columns.begin() + static_cast<std::ptrdiff_t>(at));
    };
    if (columns.size() > fixed + 1 && width_of(columns) > width) {
        // The last column stays, and as many of the others as fit: a study may have tens of thousands of metrics.
        std::vector<TextColumn> kept(columns.begin(), columns.begin() + fixed);
        kept.push_back(columns.back());
        std::size_t next = fixed;
        for (; next + 1 < columns.size(); ++next) {
            kept.insert(kept.end() - 1, columns[next]);
            if (width_of(kept) <= width) continue;
            kept.erase(kept.end() - 2);
            break;
        }
        for (std::size_t at = next; at + 1 < columns.size(); ++at) dropped.push_back(columns[at].title);
        columns = std::move(kept);
    }
    for (const std::size_t dispensable : {5, 3, 2})
        if (width_of(columns) > width) drop(dispensable);
    return dropped;
}

/// What the table leaves out, and how to see it.
std::string TrialTable::hidden_text(std::size_t trials, std::vector<std::string> columns,
                                    const std::string& directory) const {
    std::string text;
    if (trials > 0) {
        std::string more = fmt::format(" {} more", trials);
        const std::string all = ": " + command_text({"status", "--all", directory});
        if (display_width(more + all) <= style_.width) more += all; // never a truncated command
        text += encoded(fit(more, style_.width), style_) + "\n";
    }
    if (request_.more_columns && !columns.empty())
        text += encoded(paragraph(fmt::format(" not shown: {}; --columns NAME,NAME chooses",
                                              base::join_some(std::move(columns), 12)),
                                  style_),
                        style_);
    return text;
}

std::string TrialTable::text(const LastMetrics& last, const std::string& directory) const {
    std::vector<TrialId> ids = selected(last);
    if (ids.empty())
        return filter_ && tuner_.state().trials.size() > 0 ? "\n no trial is selected by the filter\n" : "";
    const std::size_t hidden = ids.size() > request_.max_rows ? ids.size() - request_.max_rows : 0;
    ids.resize(ids.size() - hidden);
    std::vector<TextColumn> columns;
    for (const Field* field : shown_) columns.push_back(column_of(*field, ids, &last));
    std::vector<std::string> dropped;
    std::size_t width = style_.width;
    if (request_.columns.empty())
        dropped = drop_to_fit(columns, width);
    else
        width = std::max(width, width_of(columns));
    const auto line = [&](const std::string& row, Tone tone) {
        return paint(encoded(fit(row, width), style_), tone, style_) + "\n";
    };
    const TextRows table(columns);
    std::string rows = "\n" + line(table.titles(), Tone::plain);
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const bool failed = tuner_.state().trial(ids[i]).phase == TrialPhase::failed;
        const Tone tone = tuner_.state().leads(ids[i]) ? Tone::good : failed ? Tone::bad : Tone::plain;
        rows += line(table.cells(i), tone);
    }
    dropped.insert(dropped.end(), left_out_.begin(), left_out_.end());
    return rows + hidden_text(hidden, std::move(dropped), directory);
}

/// Whether a metric beside the objective is needed, where there is room for one.
bool TrialTable::needs_metrics() const {
    if (filters_metrics_ || (sort_ != nullptr && sort_->metric)) return true;
    const auto is_metric = [](const Field* field) { return field->metric.has_value(); };
    if (!request_.columns.empty()) return std::ranges::any_of(shown_, is_metric);
    if (std::ranges::none_of(shown_, is_metric)) return false;
    // Room for one is there only if everything else fits, and a number of usual width.
    std::vector<TrialId> ids = by_rank(tuner_);
    ids.resize(std::min(ids.size(), request_.max_rows));
    std::vector<TextColumn> columns;
    for (const Field* field : shown_)
        if (!field->metric) columns.push_back(column_of(*field, ids, nullptr));
    constexpr std::size_t usual = 8;
    return width_of(columns) + usual <= style_.width;
}

} // namespace ranktune::report
