// SPDX-License-Identifier: Apache-2.0
#include "report/screens/study_list.hpp"

#include <algorithm>
#include <array>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/export/export.hpp"
#include "report/screens/text_table.hpp"
#include "report/view/history.hpp"
#include "report/view/wall_time.hpp"
#include "study/constraint.hpp"

namespace ranktune::report {
namespace {

using Json = nlohmann::ordered_json;

void sort_for_list(std::vector<ListedStudy>& studies) {
    const auto key = [](const ListedStudy& study) {
        return std::tuple(study.state != ListedState::running, -study.newest.value_or(0.0));
    };
    std::ranges::stable_sort(studies, [&](const ListedStudy& a, const ListedStudy& b) { return key(a) < key(b); });
}

std::string state_of(const ListedStudy& study) {
    std::string text(name(study.state));
    if (study.state == ListedState::failed && study.exit_code) text += fmt::format(" {}", *study.exit_code);
    return text;
}

} // namespace

std::string best_of(const ListedStudy& study) {
    if (study.front > 0) return fmt::format("front of {}", study.front);
    if (study.best) return fmt::format("{}  #{}", metric_text(study.best->value), study.best->trial);
    return study.nearest ? fmt::format("none, near: #{}", *study.nearest) : "-";
}

std::string age_text(const ListedStudy& study, double now) {
    if (study.simulated) return "simulated";
    return study.newest ? short_duration(std::max(0.0, now - *study.newest)) : "-";
}

std::string_view name(ListedState state) {
    constexpr std::array<std::string_view, 6> names{"running", "finished",    "stopped",
                                                    "failed",  "interrupted", "unreadable"};
    return names.at(static_cast<std::size_t>(state));
}

ListedState state_after(study::StudyOutcome outcome) {
    if (outcome == study::StudyOutcome::ok) return ListedState::finished;
    return outcome == study::StudyOutcome::resumable ? ListedState::stopped : ListedState::failed;
}

ListedStudy listed(const tuner::Tuner& tuner, const std::string& directory) {
    const tuner::State& state = tuner.state();
    ListedStudy study;
    study.directory = directory;
    study.name = tuner.spec().name;
    if (state.ended) {
        study.state = state_after(state.outcome);
        study.exit_code = static_cast<int>(state.outcome);
    }
    study.simulated = !state.simulation.empty();
    study.trials = state.trials.size();
    study.done = study.trials - state.in(study::TrialPhase::waiting)-state.in(study::TrialPhase::running);
    study.num_trials = tuner.spec().num_trials;
    study.metric = tuner.spec().objective.metric;
    study.metrics = study::metrics_text(tuner.spec().objective);
    study.mode = tuner.spec().objective.mode;
    study.front = state.front.trials().size();
    if (!state.best && state.nearest) study.nearest = state.nearest->trial.value();
    if (state.best) study.best = {state.best->value(), value_of_best(tuner)};
    if (!study.simulated) study.newest = time_of_newest_record(state); // virtual time began in 1970
    return study;
}

std::string studies_text(std::vector<ListedStudy> studies, double now, const Style& style) {
    sort_for_list(studies);
    TextColumn name{"study", true, {}, 40};
    TextColumn state{"state", true};
    TextColumn metric{"metric", true, {}, 24};
    TextColumn best{"best", false, {}, 24};
    TextColumn trials{"trials"};
    TextColumn age{"age"};
    for (const ListedStudy& study : studies) {
        name.cells.push_back(printable(study.directory));
        state.cells.push_back(state_of(study));
        metric.cells.push_back(printable(study.metrics));
        best.cells.push_back(best_of(study));
        trials.cells.push_back(
            study.state == ListedState::unreadable ? "-" : fmt::format("{}/{}", study.done, study.num_trials));
        age.cells.push_back(age_text(study, now));
    }
    std::vector<TextColumn> columns{name, state, metric, best, trials, age};
    if (width_of(columns) > style.width) columns.erase(columns.begin() + 2);
    const auto line = [&](const std::string& row, Tone tone) {
        return paint(encoded(fit(row, style.width), style), tone, style) + "\n";
    };
    const TextRows table(columns);
    std::string text = line(table.titles(), Tone::plain);
    for (std::size_t i = 0; i < studies.size(); ++i) {
        const ListedState stands = studies[i].state;
        const bool bad = stands == ListedState::failed || stands == ListedState::unreadable;
        text += line(table.cells(i), stands == ListedState::running ? Tone::good : bad ? Tone::bad : Tone::plain);
    }
    for (const ListedStudy& study : studies)
        if (!study.problem.empty())
            text += prose("problem", unbroken(study.directory) + ": " + printable(study.problem), style);
    return text;
}

Json studies_json(std::vector<ListedStudy> studies) {
    sort_for_list(studies);
    Json all = Json::array();
    for (const ListedStudy& study : studies) {
        Json json = {{"directory", study.directory}, {"name", study.name}, {"state", name(study.state)}};
        json["exit_code"] = study.exit_code ? Json(*study.exit_code) : Json(nullptr);
        if (study.state == ListedState::unreadable) {
            json["problem"] = study.problem;
            all.push_back(std::move(json));
            continue;
        }
        if (!study.problem.empty()) json["problem"] = study.problem;
        if (study.simulated) json["simulated"] = true;
        json["metric"] = study.metric;
        json["mode"] = study::name(study.mode);
        json["best"] =
            study.best ? Json{{"trial", study.best->trial}, {"value", json_of(study.best->value)}} : Json(nullptr);
        if (study.front > 0) json["front"] = study.front;
        if (study.nearest) json["nearest"] = *study.nearest;
        json["trials_done"] = study.done;
        json["trials"] = study.trials;
        json["num_trials"] = study.num_trials;
        json["newest"] = study.newest ? Json(wall_time_text(*study.newest)) : Json(nullptr);
        all.push_back(std::move(json));
    }
    return {{"schema", 1}, {"studies", std::move(all)}};
}

} // namespace ranktune::report
