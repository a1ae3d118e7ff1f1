// SPDX-License-Identifier: Apache-2.0
#include "ranktune/study/vocabulary.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <utility>

namespace ranktune::study {
namespace {

/// Whole numbers without a point, others with six significant digits. Our programs never leave the "C" locale.
std::string number(double value) {
    std::array<char, 32> text{};
    if (std::isfinite(value) && value == std::trunc(value) && std::abs(value) < 1e15) {
        std::snprintf(text.data(), text.size(), "%.0f", value == 0.0 ? 0.0 : value);
    } else {
        std::snprintf(text.data(), text.size(), "%.6g", value);
    }
    return text.data();
}

/// Reasons without numbers.
constexpr std::pair<Reason, std::string_view> sentences[] = {
    {Reason::none, ""},
    {Reason::below_rung, "between two decision points"},
    {Reason::first_arrival, "too few others to compare with yet"},
    {Reason::draining, "the study was asked to stop"},
    {Reason::not_promoted, "not promoted"},
    {Reason::cancelled, "cancelled by a user"},
    {Reason::paused_by_user, "paused by a user"},
    {Reason::trainable_done, "the trainable ended by itself"},
    {Reason::exception, "the trainable failed"},
    {Reason::lost, "its ranks were lost"},
    {Reason::study_complete, "the study is complete"},
    {Reason::no_ranks, "too few ranks are left for any trial"},
    {Reason::missing_metric, "the first report lacked the study's metric"},
    {Reason::no_trial_succeeded, "no trial succeeded"},
    {Reason::parameters_differ, "the ranks of the trial hold different parameters"},
    {Reason::deadline, "the job's time is nearly up"},
    {Reason::unsaved, "a checkpoint could not be written"},
    {Reason::unreachable, "a checkpoint could not be read"},
    {Reason::unstarted, "a trial could not be set up"},
    {Reason::failures_in_a_row, "trials failed one after the other before their first report"},
    {Reason::never_finite, "the metric was never finite"},
    {Reason::stateless, "trials give no checkpoints of their own"},
    {Reason::yielded, "its ranks are wanted by a trial whose turn comes before"},
    {Reason::unread_parameter, "the first trial never looked at a parameter"},
    {Reason::target_reached, "the study has reached its target"},
    {Reason::no_better, "the study has not improved for long"},
    {Reason::iterations_used, "the study's iterations are used up"},
    {Reason::enough_trials, "enough trials of the study have ended well"},
    {Reason::before_failed, "the command that prepares the study failed"},
    {Reason::after_failed, "the command after the last trial failed"},
};

/// The word of a code; "unknown" for other codes.
template <class Code, std::size_t Count>
std::string_view word(const std::string_view (&words)[Count], Code code) {
    const auto at = static_cast<std::size_t>(code);
    return at < Count ? words[at] : "unknown";
}

constexpr std::string_view verbs[] = {"go on", "pause", "stop", "discard", "exploit"};
static_assert(std::size(verbs) == static_cast<std::size_t>(last_verb) + 1);
constexpr std::string_view phases[] = {"waiting", "running", "paused", "finished", "stopped", "failed"};
static_assert(std::size(phases) == phase_count);
constexpr std::string_view askers[] = {"",        "ranktune stop", "Ctrl-C",  "SIGINT",
                                       "SIGTERM", "SIGHUP",        "SIGUSR1", "SIGUSR2"};
static_assert(std::size(askers) == static_cast<std::size_t>(last_asker) + 1);
constexpr std::string_view origins[] = {"searcher", "ticket", "stopgap", "start", "user", "repeat"};
static_assert(std::size(origins) == static_cast<std::size_t>(last_origin) + 1);
constexpr std::string_view outcomes[] = {"paused",     "stopped",   "finished",  "failed",      "lost",
                                         "unreadable", "unsaved",   "disturbed", "unreachable", "unstarted",
                                         "stateless",  "oversized", "resized",   "permanent"};
static_assert(std::size(outcomes) == static_cast<std::size_t>(last_attempt_outcome) + 1);

} // namespace

std::string describe(Reason reason, double a, double b) {
    const auto found = std::ranges::find(sentences, reason, &std::pair<Reason, std::string_view>::first);
    if (found != std::end(sentences)) return std::string(found->second);
    switch (reason) {
        case Reason::in_top:
            return (a == 1.0 ? "the best" : "among the best " + number(a)) + " of " + number(b) +
                   " in its rung, goes on";
        case Reason::rung:
            return "waits at rung " + number(a) + " with " + number(b) + (b == 1.0 ? " entry" : " entries");
        case Reason::not_in_top:
            return "not among the best of " + number(b) + " at iteration " + number(a);
        case Reason::below_median:
            return "best value " + number(a) + " is worse than the median " + number(b);
        case Reason::scheduler_limit:
            return "value " + number(a) + " is worse than its scheduler's limit " + number(b);
        case Reason::max_iterations:
            return "reached the ceiling of " + number(a) + (a == 1.0 ? " iteration" : " iterations");
        case Reason::metric_threshold:
            return "value " + number(a) + " reached the threshold " + number(b);
        case Reason::plateau:
            return "no progress: standard deviation " + number(a) + " over the last " + number(b) + " results";
        case Reason::trial_time:
            return "trained for " + number(a) + " s of at most " + number(b) + " s";
        case Reason::promoted:
            return "promoted from iteration " + number(a) + " to " + number(b);
        case Reason::finish_top:
            return "among the best when nothing else was left, goes on from iteration " + number(a);
        case Reason::study_time:
            // Records of the whole study carry no number.
            return a > 0.0 ? "the study's time budget of " + number(a) + " s is used up"
                           : "the study's time budget is used up";
        case Reason::early_failures:
            if (a <= 0.0) return "the first trials all failed before a report"; // records of the study carry no number
            return a == 1.0 ? "the first trial failed before a report"
                            : "the first " + number(a) + " trials all failed before a report";
        case Reason::exploited:
            return "takes over the state of #" + number(a) + " at iteration " + number(b);
        case Reason::no_donor:
            return "#" + number(a) + " has no checkpoint at iteration " + number(b) + " to be taken over";
        case Reason::published:
            return "place " + number(a) + " of " + number(b) + ", goes on and saves its state for others";
        case Reason::kept:
            return "place " + number(a) + " of " + number(b) + ", goes on";
        case Reason::unpublished:
            return "place " + number(a) + " of " + number(b) +
                   ", goes on: none of the better ones has saved its state yet";
        case Reason::turn:
            return "gives its ranks to a trial that has trained less (" + number(a) +
                   (a == 1.0 ? " iteration)" : " iterations)");
        case Reason::scheduled:
            return "saves its state after iteration " + number(a) + " and goes on with other hyper-parameters";
        case Reason::on_hold:
            return a == 1.0 ? "users have paused the trial that is left: ranktune resume"
                            : "users have paused the " + number(a) + " trials that are left: ranktune resume";
        default:
            return "reason " + std::to_string(static_cast<unsigned>(reason)) + " (of a newer version)";
    }
}

std::string describe(const Failure& failure) {
    return failure.rank ? "rank " + std::to_string(*failure.rank) + ": " + failure.message : failure.message;
}

std::string_view name(Verb verb) { return word(verbs, verb); }
std::string_view name(TrialPhase phase) { return word(phases, phase); }
std::string_view name(Asker asker) { return word(askers, asker); }
std::string_view name(Origin::Kind kind) { return word(origins, kind); }
std::string_view name(AttemptOutcome outcome) { return word(outcomes, outcome); }

std::optional<Asker> asker_named(std::string_view name) {
    const auto found = std::ranges::find(askers, name);
    if (name.empty() || found == std::end(askers)) return std::nullopt;
    return static_cast<Asker>(found - std::begin(askers));
}

} // namespace ranktune::study
