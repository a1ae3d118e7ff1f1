// SPDX-License-Identifier: Apache-2.0
#include "report/explain/endings.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "ranktune/base/text.hpp"
#include "ranktune/study/command_template.hpp"
#include "ranktune/study/parse.hpp"
#include "report/explain/next_steps.hpp"
#include "report/explain/origin_text.hpp"
#include "report/explain/plan.hpp"
#include "report/screens/front.hpp"
#include "report/screens/text.hpp"
#include "report/view/history.hpp"
#include "report/view/wall_time.hpp"
#include "study/constraint.hpp"
#include "study/printed_values.hpp"
#include "tuner/rules/limits.hpp"
#include "tuner/state.hpp"

#include <fmt/format.h>

namespace ranktune::report {
namespace {

using study::TrialPhase;
using tuner::Trial;

/// `by`: who asked for the stop, as the journal names it.
std::string asked_to_stop(const std::string& by) {
    if (by == "ranktune stop") return "asked to stop by `ranktune stop`";
    if (by.rfind("SIG", 0) == 0 && by.find(' ') == std::string::npos) return "asked to stop by " + by;
    return first_line(by);
}

/// A message without the values in it: numbers, what stands in quotes, what follows '='. Trials that fail for one cause
/// often differ in these alone: `--lr=0.0123: invalid choice: 'adma'`. An exit code is no such value.
std::string shape_of(std::string_view message) {
    std::string shape;
    const auto is_alnum = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
    for (std::size_t i = 0; i < message.size(); ++i) {
        const char c = message[i];
        shape += c;
        const bool begins_word = i == 0 || !is_alnum(message[i - 1]);
        if ((c == '\'' || c == '"' || c == '`') && begins_word) {
            const std::size_t end = message.find(c, i + 1);
            if (end != std::string_view::npos) i = end;
        } else if (c == '=') {
            while (i + 1 < message.size() && std::string_view(" ,;)]}").find(message[i + 1]) == std::string_view::npos)
                ++i;
        } else if (is_alnum(c) && message.substr(0, i).ends_with("exit code ")) {
            while (i + 1 < message.size() && is_alnum(message[i + 1])) shape += message[++i];
        } else if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
            shape.back() = '#';
            while (i + 1 < message.size() &&
                   (is_alnum(message[i + 1]) ||
                    (message[i + 1] == '.' && i + 2 < message.size() && is_alnum(message[i + 2])) ||
                    ((message[i + 1] == '-' || message[i + 1] == '+') && message[i] == 'e')))
                ++i;
        }
    }
    return shape;
}

} // namespace

std::string failure_message(const Trial& trial) {
    if (!trial.failure.empty()) return first_line(study::describe(trial.failure));
    const std::string reason = study::describe(trial.closed_by, trial.closed_a, trial.closed_b);
    return reason.empty() ? "no message" : reason;
}

std::string lost_ranks_text(const tuner::State& state) {
    struct Loss {
        const tuner::WorkerState* first;
        std::vector<study::Rank> ranks;
    };
    std::vector<Loss> losses;
    for (const tuner::WorkerState& worker : state.placement.workers()) {
        if (worker.alive) continue;
        const auto same = [&](const Loss& loss) {
            return loss.first->host == worker.host && loss.first->lost_why == worker.lost_why;
        };
        auto found = std::ranges::find_if(losses, same);
        if (found == losses.end()) found = losses.insert(found, {&worker, {}});
        found->ranks.push_back(worker.info.rank);
    }
    std::vector<std::string> texts;
    for (const Loss& loss : losses)
        texts.push_back(fmt::format("{} on {} after {}: {}", ranks_text(loss.ranks), loss.first->info.host,
                                    short_duration(base::to_seconds(loss.first->lost_at - state.began)),
                                    first_line(loss.first->lost_why)));
    return printable(base::join_some(texts, 8));
}

std::string out_of_service_text(const tuner::State& state) {
    std::vector<std::string> places;
    const auto& hosts = state.placement.hosts();
    for (const auto& host : hosts)
        if (host.retired) places.push_back(place_text(host.name, {}));
    for (const auto& device : state.placement.devices())
        if (device.retired && !hosts[device.host].retired)
            places.push_back(place_text(hosts[device.host].name, device.name));
    return printable(base::join_some(places, 8));
}

std::optional<study::TrialId> first_failed(const tuner::State& state) {
    std::optional<study::TrialId> first;
    for (std::uint32_t i = 0; i < state.trials.size(); ++i) {
        if (state.trials[i].phase != TrialPhase::failed) continue;
        if (!first || state.trials[i].ended < state.trial(*first).ended) first = study::TrialId{i};
    }
    return first;
}

std::string why_text(const tuner::Tuner& tuner) {
    const auto& state = tuner.state();
    if (state.outcome == study::StudyOutcome::too_many_failures)
        return tuner::is_limit(state.end_reason) || !tuner::too_many_failed(state, tuner.spec().failure)
                   ? first_line(state.end_message)
                   : tuner::failures_sentence(state, tuner.spec().failure);
    if (state.end_reason == study::Reason::study_complete) return {};
    if (state.end_reason == study::Reason::draining) return asked_to_stop(state.end_message);
    // The failures, shown separately, have the message of the last trial.
    if (state.end_reason == study::Reason::early_failures)
        return study::describe(state.end_reason, static_cast<double>(state.blame.early_failures()), 0.0);
    return first_line(state.end_message);
}

std::string reason_text(const Trial& trial) {
    return study::is_final(trial.phase) ? study::describe(trial.closed_by, trial.closed_a, trial.closed_b)
                                        : study::describe(trial.verdict.reason, trial.verdict.a, trial.verdict.b);
}

std::uint64_t trials_never_made(const tuner::Tuner& tuner) {
    const tuner::State& state = tuner.state();
    // A study that ran to its end with fewer has tried all configurations that there are.
    const bool complete = state.end_reason == study::Reason::study_complete;
    const std::uint64_t made = state.trials.size();
    return tuner::is_over(state) && !complete ? std::max<std::uint64_t>(tuner.spec().num_trials, made) - made : 0;
}

std::string trials_made(const tuner::Tuner& tuner) {
    const std::uint64_t made = tuner.state().trials.size();
    return trials_never_made(tuner) > 0
               ? fmt::format("{} of {}", grouped(made), counted(tuner.spec().num_trials, "trial"))
               : counted(made, "trial");
}

bool out_of_time(const tuner::State& state) {
    if (state.end_reason == study::Reason::study_time) return true;
    const bool nothing =
        state.end_reason == study::Reason::no_trial_succeeded || state.end_reason == study::Reason::never_finite;
    return nothing && state.draining && state.drain_reason == study::Reason::study_time;
}

namespace {

std::string weights_of(const study::CheckpointRef& checkpoint) {
    return fmt::format("weights of iteration {}", checkpoint.iteration) +
           (checkpoint.value ? fmt::format(" ({})", metric_text(*checkpoint.value)) : std::string());
}

} // namespace

std::string unsaved_cause(const Trial& trial) {
    const bool known = trial.phase != TrialPhase::failed && !trial.attempt.live && !trial.failure.empty();
    return known ? failure_message(trial) : std::string();
}

std::string other_weights(const Trial& trial, const study::Objective& objective) {
    const auto* checkpoint = tuner::best_checkpoint(trial, objective);
    if (checkpoint == nullptr) return unsaved_cause(trial).empty() ? "" : "no weights";
    return tuner::has_best(trial, *checkpoint, objective) ? std::string() : weights_of(*checkpoint);
}

std::string lost_weights_text(const tuner::Tuner& tuner, const Style& style) {
    const auto& state = tuner.state();
    const study::Objective& objective = tuner.spec().objective;
    std::vector<study::TrialId> leaders = state.front.trials();
    if (!objective.several() && state.best) leaders = {*state.best};
    std::vector<std::string> names;
    std::string cause;
    for (const study::TrialId id : leaders) {
        const Trial& trial = state.trial(id);
        const std::string own = tuner::keeps_best(trial, objective) ? std::string() : unsaved_cause(trial);
        if (own.empty()) continue;
        if (cause.empty()) cause = own;
        names.push_back(fmt::format("#{}", id.value()));
    }
    if (names.empty() || (state.ended && why_text(tuner).find(cause) != std::string::npos)) return {};
    return prose("weights", "of " + base::join_some(names, 6) + " not saved: " + unbroken(cause), style, Tone::bad);
}

std::string best_aside(const Trial& trial, const study::CheckpointRef& checkpoint, const study::Objective& objective) {
    if (tuner::has_best(trial, checkpoint, objective) || std::isnan(trial.best)) return {};
    return fmt::format("its best {}, {}, was at iteration {}; these are {}\n", objective.metric,
                       metric_text(trial.best), trial.best_iteration, weights_of(checkpoint));
}

std::string limits_text(const study::Objective& objective) {
    return objective.constraints.empty() ? std::string() : " with " + study::text(objective.constraints);
}

std::string nearest_text(const tuner::Tuner& tuner) {
    const auto& nearest = tuner.state().nearest;
    if (!nearest || tuner.state().best) return {};
    const study::Objective& objective = tuner.spec().objective;
    std::string text = fmt::format("#{} ", nearest->trial.value());
    const auto goals = objective.goals();
    for (std::size_t i = 0; i < goals.size(); ++i)
        text += fmt::format("{} {}{}", i == 0 ? "" : ",", goals[i].metric, " " + metric_text(nearest->values.at(i)));
    text += fmt::format(" at iteration {} of {}; ", nearest->iteration, tuner.spec().max_iterations);
    for (std::size_t i = 0; i < objective.constraints.size(); ++i) {
        const study::Constraint& limit = objective.constraints[i];
        const double distance = nearest->distances.at(i);
        const double value = limit.at_most ? limit.bound + distance : limit.bound - distance;
        text += fmt::format("{}{} {} ({} {})", i == 0 ? "" : ", ", limit.metric, metric_text(value),
                            distance > 0.0 ? "wanted" : "keeps", study::text(limit).substr(limit.metric.size() + 1));
    }
    return text;
}

std::string tasks_text(const tuner::State& state, double elapsed_s) {
    const std::uint64_t done = state.in(TrialPhase::finished);
    const std::uint64_t failed = state.in(TrialPhase::failed);
    std::string text = fmt::format("{} done", grouped(done));
    if (const auto stopped = state.in(TrialPhase::stopped); stopped > 0)
        text += fmt::format(", {} cancelled", grouped(stopped));
    if (failed > 0) text += fmt::format(", {} failed", grouped(failed));
    if (const std::string pace = pace_text(done + failed, elapsed_s); !pace.empty()) text += "; " + pace;
    return text;
}

std::string pace_text(std::uint64_t done, double elapsed_s) {
    if (done == 0 || elapsed_s <= 0.0) return {};
    const double a_second = static_cast<double>(done) / elapsed_s;
    const double pace = a_second < 1.0 ? 3600.0 * a_second : a_second;
    return fmt::format("{} per {}",
                       pace < 100.0 ? fmt::format("{:.3g}", pace) : grouped(static_cast<std::uint64_t>(pace)),
                       a_second < 1.0 ? "hour" : "second");
}

std::string best_text(const tuner::Tuner& tuner, const Style& style) {
    if (study::compares_nothing(tuner.spec())) return {};
    const auto& state = tuner.state();
    const std::string metric = study::metrics_text(tuner.spec().objective);
    const std::string limits = limits_text(tuner.spec().objective);
    if (!state.front.trials().empty()) return prose("front", front_range_text(tuner) + limits, style, Tone::good);
    if (state.best) {
        const Trial& best = state.trial(*state.best);
        std::string text = fmt::format("#{}{}  {} {} at iteration {} of {}{}", state.best->value(),
                                       best.phase == TrialPhase::failed ? " (failed)" : "", metric, text_of_best(tuner),
                                       best.best_iteration, tuner.spec().max_iterations, limits);
        if (const std::string others = other_weights(best, tuner.spec().objective);
            !others.empty() && state.simulation.empty())
            text += "; " + others;
        const bool good = best.phase != TrialPhase::failed;
        return prose("best", text, style, good ? Tone::good : Tone::bad);
    }
    if (const std::string nearest = nearest_text(tuner); !nearest.empty())
        return prose("nearest", nearest, style, Tone::bad);
    if (state.reports == 0 || state.end_reason == study::Reason::missing_metric ||
        state.end_reason == study::Reason::never_finite) // why_text says it
        return {};
    if (!limits.empty())
        return prose("best", "none: no trial has reported a finite " + metric + limits, style, Tone::bad);
    const std::string text = "none: no trial has reported a finite " + metric +
                             " (every value was nan or infinite). See what a trial said; when training diverges, "
                             "lower the range of the learning rate";
    return prose("best", text, style, Tone::bad);
}

std::vector<FailureGroup> failure_groups(const tuner::State& state) {
    std::vector<FailureGroup> groups; // in the order of their first trials
    std::map<std::string, std::size_t> by_shape;
    for (std::uint32_t i = 0; i < state.trials.size(); ++i) {
        if (state.trials[i].phase != TrialPhase::failed) continue;
        const std::string message = failure_message(state.trials[i]);
        const std::size_t at = by_shape.try_emplace(shape_of(message), groups.size()).first->second;
        if (at == groups.size()) groups.emplace_back();
        FailureGroup& group = groups[at];
        if (group.trials.empty()) group.message = message;
        group.varies = group.varies || group.message != message;
        group.trials.push_back(fmt::format("#{}", i));
    }
    return groups;
}

std::string text_of(const FailureGroup& group) {
    return base::join_some(group.trials, 6, " ") + ": " + group.message +
           (group.varies ? " (the others with other values)" : "");
}

std::string failures_text(const tuner::State& state, const std::string& directory, const Style& style) {
    constexpr std::size_t shown = 5;
    std::vector<FailureGroup> groups = failure_groups(state);
    std::string text;
    for (std::size_t i = 0; i < std::min(groups.size(), shown); ++i) {
        groups[i].message = unbroken(groups[i].message);
        text += prose(i == 0 ? "failed" : "", text_of(groups[i]), style);
    }
    if (groups.size() > shown)
        text += prose("",
                      fmt::format("and {}: {}", counted(groups.size() - shown, "other message"),
                                  unbroken(command_text({"export", directory, "--format", "json"}))),
                      style);
    return paint(text, text.empty() ? Tone::plain : Tone::bad, style);
}

std::string errors_text(const tuner::Tuner& tuner, const std::string& directory) {
    const auto& state = tuner.state();
    const auto first = first_failed(state);
    if (!first || state.outcome == study::StudyOutcome::ok || state.outcome == study::StudyOutcome::resumable)
        return {};
    Style whole;
    whole.width = std::numeric_limits<std::size_t>::max();
    const std::string lines =
        failures_text(state, directory, whole) +
        labelled("logs", fmt::format("{}; of the first one: {}", directory + "/logs/",
                                     command_text({"logs", directory, std::to_string(first->value())})));
    std::string text;
    for (std::size_t at = 0; at < lines.size(); at = lines.find('\n', at) + 1)
        text += "\n  " + lines.substr(at, lines.find('\n', at) - at);
    return text;
}

std::string first_failure_text(const tuner::Tuner& tuner, const Style& style) {
    const auto& state = tuner.state();
    const auto id = first_failed(state);
    if (!id) return {};
    const Trial& trial = state.trial(*id);
    std::string text = fmt::format("#{}", id->value());
    if (!trial.attempt.ranks.empty()) {
        const study::Rank first = trial.attempt.ranks.front();
        if (state.placement.knows(first)) text += " on " + state.placement.worker(first).info.host;
        text += fmt::format(", {} {}", plural(trial.attempt.ranks.size(), "rank"),
                            ranks_text(trial.attempt.ranks).substr(1));
    }
    text += fmt::format(", after {}", short_duration(base::to_seconds(trial.ended - trial.started)));
    std::string lines = prose("first", text, style);
    if (tuner.spec().trainable.program)
        lines += labelled("command", study::trial_command_text(tuner.spec(), trial.configuration, *id));
    return lines;
}

namespace {

/// Trials by what their suggestions come from.
struct Suggestions {
    std::uint64_t prepared = 0;
    std::uint64_t failed = 0;  ///< a stopgap, because the searcher failed
    std::uint64_t unready = 0; ///< another one, because none was ready
};

Suggestions suggestions_of(const tuner::State& state) {
    using From = study::Origin::Kind;
    Suggestions all;
    for (const Trial& trial : state.trials) {
        const study::Origin& origin = trial.origin;
        if (origin.kind == From::ticket) ++all.prepared;
        if (origin.kind == From::stopgap) ++(origin.count > 0 ? all.failed : all.unready);
    }
    return all;
}

} // namespace

std::string suggestions_text(const tuner::Tuner& tuner) {
    if (tuner.state().tickets.next() == 0) return {};
    const Suggestions all = suggestions_of(tuner.state());
    if (all.failed + all.unready == 0) return {};
    std::string why = " in place of others that were not ready";
    if (all.failed > 0) {
        why = fmt::format(": {} because it failed", all.failed);
        if (all.unready > 0) why += fmt::format(", {} because none was ready", all.unready);
    }
    return fmt::format("{} by {}, {}{}", counted(all.prepared, "suggestion"), tuner.spec().searcher.algorithm->name,
                       counted(all.failed + all.unready, "stopgap"), why);
}

std::string searcher_failure_text(const tuner::Tuner& tuner, const std::string& log) {
    const auto& state = tuner.state();
    if (suggestions_of(state).failed == 0) return {};
    const std::uint32_t failures = state.tickets.failures();
    const std::string why = unbroken(printable(first_line(state.tickets.why())));
    if (failures == 0) return "failed at times, at last: " + why;
    return failure_text(failures, why) + ". See `no-suggestion` in " + unbroken(log) +
           (tuner.spec().searcher.algorithm->runs_program ? "; mend the program: " : ": ") +
           "the next start of the study asks it again";
}

std::string ended_early_text(const tuner::Tuner& tuner, const Style& style) {
    const study::Iteration ceiling = tuner.spec().max_iterations;
    std::uint64_t count = 0;
    study::Iteration fewest = ceiling;
    study::Iteration most = 0;
    for (const Trial& trial : tuner.state().trials) {
        if (trial.closed_by != study::Reason::trainable_done || trial.iteration >= ceiling) continue;
        ++count;
        fewest = std::min(fewest, trial.iteration);
        most = std::max(most, trial.iteration);
    }
    if (count == 0) return {};
    const std::string after =
        fewest == most ? counted(most, "iteration") : fmt::format("{} to {} iterations", fewest, most);
    return prose("short",
                 fmt::format("{} ended by {} after {} of {} (study.max_iterations): if that is not meant, let the {} "
                             "train to the iteration that it is told, or lower study.max_iterations",
                             counted(count, "trial"), count == 1 ? "itself" : "themselves", after, ceiling,
                             tuner.spec().trainable.program ? "program" : "trainable"),
                 style);
}

std::string undone_for_room_text(const tuner::Tuner& tuner, const Style& style) {
    std::uint64_t undone = 0;
    std::uint64_t largest = 0;
    for (const Trial& trial : tuner.state().trials) {
        undone += static_cast<std::uint64_t>(
            std::ranges::count(trial.undone, study::StateLoss::evicted, &tuner::UndoneTakeover::why));
        for (const auto& checkpoint : trial.checkpoints) largest = std::max(largest, checkpoint.bytes);
    }
    if (undone == 0 || !tuner.spec().checkpoint.max_bytes) return {};
    const Plan expected = plan(tuner.spec());
    const std::uint64_t needed = expected.scheduler.needed_checkpoints + expected.running_checkpoints;
    return prose("warning",
                 fmt::format("checkpoint.max_bytes ({}) undid {}: no state since then was left. {} of up to {} need "
                             "{} and more",
                             bytes_text(*tuner.spec().checkpoint.max_bytes), counted(undone, "takeover"),
                             counted(needed, "checkpoint"), bytes_text(largest), bytes_text(needed * largest)),
                 style, Tone::bad);
}

std::string lone_reports_text(std::uint64_t attempts, const Style& style) {
    if (attempts == 0) return {};
    return prose("waits",
                 fmt::format(
                     "rank 0 alone reports. At the end of {} the other ranks were waited for in vain, 5s the first "
                     "time, and then stopped by a signal. Let them report as well; rank 0's metrics count:",
                     counted(attempts, "attempt")),
                 style) +
           labelled("", "else: ranktune.report()");
}

namespace {

using study::TrialPhase;

/// " for 4m00s", since the drain began.
std::string how_long_text(const tuner::State& state, double now) {
    const auto at = study_seconds(state, now);
    const double ago = at ? *at - base::to_seconds(state.drain_began) : -1.0;
    return ago < 0.0 ? std::string() : fmt::format(" for {}", short_duration(ago));
}

std::string waits_text(const tuner::Tuner& tuner) {
    const tuner::State& state = tuner.state();
    constexpr std::size_t shown = 4;
    std::vector<std::string> names;
    double pace = 0.0;
    for (std::size_t i = 0; i < state.trials.size(); ++i) {
        const auto& trial = state.trials[i];
        if (!trial.attempt.live) continue;
        names.push_back(fmt::format("#{}", i));
        if (trial.phase == TrialPhase::running)
            pace = std::max(pace, trial.pace > 0.0 ? trial.pace : state.pace.iteration());
    }
    for (const study::TrialId unit : state.side.running()) names.push_back(study::unit_text(unit));
    if (names.empty()) return "nothing runs any more";
    const std::string text = base::join_some(names, shown);
    if (study::has_tasks(tuner.spec()))
        return fmt::format("waits up to {} (run.abort_grace) for {} to end, or else to begin again at the next start",
                           study::duration_text(tuner.spec().output.abort_grace), text);
    if (pace <= 0.0) return "waits until " + text + (names.size() == 1 ? " has" : " have") + " reported and saved";
    return fmt::format("waits for the next report of {}; an iteration takes up to {}", text, short_duration(pace));
}

} // namespace

std::optional<double> study_seconds(const tuner::State& state, double now) {
    const auto began = unix_seconds(state.wall_time);
    if (!began) return std::nullopt;
    return base::to_seconds(state.began) + now - *began;
}

std::string how_stops_text(const study::StudySpec& spec) {
    if (!study::has_tasks(spec)) return "running trials checkpoint at their next report";
    return fmt::format("running tasks have {} (run.abort_grace) to end; others begin again at the next start",
                       study::duration_text(spec.output.abort_grace));
}

std::string stopping_text(const tuner::Tuner& tuner, double now) {
    const tuner::State& state = tuner.state();
    if (!state.draining || state.ended) return {};
    const std::string why = state.drain_message.empty() ? "" : " (" + printable(first_line(state.drain_message)) + ")";
    return "stopping" + how_long_text(state, now) + why + ": " + waits_text(tuner);
}

} // namespace ranktune::report
