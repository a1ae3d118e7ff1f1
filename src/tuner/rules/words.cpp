// SPDX-License-Identifier: Apache-2.0
#include "tuner/rules/words.hpp"

#include <algorithm>
#include <cstdio>

#include "ranktune/base/text.hpp"
#include "ranktune/study/change.hpp"
#include "study/steering_file.hpp"
#include "tuner/rules/causes.hpp"

namespace ranktune::tuner::words {
namespace {

std::string seconds_text(double seconds) {
    char text[32];
    std::snprintf(text, sizeof text, seconds < 10.0 ? "%.1f s" : "%.0f s", seconds);
    return text;
}

} // namespace

std::string no_report() { return "the trainable ended without a single report"; }

std::string ranks_lost(std::uint32_t losses) { return "its ranks were lost " + std::to_string(losses) + " times"; }

std::string job_died(std::uint32_t deaths, std::uint32_t deaths_alone) {
    return "the job died " + std::to_string(deaths) + " times while it ran, " + std::to_string(deaths_alone) +
           " times while it was tried alone";
}

std::string nothing_to_evaluate() {
    return "not started: the command has {checkpoint}, and the trial has none: it saved none, or its ranks were lost "
           "before they had saved its last state";
}

std::string before_failed(const Failure& failure) {
    return "[before] failed, so no trial has begun: " + describe(failure) +
           ". Correct it, and the same command tries it again";
}

std::string after_failed(const Failure& failure) {
    return "all trials are done, but [after] failed: " + describe(failure) +
           ". Correct it, and the same command runs it again";
}

std::string time_budget_used_up() { return "study.time_budget is used up"; }
std::string ranges_missing(std::uint64_t count) {
    return std::to_string(count) + (count == 1 ? " range" : " ranges") + " of samples not begun";
}

std::string no_time_left(const Time& time) {
    std::string why = "deadline: the job has " + seconds_text(time.left) + " left for training";
    if (time.iteration > 0.0)
        why += "; an iteration takes up to " + seconds_text(time.iteration) + ", a checkpoint " +
               seconds_text(time.saving);
    if (time.stretch > 1 && time.can_save)
        why += "; a trial makes up to " + std::to_string(time.stretch) + " iterations before it can save";
    if (!time.can_save) why += "; trials cannot save, and take up to " + std::to_string(time.stretch) + " iterations";
    return why;
}

std::string not_set_up(TrialId trial, const std::string& host, const std::string& message) {
    return named(trial) + " could not be set up" + (host.empty() ? "" : " on " + host) + ": " + message +
           ". No trial counts as failed for this: mend it, and the same command goes on";
}

std::string too_many_metrics(TrialId trial, const std::string& name, std::size_t most) {
    return named(trial) + " reports another metric, '" + name + "', and a study has at most " + std::to_string(most) +
           " names of metrics; keep steps and epochs out of the names: each report is one iteration";
}

std::string missing_metric(TrialId trial, const study::Objective& objective, const std::vector<std::string>& reported) {
    const auto has = [&](const std::string& name) { return std::ranges::find(reported, name) != reported.end(); };
    const auto& limits = objective.constraints;
    const auto limit = std::ranges::find_if(limits, [&](const auto& each) { return !has(each.metric); });
    const auto goals = objective.goals();
    const auto goal = std::ranges::find_if(goals, [&](const auto& each) { return !has(each.metric); });
    const bool by_limit = goal == goals.end() && limit != limits.end();
    const std::string missing = by_limit ? limit->metric : (goal == goals.end() ? goals.begin() : goal)->metric;
    std::string text = "the first report of " + named(trial) + " lacks " +
                       (by_limit              ? "the metric of a constraint"
                        : objective.several() ? "a metric of study.metric,"
                                              : "the study's metric") +
                       " '" + missing + "'; it has ";
    text += reported.empty() ? "no metrics at all" : base::join_some(reported, 20);
    const std::string_view nearest = base::nearest(missing, reported);
    if (!nearest.empty() && (by_limit || objective.several()))
        text += ". Did you mean '" + std::string(nearest) + "' in study." + (by_limit ? "constraints?" : "metric?");
    else if (!nearest.empty())
        text += ". Did you mean study.metric = \"" + std::string(nearest) + "\"?";
    return text;
}

std::string study_is_ending() { return "the study is ending; ask again when it runs"; }

std::string study_is_deterministic() {
    return "the study is deterministic: its results must not depend on when somebody asks for something. It takes more "
           "trials (ranktune add, or set study.num_trials) and ranktune stop";
}

std::string no_such_trial(TrialId trial, std::size_t trials) {
    return "there is no " + named(trial) + ": the study has " + base::counted(trials, "trial") + " so far, from #0 on";
}

std::string is_over(TrialId trial, Reason reason, double a, double b) {
    return named(trial) + " is over: " + study::describe(reason, a, b);
}

std::string paused_by_scheduler(TrialId trial) {
    return named(trial) +
           " was paused by its scheduler, which lets it go on if it is good enough; users resume what users have "
           "paused";
}

std::string is_not_paused(TrialId trial) { return named(trial) + " is not paused"; }

std::string is_on_hold(TrialId trial) {
    return named(trial) + " is paused by a user already; ranktune resume lets it go on";
}

std::string is_at_barrier(TrialId trial) {
    return named(trial) + " waits to be compared with the others of its round; ask again when it trains";
}

std::string compares_together(std::string_view scheduler) {
    return "scheduler " + std::string(scheduler) +
           " compares trials together: a paused one would hold up all others. It can be cancelled";
}

std::string holds_up_others(std::string_view scheduler) {
    return "scheduler " + std::string(scheduler) +
           " lets no other trial of a rung go on before all have reported there: a paused one would hold them up. It "
           "can be cancelled";
}

std::string would_begin_again() {
    return "the trainable saves no checkpoints, so that a paused trial would begin again. It can be cancelled";
}

std::string nothing_to_add() { return "there is no trial to add"; }

std::string nothing_to_set() { return "there is nothing to set: ranktune set STUDY study.num_trials=120"; }

std::string nothing_changes() { return "the study has these settings already"; }

std::string fewer_trials(std::size_t created, std::size_t wanted) {
    return "study.num_trials: there are " + base::counted(created, "trial") + " already, so it cannot be " +
           std::to_string(wanted);
}

std::string key_is_fixed(const std::string& key, bool later) {
    const std::string settable = "; what can change while the study runs: " + study::settable_keys();
    if (later)
        return key + " changes with the next start only: ranktune stop, then ranktune run with " + key + "=..." +
               settable;
    const std::string longer =
        key == "study.max_iterations" ? "; longer training for some trials: ranktune extend" : "";
    return key + " cannot change in a study that has begun, because results depend on it; " +
           "another study can have it: ranktune run STUDY_FILE " + key + "=... -o DIRECTORY" + longer + settable;
}

} // namespace ranktune::tuner::words
