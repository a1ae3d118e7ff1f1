// SPDX-License-Identifier: Apache-2.0
#include "report/explain.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "report/next_steps.hpp"

namespace ranktune::report {
namespace {

using study::TrialPhase;

std::string first_line_of(const StudyView& view, study::TrialId id) {
    const TrialView& trial = view.trials[id.value()];
    std::string text = fmt::format("#{}: {} at iteration {} of {}", id.value(), study::name(trial.phase),
                                   trial.iterations, view.max_iterations);
    if (std::isfinite(trial.best))
        text += fmt::format(", best {} {} at iteration {}", view.metric, metric_text(trial.best), trial.best_iteration);
    if (view.best == id) text += "; the best trial of the study";
    return text;
}

/// The trial among those that it was compared with at a rung.
std::string place_text(const RungView& rung, std::size_t place, study::Iteration ceiling) {
    const RungView::Entry& own = rung.entries[place];
    std::string text = fmt::format("{}, place {} of {}", metric_text(own.value), place + 1, rung.entries.size());
    if (rung.iteration >= ceiling) return text + "; trained to the end";
    if (rung.went_on() == 0) return text + "; none went on";
    const auto last = std::ranges::find(rung.entries.rbegin(), rung.entries.rend(), true, &RungView::Entry::went_on);
    text += fmt::format("; {} went on, the worst of them with {}", grouped(rung.went_on()), metric_text(last->value));
    if (own.went_on) return text + ": it went on";
    return text + ": it did not";
}

std::string rungs_explained(const StudyView& view, study::TrialId id, const Style& style) {
    std::string text;
    for (const RungView& rung : view.rungs) {
        const auto own = std::ranges::find(rung.entries, id, &RungView::Entry::trial);
        if (own == rung.entries.end()) continue;
        const auto place = static_cast<std::size_t>(own - rung.entries.begin());
        text += prose(fmt::format("rung {}", rung.iteration), place_text(rung, place, view.max_iterations), style);
    }
    return text;
}

/// Decisions that compared it with nobody at a rung: medians, exploits, turns, limits.
std::string others_explained(const StudyView& view, study::TrialId id, const Style& style) {
    constexpr std::size_t shown = 12;
    std::vector<const Decision*> own;
    for (const Decision& decision : view.decisions) {
        const bool at_rung = std::ranges::any_of(view.rungs, [&](const RungView& rung) {
            return rung.iteration == decision.iteration &&
                   std::ranges::find(rung.entries, id, &RungView::Entry::trial) != rung.entries.end();
        });
        if (decision.trial == id && !at_rung) own.push_back(&decision);
    }
    std::string text;
    if (own.size() > shown) text += prose("earlier", counted(own.size() - shown, "decision"), style);
    for (std::size_t i = own.size() - std::min(own.size(), shown); i < own.size(); ++i) {
        const Decision& decision = *own[i];
        const std::string value = std::isnan(decision.value) ? "" : " (" + metric_text(decision.value) + ")";
        text += prose(fmt::format("at {}", decision.iteration),
                      study::describe(decision.reason, decision.a, decision.b) + value, style);
    }
    return text;
}

std::string attempts_explained(const StudyView& view, study::TrialId id, const Style& style) {
    std::string text;
    for (const AttemptView& attempt : view.attempts) {
        if (attempt.trial != id) continue;
        const std::string whose = attempt.whose == id ? "" : fmt::format(" of #{}", attempt.whose.value());
        const std::string from = attempt.from == 0 ? "scratch" : fmt::format("iteration {}{}", attempt.from, whose);
        std::string line =
            fmt::format("{} from {}, {} from {} to {}, ", attempt.attempt, from, ranks_text(attempt.ranks),
                        short_duration(attempt.begin_s), short_duration(attempt.end_s));
        line += attempt.outcome ? std::string(study::name(*attempt.outcome)) : attempt.runs ? "trains" : "interrupted";
        if (!attempt.message.empty()) line += ": " + first_line(attempt.message);
        text += prose("attempt", printable(line), style);
    }
    return text;
}

/// Workers that no attempt holds.
std::uint64_t free_ranks(const StudyView& view) {
    std::uint64_t held = 0;
    for (const AttemptView& attempt : view.attempts)
        if (attempt.runs) held += attempt.ranks.size();
    return view.ranks - std::min(view.ranks, held);
}

std::string waiting_text(const StudyView& view, const TrialView& trial) {
    std::uint64_t others = 0;
    for (const TrialView& each : view.trials) others += each.phase == TrialPhase::waiting ? 1 : 0;
    return fmt::format("waits for {}; {} free of {}, {} wait", counted(trial.ranks, "rank"), free_ranks(view),
                       view.ranks, counted(others, "trial"));
}

/// Why it does not train now, or that it does.
std::string now_text(const StudyView& view, study::TrialId id, const std::string& directory, bool is_run) {
    const TrialView& trial = view.trials[id.value()];
    if (study::is_final(trial.phase)) return "over: " + trial.why;
    if (!is_run) return "nobody runs the study; it goes on with: " + unbroken(command_text({"run", directory}));
    switch (trial.phase) {
        case TrialPhase::waiting:
            return waiting_text(view, trial);
        case TrialPhase::paused:
            return trial.why + "; its scheduler has not chosen it to go on";
        case TrialPhase::ending:
            return trial.why + "; it saves its state and gives its ranks back";
        default:
            return "trains";
    }
}

} // namespace

std::string explanation(const StudyView& view, study::TrialId trial, const std::string& directory, bool is_run,
                        const Style& style) {
    std::string text = view.simulated.empty() ? "" : paragraph(view.simulated, style);
    text += prose("trial", first_line_of(view, trial), style);
    text += rungs_explained(view, trial, style) + others_explained(view, trial, style) +
            attempts_explained(view, trial, style);
    const std::string& message = view.trials[trial.value()].message;
    if (!message.empty()) text += prose("message", unbroken(printable(first_line(message))), style);
    text += prose("now", now_text(view, trial, directory, is_run && view.simulated.empty()), style);
    return encoded(std::move(text), style);
}

} // namespace ranktune::report
