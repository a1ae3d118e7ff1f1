// SPDX-License-Identifier: Apache-2.0
#include "report/endings.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "ranktune/study/command_template.hpp"
#include "tuner/verdict.hpp"

#include <fmt/format.h>

namespace ranktune::report {
namespace {

using study::TrialPhase;
using tuner::TrialState;

/// What a failed trial said; a trial that was closed without a word has a reason.
std::string message_of(const TrialState& trial) {
    if (!trial.message.empty()) return first_line(trial.message);
    const std::string reason = study::describe(trial.closed_by, trial.closed_a, trial.closed_b);
    return reason.empty() ? "no message" : reason;
}

/// The journal has the name of what asked for the end.
std::string asked_to_stop(const std::string& by) {
    if (by == "ranktune stop") return "asked to stop by `ranktune stop`";
    if (by.rfind("SIG", 0) == 0 && by.find(' ') == std::string::npos) return "asked to stop by " + by;
    return first_line(by);
}

} // namespace

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
        return tuner::failures_sentence(state, tuner.spec().failure);
    if (state.end_reason == study::Reason::study_complete) return {};
    if (state.end_reason == study::Reason::draining) return asked_to_stop(state.end_message);
    const bool told = std::any_of(state.trials.begin(), state.trials.end(), [&](const TrialState& trial) {
        return trial.phase == TrialPhase::failed && trial.message == state.end_message;
    });
    if (!told) return first_line(state.end_message);
    return study::describe(state.end_reason, static_cast<double>(state.early_failures), 0.0);
}

std::string failures_text(const tuner::State& state, const Style& style) {
    std::map<std::string, std::vector<std::uint32_t>> by_message;
    for (std::uint32_t i = 0; i < state.trials.size(); ++i) {
        if (state.trials[i].phase == TrialPhase::failed) by_message[message_of(state.trials[i])].push_back(i);
    }
    std::string text;
    constexpr std::size_t shown = 5;
    std::size_t groups = 0;
    for (const auto& [message, trials] : by_message) {
        if (++groups > shown) {
            text += labelled("", fmt::format("and {}: ranktune export --format json",
                                             counted(by_message.size() - shown, "other message")));
            break;
        }
        std::string ids;
        for (std::size_t i = 0; i < std::min<std::size_t>(trials.size(), 6); ++i)
            ids += fmt::format("{}#{}", i == 0 ? "" : " ", trials[i]);
        if (trials.size() > 6) ids += fmt::format(" and {} more", trials.size() - 6);
        text += labelled(groups == 1 ? "failed" : "", ids + ": " + message);
    }
    return paint(text, text.empty() ? Tone::plain : Tone::bad, style);
}

std::string first_failure_text(const tuner::Tuner& tuner) {
    const auto& state = tuner.state();
    const auto id = first_failed(state);
    if (!id) return {};
    const TrialState& trial = state.trial(*id);
    std::string text = fmt::format("#{}", id->value());
    if (!trial.ranks.empty()) {
        const std::uint32_t first = trial.ranks.front().value();
        if (first > 0 && first <= state.workers.size()) text += " on " + state.workers[first - 1].info.host;
        text += fmt::format(", {} {}", plural(trial.ranks.size(), "rank"), ranks_text(trial.ranks).substr(1));
    }
    text += fmt::format(", after {}", short_duration(base::to_seconds(trial.ended - trial.started)));
    std::string lines = labelled("first", text);
    if (tuner.spec().trainable.program)
        lines += labelled("command", study::trial_command_text(tuner.spec(), trial.configuration));
    return lines;
}

} // namespace ranktune::report
