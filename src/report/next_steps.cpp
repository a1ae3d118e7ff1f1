// SPDX-License-Identifier: Apache-2.0
#include "report/next_steps.hpp"

#include <algorithm>
#include <limits>

#include "ranktune/study/command_template.hpp"
#include "ranktune/study/parse.hpp"
#include "report/endings.hpp"
#include "report/plan.hpp"

#include <fmt/format.h>

namespace ranktune::report {
namespace {

using study::StudyOutcome;
using study::TrialPhase;

/// What shows a result, if there is one.
void add_views(std::vector<NextStep>& steps, const tuner::State& state, const std::string& directory) {
    if (state.best)
        steps.push_back({command_text({"best", directory}), "the best trial"});
    else
        steps.push_back({command_text({"status", "--all", directory}), "what became of each trial"});
}

/// How failed trials get another chance.
void add_retries(std::vector<NextStep>& steps, const tuner::State& state, const std::string& directory) {
    const std::uint64_t failed = state.in(TrialPhase::failed);
    if (failed == 0) return;
    steps.push_back(
        {command_text({"run", directory, "--restart-errored"}), fmt::format("{} failed, tried again", failed)});
    const bool saved = std::any_of(state.trials.begin(), state.trials.end(), [](const tuner::TrialState& trial) {
        return trial.phase == TrialPhase::failed && !trial.checkpoints.empty();
    });
    if (saved)
        steps.push_back(
            {command_text({"run", directory, "--resume-errored"}), "from their checkpoints, if they have one"});
}

/// Twice as many trials, as far as there are configurations.
std::uint64_t more_trials(const study::StudySpec& spec) {
    const std::uint64_t most =
        std::min<std::uint64_t>(grid_size(spec), static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()));
    return std::max<std::uint64_t>(spec.num_trials, std::min<std::uint64_t>(most, 2ULL * spec.num_trials));
}

} // namespace

std::string steps_text(const std::vector<NextStep>& steps, const Style& style) {
    constexpr std::string_view mark = "  # ";
    std::size_t in_line = 0; // columns of the commands whose remark fits behind them
    const auto fits = [&](std::size_t command, const NextStep& step) {
        return label_width + command + mark.size() + display_width(step.remark) <= style.width;
    };
    for (const auto& step : steps)
        if (fits(display_width(step.command), step)) in_line = std::max(in_line, display_width(step.command));
    std::string text;
    for (const auto& step : steps) {
        const std::string label = text.empty() ? "next" : "";
        const std::size_t width = std::max(display_width(step.command), in_line);
        if (fits(width, step)) {
            text += labelled(label, pad_right(step.command, width) + std::string(mark) + step.remark);
        } else {
            text += labelled(label, step.command);
            text += prose("", "# " + step.remark, style);
        }
    }
    return text;
}

std::string command_text(std::vector<std::string> words) {
    words.insert(words.begin(), "ranktune");
    return study::shell_text(words);
}

std::vector<NextStep> steps_after(const tuner::Tuner& tuner, const FilesInfo& files) {
    const auto& state = tuner.state();
    const std::string& directory = files.directory;
    if (state.outcome == StudyOutcome::resumable)
        return {{command_text({"run", directory}), "goes on"}, {command_text({"status", directory}), "what there is"}};
    if (state.outcome == StudyOutcome::usage) return {{files.command + " --fresh", "when the study is mended"}};
    if (state.outcome == StudyOutcome::no_success) {
        const auto failed = first_failed(state).value_or(study::TrialId{});
        return {{files.command + " --restart-errored", "when it is mended"},
                {command_text({"logs", directory, std::to_string(failed.value())}), "what the first one said"}};
    }
    std::vector<NextStep> steps;
    add_views(steps, state, directory);
    if (state.outcome == StudyOutcome::too_many_failures) add_retries(steps, state, directory);
    steps.push_back({command_text({"export", directory, "--format", "csv"}), "all trials as a table"});
    return steps;
}

std::vector<NextStep> steps_of_finished(const tuner::Tuner& tuner, const FilesInfo& files) {
    const auto& state = tuner.state();
    const auto& spec = tuner.spec();
    std::vector<NextStep> steps;
    add_views(steps, state, files.directory);
    if (state.end_reason == study::Reason::study_time) {
        const auto budget = study::duration_text(2 * spec.time_budget.value_or(std::chrono::hours(1)));
        steps.push_back({command_text({"run", files.directory, "study.time_budget=" + budget}),
                         "more time: the budget counts from the first start"});
    } else if (const std::uint64_t more = more_trials(spec);
               state.end_reason != study::Reason::missing_metric && more > spec.num_trials) {
        steps.push_back({command_text({"run", files.directory, fmt::format("study.num_trials={}", more)}),
                         fmt::format("{} more", more - spec.num_trials)});
    }
    if (state.end_reason != study::Reason::missing_metric) add_retries(steps, state, files.directory);
    steps.push_back({files.command + " --fresh", "all again; the old directory becomes " + files.directory + "~1"});
    return steps;
}

} // namespace ranktune::report
