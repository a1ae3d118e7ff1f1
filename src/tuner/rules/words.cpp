// SPDX-License-Identifier: Apache-2.0
#include "tuner/rules/words.hpp"

#include <algorithm>
#include <cstdio>

#include "ranktune/base/text.hpp"
#include "tuner/rules/causes.hpp"

namespace ranktune::tuner::words {
namespace {

std::string seconds_text(double seconds) {
    char text[32];
    std::snprintf(text, sizeof text, seconds < 10.0 ? "%.1f s" : "%.0f s", seconds);
    return text;
}

} // namespace

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

} // namespace ranktune::tuner::words
