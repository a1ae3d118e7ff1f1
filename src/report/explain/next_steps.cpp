// SPDX-License-Identifier: Apache-2.0
#include "report/explain/next_steps.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/json_text.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/study/command_template.hpp"
#include "ranktune/study/parse.hpp"
#include "report/explain/endings.hpp"
#include "report/explain/plan.hpp"
#include "storage/file_system.hpp"
#include "study/outside.hpp"
#include "study/parse/toml_tree.hpp"
#include "study/printed_values.hpp"
#include "studydir/study_directory.hpp"
#include "tuner/rules/limits.hpp"

#include <fmt/format.h>

namespace ranktune::report {
namespace {

using study::StudyOutcome;
using study::TrialPhase;

std::string& this_program() {
    static std::string name = "ranktune";
    return name;
}

/// A command that runs the study.
NextStep run_step(std::string command, std::string remark) { return {std::move(command), std::move(remark), true}; }

/// Adds the view of the result. A failed trial without a checkpoint is no result.
void add_views(std::vector<NextStep>& steps, const tuner::Tuner& tuner, const std::string& directory) {
    const tuner::State& state = tuner.state();
    if (study::compares_nothing(tuner.spec())) {
        if (state.in(study::TrialPhase::failed) > 0)
            steps.push_back(
                {command_text({"status", directory, "--filter", "state == failed"}), "the tasks that failed"});
        return;
    }
    const tuner::Trial* best = state.best ? &state.trial(*state.best) : nullptr;
    if (!state.front.trials().empty())
        steps.push_back({command_text({"best", directory}), "the Pareto front"});
    else if (best != nullptr && best->phase != TrialPhase::failed)
        steps.push_back({command_text({"best", directory}), "the best trial"});
    else if (best != nullptr && !best->checkpoints.empty())
        steps.push_back({command_text({"best", directory}), "the best trial, which failed"});
    else
        steps.push_back({command_text({"status", "--all", directory}), "what became of each trial"});
}

/// When trials have reported but none has a value: adds the log of the first such trial.
void add_log_without_value(std::vector<NextStep>& steps, const tuner::Tuner& tuner, const std::string& directory) {
    const tuner::State& state = tuner.state();
    const auto reported = std::find_if(state.trials.begin(), state.trials.end(),
                                       [](const tuner::Trial& trial) { return trial.reported; });
    if (state.best || study::compares_nothing(tuner.spec()) || reported == state.trials.end()) return;
    const auto id = std::to_string(reported - state.trials.begin());
    steps.push_back({command_text({"logs", directory, id}), "what one of the trials said"});
}

/// The override that doubles the time budget.
std::string more_time(const study::StudySpec& spec) {
    return "study.time_budget=" + study::duration_text(2 * spec.time_budget.value_or(std::chrono::hours(1)));
}

/// The override that gives a study more to do that has counted up to a limit of [stop.study]; empty: it ended
/// otherwise.
std::string other_limit(const tuner::State& state, const study::StudySpec& spec) {
    const study::StudyStop& stop = spec.stop.study;
    switch (state.end_reason) {
        case study::Reason::no_better:
            return fmt::format("stop.study.no_better_in={}", 2 * stop.no_better_in.value_or(1));
        case study::Reason::iterations_used:
            return fmt::format("stop.study.iterations={}", 2 * stop.iterations.value_or(1));
        case study::Reason::enough_trials:
            return fmt::format("stop.study.trials_ok={}", 2 * stop.trials_ok.value_or(1));
        default: // of a target only the user knows what is better
            return "";
    }
}

/// `command`, which runs the study, with the option that retries failed trials.
std::string again(const tuner::Tuner& tuner, const std::string& command, const std::string& option) {
    const tuner::State& state = tuner.state();
    const std::string limit = other_limit(state, tuner.spec());
    return command + " " + option + (out_of_time(state) ? " " + more_time(tuner.spec()) : "") +
           (limit.empty() ? "" : " " + limit);
}

bool failed_ones_saved(const tuner::State& state) {
    return std::any_of(state.trials.begin(), state.trials.end(), [](const tuner::Trial& trial) {
        return trial.phase == TrialPhase::failed && !trial.checkpoints.empty();
    });
}

/// Adds both ways to retry failed trials with `command`, which runs the study.
void add_again(std::vector<NextStep>& steps, const tuner::Tuner& tuner, const std::string& command,
               const std::string& remark) {
    steps.push_back(run_step(again(tuner, command, "--restart-errored"), remark));
    if (failed_ones_saved(tuner.state()))
        steps.push_back(
            run_step(again(tuner, command, "--resume-errored"), "from their checkpoints, if they have one"));
}

/// Adds the ways to retry failed trials, for a study that has results. False: there are none.
bool add_retries(std::vector<NextStep>& steps, const tuner::Tuner& tuner, const std::string& directory) {
    const std::uint64_t failed = tuner.state().in(TrialPhase::failed);
    if (failed > 0)
        add_again(steps, tuner, command_text({"run", directory}), fmt::format("{} failed, tried again", failed));
    return failed > 0;
}

/// Adds the way to run tasks after trials again that failed, which tries failed trials again, too.
void add_tasks(std::vector<NextStep>& steps, const tuner::Tuner& tuner, const std::string& directory) {
    const auto tasks = tuner::tasks_to_repeat(tuner.state(), tuner.spec());
    if (tasks.empty()) return;
    const std::uint64_t failed = tuner.state().in(TrialPhase::failed);
    steps.push_back(run_step(again(tuner, command_text({"run", directory}), "--restart-errored"),
                             fmt::format("{} failed [after_trial]{}, again", tasks.size(),
                                         failed > 0 ? " and " + base::counted(failed, "trial") : "")));
}

/// For a study in which nothing succeeded, once the cause is mended: adds the commands that retry its failed trials and
/// make the missing ones.
void add_second_chance(std::vector<NextStep>& steps, const tuner::Tuner& tuner, const FilesInfo& files) {
    const auto& state = tuner.state();
    const std::uint64_t made = state.trials.size();
    std::string remark = "when it is mended";
    if (made < tuner.spec().num_trials && !out_of_time(state))
        remark += fmt::format(": {} again, then {} new", state.in(TrialPhase::failed), tuner.spec().num_trials - made);
    add_again(steps, tuner, files.command, remark);
    if (study::predicts(tuner.spec()))
        steps.push_back(
            {"ranktune predict ... --fresh", "when the input is mended: another input is another prediction"});
    const auto first = first_failed(state).value_or(study::TrialId{});
    steps.push_back(
        {command_text({"logs", files.directory, std::to_string(first.value())}), "what the first one said"});
}

/// For a study file and a program that do not match: after a change of the file the study must begin again; after a
/// change of the program it can go on.
void add_mended(std::vector<NextStep>& steps, const tuner::Tuner& tuner, const FilesInfo& files) {
    const bool failed = tuner.state().in(TrialPhase::failed) > 0;
    steps.push_back(
        run_step(files.command + " --fresh", failed ? "when the study file is mended" : "when it is mended"));
    if (failed)
        steps.push_back(run_step(files.command + " --restart-errored", tuner.spec().trainable.program
                                                                           ? "when the program is mended"
                                                                           : "when the trainable is mended"));
}

/// Of a study that ended as `stateless`: a trial had to pause without a checkpoint. Otherwise two named the same one.
bool gives_no_state(const tuner::State& state) {
    return !state.retention.ever_saved() &&
           std::any_of(state.trials.begin(), state.trials.end(), [](const tuner::Trial& trial) {
               return trial.phase != TrialPhase::failed && !trial.failure.empty();
           });
}

/// Excludes never_finite: those trials ended regularly, so there is nothing to retry.
bool no_trial_succeeded(const tuner::State& state) {
    return state.outcome == StudyOutcome::no_success && state.end_reason != study::Reason::never_finite;
}

/// Twice as many trials, limited by the number of configurations.
std::uint64_t more_trials(const study::StudySpec& spec) {
    const std::uint64_t most =
        std::min<std::uint64_t>(grid_size(spec), static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()));
    return std::max<std::uint64_t>(spec.num_trials, std::min<std::uint64_t>(most, 2ULL * spec.num_trials));
}

} // namespace

std::string steps_text(const std::vector<NextStep>& steps, const Style& style) {
    constexpr std::string_view mark = "  # ";
    std::size_t in_line = 0; // widest command whose remark fits on its line
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
    words.insert(words.begin(), this_program());
    return study::shell_text(words);
}

void name_program(std::string name) { this_program() = std::move(name); }

namespace {

/// Its trials are asked for and told.
bool is_asked(const studydir::StudyDirectory& directory) {
    try {
        const study::Node file =
            study::parse_toml(storage::read_text(storage::posix_file_system(), directory.resolved_file()));
        const study::Node* trainable = file.find("trainable");
        const study::Node* name = trainable == nullptr ? nullptr : trainable->find("name");
        return name != nullptr && name->text == study::outside_name;
    } catch (const base::Error&) { // no study is there any more
        return false;
    }
}

} // namespace

std::string going_on(const std::string& directory, const std::vector<std::string>& overrides) {
    if (is_asked({directory})) {
        std::string arguments = base::json_string(directory);
        for (const std::string& each : overrides) arguments += ", " + base::json_string(each);
        return study::shell_text({"python3", "-ic", "import ranktune; study = ranktune.open_study(" + arguments + ")"});
    }
    auto words = studydir::command_that_goes_on(storage::posix_file_system(), {directory}, this_program());
    words.insert(words.end(), overrides.begin(), overrides.end());
    return study::shell_text(words);
}

std::vector<NextStep> steps_to_go_on(const std::string& directory) {
    return {run_step(going_on(directory), "goes on"), {command_text({"status", directory}), "what there is"}};
}

namespace {

/// Adds what lifts the limit at which the study has ended. False: it ended at none.
bool add_beyond_limit(std::vector<NextStep>& steps, const tuner::Tuner& tuner, const std::string& directory) {
    const tuner::State& state = tuner.state();
    const study::StudySpec& spec = tuner.spec();
    const std::uint64_t ranges = tuner::ranges_not_begun(state, spec);
    if (out_of_time(state)) {
        steps.push_back(
            run_step(going_on(directory, {more_time(spec)}), "more time: the budget counts from the first start"));
    } else if (tuner::is_limit(state.end_reason)) {
        const std::string limit = other_limit(state, spec);
        if (state.trials.size() < spec.num_trials && !limit.empty())
            steps.push_back(run_step(going_on(directory, {limit}), "goes on to another limit"));
    } else if (ranges > 0) {
        steps.push_back(run_step(
            going_on(directory, {fmt::format("study.num_trials={}", state.trials.size() + ranges)}), "all samples"));
    } else {
        return false;
    }
    return true;
}

} // namespace

std::vector<NextStep> steps_after(const tuner::Tuner& tuner, const FilesInfo& files) {
    const auto& state = tuner.state();
    const std::string& directory = files.directory;
    if (state.outcome == StudyOutcome::resumable && !files.next_job.empty())
        return {{"squeue --jobs=" + files.next_job, "job " + files.next_job + " goes on by itself"},
                {command_text({"status", directory}), "what there is"}};
    if (state.outcome == StudyOutcome::resumable) return steps_to_go_on(directory);
    std::vector<NextStep> steps;
    if (state.end_reason == study::Reason::stateless) {
        if (!gives_no_state(state)) {
            steps.push_back(run_step(files.command, "goes on, when each trial saves to a place of its own"));
            return steps;
        }
        steps.push_back(run_step(files.command, "goes on, when the program or the study file is mended"));
        steps.push_back(run_step(files.command + " --fresh", "begins again, with another variant in [scheduler]"));
        return steps;
    }
    if (state.outcome == StudyOutcome::usage) {
        add_mended(steps, tuner, files);
        return steps;
    }
    if (state.end_reason == study::Reason::before_failed || state.end_reason == study::Reason::after_failed) {
        const bool before = state.end_reason == study::Reason::before_failed;
        steps.push_back(run_step(files.command, "runs it again, when it is mended"));
        steps.push_back({command_text({"logs", directory, before ? "before" : "after"}), "what it said"});
        if (state.best) steps.push_back({command_text({"best", directory}), "the best trial"});
        return steps;
    }
    if (no_trial_succeeded(state)) {
        add_second_chance(steps, tuner, files);
        return steps;
    }
    add_log_without_value(steps, tuner, directory);
    add_views(steps, tuner, directory);
    if (state.outcome != StudyOutcome::too_many_failures || !add_retries(steps, tuner, directory))
        add_tasks(steps, tuner, directory);
    if (tuner::ranges_not_begun(state, tuner.spec()) > 0) add_beyond_limit(steps, tuner, directory);
    if (study::compares_nothing(tuner.spec())) return steps; // its results are in a file
    steps.push_back({command_text({"export", directory, "--format", "csv"}), "all trials as a table"});
    if (!state.best) steps.push_back(run_step(files.command + " --fresh", "all again, when the study is mended"));
    return steps;
}

std::vector<NextStep> steps_of_finished(const tuner::Tuner& tuner, const FilesInfo& files) {
    const auto& state = tuner.state();
    const auto& spec = tuner.spec();
    std::vector<NextStep> steps;
    if (state.outcome == StudyOutcome::usage) {
        add_views(steps, tuner, files.directory);
        add_mended(steps, tuner, files);
        return steps;
    }
    add_log_without_value(steps, tuner, files.directory);
    add_views(steps, tuner, files.directory);
    const std::uint64_t more = more_trials(spec);
    if (no_trial_succeeded(state)) { // more trials would fail as well
        add_second_chance(steps, tuner, files);
    } else if (!add_beyond_limit(steps, tuner, files.directory) && state.best && more > spec.num_trials) {
        steps.push_back(run_step(going_on(files.directory, {fmt::format("study.num_trials={}", more)}),
                                 fmt::format("{} more", more - state.trials.size())));
    }
    if (!no_trial_succeeded(state) && !add_retries(steps, tuner, files.directory))
        add_tasks(steps, tuner, files.directory);
    steps.push_back(
        run_step(files.command + " --fresh", "all again; the old directory becomes " + files.directory + "~1"));
    return steps;
}

} // namespace ranktune::report
