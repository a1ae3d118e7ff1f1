// SPDX-License-Identifier: Apache-2.0
#include "report/screens/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/joined.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/study/objective.hpp"
#include "report/export/export.hpp"
#include "report/screens/text_table.hpp"

namespace ranktune::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t steps = 10; // rows of each table

std::uint64_t iterations_of(const StudyView& view) { return view.training.iterations + view.training.again; }

double best_value(const StudyView& view) { return view.best_steps.empty() ? NAN : view.best_steps.back().value; }

/// The newest improvement for which `early` holds.
double best_while(const StudyView& view, const std::function<bool(const BestStep&)>& early) {
    double best = NAN;
    for (const BestStep& step : view.best_steps) {
        if (!early(step)) break;
        best = step.value;
    }
    return best;
}

/// "lr = loguniform(1e-4, 1.0), hidden = ..."
std::string space_text(const StudyView& view) {
    return base::joined(view.parameters,
                        [](const auto& parameter) { return parameter.name + " = " + space::text(parameter.domain); });
}

/// A sentence when a property is not the same in all studies.
void note_unless_same(std::span<const ComparedStudy> studies, std::vector<std::string>& notes, const std::string& what,
                      const std::function<std::string(const StudyView&)>& property) {
    const std::string first = property(studies.front().view);
    for (const ComparedStudy& study : studies.subspan(1))
        if (const std::string other = property(study.view); other != first) {
            notes.push_back(
                fmt::format("{}: {} in {}, {} in {}", what, first, studies.front().directory, other, study.directory));
            return;
        }
}

/// A column for each study, the best of every row marked.
std::vector<TextColumn> value_columns(std::span<const ComparedStudy> studies,
                                      const std::function<double(const StudyView&, std::size_t row)>& value) {
    const study::Mode mode = studies.front().view.mode;
    std::vector<TextColumn> columns;
    for (const ComparedStudy& study : studies) columns.push_back({printable(study.directory), false, {}, 24});
    for (std::size_t row = 0; row < steps; ++row) {
        double best = -INFINITY;
        for (const ComparedStudy& study : studies) best = std::max(best, study::score(value(study.view, row), mode));
        for (std::size_t i = 0; i < studies.size(); ++i) {
            const double cell = value(studies[i].view, row);
            const bool leads = studies.size() > 1 && std::isfinite(cell) && study::score(cell, mode) == best;
            columns[i].cells.push_back(metric_text(cell) + (leads ? "*" : " "));
        }
    }
    return columns;
}

std::string facts_text(std::span<const ComparedStudy> studies, const Style& style) {
    TextColumn name{"study", true, {}, 24};
    TextColumn searcher{"searcher", true};
    TextColumn scheduler{"scheduler", true};
    TextColumn trials{"trials"};
    TextColumn iterations{"iterations"};
    TextColumn time{"time"};
    TextColumn best{studies.front().view.metric, false, {}, 24};
    for (const auto& [directory, view] : studies) {
        name.cells.push_back(printable(directory));
        searcher.cells.push_back(view.searcher);
        scheduler.cells.push_back(view.scheduler);
        trials.cells.push_back(grouped(view.trials.size()));
        iterations.cells.push_back(grouped(iterations_of(view)));
        time.cells.push_back(short_duration(view.now_s));
        best.cells.push_back(view.best ? fmt::format("{}  #{}", metric_text(best_value(view)), view.best->value())
                                       : std::string("-"));
    }
    const std::vector<TextColumn> columns{name, searcher, scheduler, trials, iterations, time, best};
    return TextRows(columns).all(style);
}

/// Iterations or seconds at row `row` of `steps`, up to the largest of all studies.
double at_row(double most, std::size_t row) { return most * static_cast<double>(row + 1) / static_cast<double>(steps); }

} // namespace

void require_same_objective(std::span<const ComparedStudy> studies) {
    const ComparedStudy& first = studies.front();
    for (const ComparedStudy& study : studies.subspan(1)) {
        if (study.view.metric == first.view.metric && study.view.mode == first.view.mode) continue;
        throw base::UsageError(
            fmt::format("'{}' is after the {} of {}, '{}' after the {} of {}: their values cannot be "
                        "compared; give studies with the same metric and mode",
                        first.directory, study::name(first.view.mode), first.view.metric, study.directory,
                        study::name(study.view.mode), study.view.metric));
    }
}

std::vector<std::string> differences(std::span<const ComparedStudy> studies) {
    std::vector<std::string> notes;
    note_unless_same(studies, notes, "trainable", [](const StudyView& view) { return view.trainable; });
    note_unless_same(studies, notes, "max_iterations",
                     [](const StudyView& view) { return std::to_string(view.max_iterations); });
    note_unless_same(studies, notes, "search space", space_text);
    note_unless_same(studies, notes, "simulated",
                     [](const StudyView& view) { return std::string(view.simulated.empty() ? "no" : "yes"); });
    return notes;
}

double best_after_iterations(const StudyView& view, std::uint64_t iterations) {
    return best_while(view, [&](const BestStep& step) { return step.iterations <= iterations; });
}

double best_after_seconds(const StudyView& view, double seconds) {
    return best_while(view, [&](const BestStep& step) { return step.at_s <= seconds; });
}

std::string comparison_text(std::span<const ComparedStudy> studies, const Style& style) {
    const StudyView& first = studies.front().view;
    std::string text = paragraph(fmt::format("{} of {}", study::name(first.mode), first.metric), style) + "\n";
    text += facts_text(studies, style);
    for (const auto& [directory, view] : studies)
        if (!view.simulated.empty()) text += paragraph(unbroken(directory) + " is " + view.simulated, style);
    for (const std::string& difference : differences(studies)) text += prose("differ", difference, style);

    std::uint64_t most = 0;
    double longest = 0.0;
    for (const auto& [directory, view] : studies) {
        most = std::max(most, iterations_of(view));
        longest = std::max(longest, view.now_s);
    }
    const auto iterations_at = [&](std::size_t row) {
        return static_cast<std::uint64_t>(std::llround(at_row(static_cast<double>(most), row)));
    };
    TextColumn iterations{"iterations"};
    TextColumn time{"time"};
    for (std::size_t row = 0; row < steps; ++row) {
        iterations.cells.push_back(grouped(iterations_at(row)));
        time.cells.push_back(short_duration(at_row(longest, row)));
    }
    const auto table = [&](TextColumn axis, const std::function<double(const StudyView&, std::size_t)>& value) {
        std::vector<TextColumn> columns = value_columns(studies, value);
        columns.insert(columns.begin(), std::move(axis));
        return TextRows(columns).all(style);
    };
    text += "\n" + paragraph("best so far, by iterations trained by all trials (*: leads)", style);
    text += table(std::move(iterations), [&](const StudyView& view, std::size_t row) {
        return best_after_iterations(view, iterations_at(row));
    });
    text += "\n" + paragraph("best so far, by time", style);
    text += table(std::move(time), [&](const StudyView& view, std::size_t row) {
        return best_after_seconds(view, at_row(longest, row));
    });
    return text;
}

Json comparison_json(std::span<const ComparedStudy> studies) {
    Json all = Json::array();
    for (const auto& [directory, view] : studies) {
        Json improvements = Json::array();
        for (const BestStep& step : view.best_steps)
            improvements.push_back({{"time", step.at_s},
                                    {"iterations", step.iterations},
                                    {"trial", step.trial.value()},
                                    {"value", json_of(step.value)}});
        Json& entry = all.emplace_back(Json{{"directory", directory},
                                            {"name", view.name},
                                            {"searcher", view.searcher},
                                            {"scheduler", view.scheduler},
                                            {"trials", view.trials.size()},
                                            {"iterations", iterations_of(view)},
                                            {"seconds", view.now_s},
                                            {"core_hours", view.cost.core_hours()},
                                            {"best_trial", view.best ? Json(view.best->value()) : Json(nullptr)},
                                            {"improvements", std::move(improvements)}});
        if (!view.simulated.empty()) entry["simulated"] = true;
    }
    return {{"schema", 1},
            {"metric", studies.front().view.metric},
            {"mode", study::name(studies.front().view.mode)},
            {"differences", differences(studies)},
            {"studies", std::move(all)}};
}

} // namespace ranktune::report
