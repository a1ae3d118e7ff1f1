// SPDX-License-Identifier: Apache-2.0
#include "report/screens/front.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "report/explain/endings.hpp"
#include "report/explain/next_steps.hpp"
#include "report/screens/text_table.hpp"

namespace ranktune::report {
namespace {

using study::TrialId;
using tuner::Trial;

constexpr std::size_t most_front_rows = 30;

template <class Cell>
TextColumn front_column(std::string title, bool left, const std::vector<TrialId>& ids, Cell cell) {
    TextColumn column{std::move(title), left};
    for (const TrialId id : ids) column.cells.push_back(printable(cell(id)));
    return column;
}

/// Trial, objectives, iteration, state, then as many hyper-parameters as fit; how many do not.
std::vector<TextColumn> front_columns(const tuner::Tuner& tuner, const std::vector<TrialId>& ids, std::size_t width,
                                      std::size_t& dropped) {
    const auto trial = [&](TrialId id) -> const Trial& { return tuner.state().trial(id); };
    std::vector<TextColumn> columns;
    columns.push_back(front_column("trial", false, ids, [](TrialId id) { return fmt::format("#{}", id.value()); }));
    const auto goals = tuner.spec().objective.goals();
    for (std::size_t i = 0; i < goals.size(); ++i)
        columns.push_back(front_column(goals[i].metric, false, ids,
                                       [&](TrialId id) { return metric_text(objective_value(trial(id), i)); }));
    columns.push_back(
        front_column("it", false, ids, [&](TrialId id) { return std::to_string(trial(id).best_iteration); }));
    columns.push_back(
        front_column("state", true, ids, [&](TrialId id) { return std::string(study::name(trial(id).phase)); }));
    const std::size_t fixed = columns.size();
    for (const auto& parameter : tuner.spec().space.parameters()) {
        if (std::holds_alternative<space::Constant>(parameter.domain)) continue;
        columns.push_back(front_column(parameter.name, false, ids, [&](TrialId id) {
            return value_text(tuner::best_configuration(trial(id)), parameter.name);
        }));
    }
    for (dropped = 0; width_of(columns) > width && columns.size() > fixed; ++dropped) columns.pop_back();
    return columns;
}

/// Where the weights of the trials are.
std::string front_weights(const tuner::Tuner& tuner, const std::vector<TrialId>& ids, const std::string& directory,
                          const Style& style) {
    std::string text;
    for (const TrialId id : ids) {
        const auto* checkpoint = tuner::best_checkpoint(tuner.state().trial(id), tuner.spec().objective);
        const std::string cause = unsaved_cause(tuner.state().trial(id));
        if (checkpoint == nullptr && cause.empty()) continue;
        text += prose(text.empty() ? "weights" : "",
                      checkpoint == nullptr
                          ? fmt::format("#{}  not saved: {}", id.value(), unbroken(cause))
                          : fmt::format("#{}  {} (iteration {})", id.value(),
                                        unbroken(directory + "/" + checkpoint->path), checkpoint->iteration),
                      style);
    }
    return text.empty() ? prose("weights", "no checkpoint was kept", style) : text;
}

} // namespace

std::string front_size_text(const tuner::State& state) {
    const auto& front = state.front.trials();
    return front.empty() ? std::string() : counted(front.size(), "trial");
}

std::string front_range_text(const tuner::Tuner& tuner) {
    const auto& state = tuner.state();
    const auto& front = state.front.trials();
    const auto goals = tuner.spec().objective.goals();
    std::string text = fmt::format("{} of {}: ", front.size(), counted(state.trials.size(), "trial"));
    for (std::size_t i = 0; i < goals.size(); ++i) {
        const auto ranked = [&](TrialId id) {
            return study::Ranked{study::score(objective_value(state.trial(id), i), goals[i].mode), id};
        };
        const auto [best, worst] = std::ranges::minmax_element(front, study::better, ranked);
        const auto end = [&](TrialId id) {
            return fmt::format("{} (#{})", metric_text(objective_value(state.trial(id), i)), id.value());
        };
        text += fmt::format("{}{} {}", i == 0 ? "" : ", ", goals[i].metric, end(*best));
        if (front.size() > 1) text += " to " + end(*worst);
    }
    return text;
}

double objective_value(const Trial& trial, std::size_t index) {
    if (index == 0) return trial.reported ? trial.best : tuner::not_a_number;
    return index <= trial.others.size() ? trial.others[index - 1] : tuner::not_a_number;
}

std::vector<TrialId> front_of(const tuner::Tuner& tuner) {
    std::vector<TrialId> ids = tuner.state().front.trials();
    const auto ranked = [&](TrialId id) {
        return study::Ranked{study::score(tuner.state().trial(id).best, tuner.spec().objective.mode), id};
    };
    std::ranges::sort(ids, [&](TrialId a, TrialId b) { return study::better(ranked(a), ranked(b)); });
    return ids;
}

std::string front_screen(const tuner::Tuner& tuner, const std::string& directory, const Style& style) {
    std::vector<TrialId> ids = front_of(tuner);
    std::string text = prose(
        "front",
        fmt::format("{} of {}: no trial{} is better in one objective without being worse in another",
                    front_size_text(tuner.state()), tuner.state().trials.size(), limits_text(tuner.spec().objective)),
        style);
    const std::size_t hidden = ids.size() - std::min(ids.size(), most_front_rows);
    ids.resize(ids.size() - hidden);
    std::size_t dropped = 0;
    const auto columns = front_columns(tuner, ids, style.width, dropped);
    const TextRows rows(columns);
    text += "\n" + fit(rows.titles(), style.width) + "\n";
    for (std::size_t i = 0; i < ids.size(); ++i) text += fit(rows.cells(i), style.width) + "\n";
    text += "\n";
    std::string more = hidden == 0 ? "" : counted(hidden, "more trial");
    if (dropped > 0) more += (more.empty() ? "" : " and ") + counted(dropped, "more hyper-parameter");
    if (!more.empty())
        text += prose("", more + ":", style) + labelled("", command_text({"best", directory, "--format", "json"}));
    if (!tuner.state().simulation.empty()) return text; // there are no weights
    return text + front_weights(tuner, ids, directory, style);
}

} // namespace ranktune::report
