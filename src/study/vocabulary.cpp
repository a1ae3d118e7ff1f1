// SPDX-License-Identifier: Apache-2.0
#include "ranktune/study/vocabulary.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace ranktune::study {
namespace {

/// Whole numbers without a point, others with six significant digits; the same in every locale of the C library that a
/// program of ours runs in ("C" is never left).
std::string number(double value) {
    std::array<char, 32> text{};
    if (std::isfinite(value) && value == std::trunc(value) && std::abs(value) < 1e15) {
        std::snprintf(text.data(), text.size(), "%.0f", value == 0.0 ? 0.0 : value);
    } else {
        std::snprintf(text.data(), text.size(), "%.6g", value);
    }
    return text.data();
}

/// Reasons that come from the schedulers and stoppers, with their numbers.
std::string describe_decision(Reason reason, double a, double b) {
    switch (reason) {
        case Reason::below_rung:
            return "between two decision points";
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
        case Reason::first_arrival:
            return "too few others to compare with yet";
        default:
            return "reason " + std::to_string(static_cast<unsigned>(reason)) + " (of a newer version)";
    }
}

} // namespace

std::string describe(const Failure& failure) {
    return failure.rank ? "rank " + std::to_string(*failure.rank) + ": " + failure.message : failure.message;
}

std::string describe(Reason reason, double a, double b) {
    switch (reason) {
        case Reason::none:
            return "";
        case Reason::study_time:
            // Records of the whole study carry no number.
            return a > 0.0 ? "the study's time budget of " + number(a) + " s is used up"
                           : "the study's time budget is used up";
        case Reason::draining:
            return "the study was asked to stop";
        case Reason::not_promoted:
            return "not promoted";
        case Reason::trainable_done:
            return "the trainable ended by itself";
        case Reason::exception:
            return "the trainable failed";
        case Reason::lost:
            return "its ranks were lost";
        case Reason::early_failures:
            if (a <= 0.0) return "the first trials all failed before a report"; // records of the study carry no number
            return a == 1.0 ? "the first trial failed before a report"
                            : "the first " + number(a) + " trials all failed before a report";
        case Reason::study_complete:
            return "the study is complete";
        case Reason::no_ranks:
            return "too few ranks are left for any trial";
        case Reason::missing_metric:
            return "the first report lacked the study's metric";
        case Reason::no_trial_succeeded:
            return "no trial succeeded";
        case Reason::parameters_differ:
            return "the ranks of the trial hold different parameters";
        case Reason::deadline:
            return "the job's time is nearly up";
        case Reason::unsaved:
            return "a checkpoint could not be written";
        case Reason::unreachable:
            return "a checkpoint could not be read";
        case Reason::unstarted:
            return "a trial could not be set up";
        case Reason::failures_in_a_row:
            return "trials failed one after the other before their first report";
        case Reason::never_finite:
            return "the metric was never finite";
        case Reason::stateless:
            return "a trial was to pause, and its trainable gives no checkpoints";
        case Reason::yielded:
            return "its ranks are wanted by a trial whose turn comes before";
        case Reason::exploited:
            return "takes over the state of #" + number(a) + " at iteration " + number(b);
        case Reason::no_donor:
            return "#" + number(a) + " has no checkpoint at iteration " + number(b) + " to be taken over";
        case Reason::unread_parameter:
            return "the first trial never looked at a parameter";
        default:
            return describe_decision(reason, a, b);
    }
}

std::string_view name(TrialPhase phase) {
    switch (phase) {
        case TrialPhase::waiting:
            return "waiting";
        case TrialPhase::running:
            return "running";
        case TrialPhase::ending:
            return "ending";
        case TrialPhase::paused:
            return "paused";
        case TrialPhase::finished:
            return "finished";
        case TrialPhase::stopped:
            return "stopped";
        case TrialPhase::failed:
            return "failed";
    }
    return "unknown";
}

namespace {
/// By their codes.
constexpr std::array<std::string_view, static_cast<std::size_t>(last_asker) + 1> askers = {
    "", "ranktune stop", "Ctrl-C", "SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"};
} // namespace

std::string_view name(Asker asker) { return askers.at(static_cast<std::size_t>(asker)); }

std::optional<Asker> asker_named(std::string_view name) {
    const auto found = std::ranges::find(askers, name);
    if (name.empty() || found == askers.end()) return std::nullopt;
    return static_cast<Asker>(found - askers.begin());
}

std::string_view name(Origin::Kind kind) {
    switch (kind) {
        case Origin::Kind::searcher:
            return "searcher";
        case Origin::Kind::ticket:
            return "ticket";
        case Origin::Kind::stopgap:
            return "stopgap";
        case Origin::Kind::start:
            return "start";
        case Origin::Kind::user:
            return "user";
        case Origin::Kind::repeat:
            return "repeat";
    }
    return "unknown";
}

std::string_view name(AttemptOutcome outcome) {
    switch (outcome) {
        case AttemptOutcome::paused:
            return "paused";
        case AttemptOutcome::stopped:
            return "stopped";
        case AttemptOutcome::finished:
            return "finished";
        case AttemptOutcome::failed:
            return "failed";
        case AttemptOutcome::lost:
            return "lost";
        case AttemptOutcome::unreadable:
            return "unreadable";
        case AttemptOutcome::unsaved:
            return "unsaved";
        case AttemptOutcome::disturbed:
            return "disturbed";
        case AttemptOutcome::unreachable:
            return "unreachable";
        case AttemptOutcome::unstarted:
            return "unstarted";
        case AttemptOutcome::stateless:
            return "stateless";
    }
    return "unknown";
}

} // namespace ranktune::study
