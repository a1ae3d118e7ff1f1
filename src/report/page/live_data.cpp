// SPDX-License-Identifier: Apache-2.0
#include "report/page/live_data.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "ranktune/base/utf8.hpp"
#include "report/explain/endings.hpp"
#include "report/screens/text.hpp"
#include "report/view/wall_time.hpp"

namespace ranktune::report {
namespace {

using LiveJson = nlohmann::ordered_json;

/// What a trial does, in a word or two.
std::string_view doing(const tuner::Trial& trial, bool runs) {
    if (trial.attempt.live && !runs) return "interrupted";
    if (trial.on_hold) return trial.attempt.live ? "pausing" : "paused by a user";
    if (!trial.attempt.live) return "waits for ranks";
    if (trial.phase != study::TrialPhase::running || trial.verdict.verb == study::Verb::stop) return "ending";
    return trial.attempt.silent ? "starting" : "running";
}

LiveJson live_trial(const tuner::State& state, study::TrialId id, bool runs, double now) {
    const tuner::Trial& trial = state.trial(id);
    const auto newest = time_of_newest_record(state);
    LiveJson json = {{"trial", id.value()},
                     {"state", doing(trial, runs)},
                     {"held", trial.on_hold},
                     {"iteration", trial.attempt.live ? trial.attempt.iteration : trial.iteration},
                     {"target", trial.target},
                     {"last", std::isfinite(trial.last) ? LiveJson(trial.last) : LiveJson(nullptr)},
                     {"configuration", base::escaped(configuration_text(trial.configuration))},
                     {"silent", trial.attempt.silent},
                     {"age", nullptr}};
    if (trial.attempt.live && newest) // since its last report, or its start
        json["age"] = std::max(0.0, now - *newest + base::to_seconds(state.now - trial.attempt.since));
    return json;
}

/// The trials of the panel: on ranks, paused by a user, waiting to go on.
struct Shown {
    std::vector<study::TrialId> on_ranks;
    std::vector<study::TrialId> held;
    std::vector<study::TrialId> waiting;
};

Shown shown_of(const tuner::State& state) {
    Shown shown;
    for (std::uint32_t i = 0; i < state.trials.size() && !state.ended; ++i) {
        const tuner::Trial& trial = state.trial(study::TrialId{i});
        const bool waits = trial.phase == study::TrialPhase::waiting && trial.attempt.id.value() != 0;
        if (trial.attempt.live)
            shown.on_ranks.emplace_back(i);
        else if (trial.on_hold)
            shown.held.emplace_back(i);
        else if (waits)
            shown.waiting.emplace_back(i);
    }
    return shown;
}

} // namespace

std::string live_data(const tuner::Tuner& tuner, const Standing& standing, double now) {
    const tuner::State& state = tuner.state();
    const Shown shown = shown_of(state);
    LiveJson json = {{"standing", base::escaped(standing.text)},
                     {"runs", standing.runs},
                     {"closed", base::escaped(standing.closed)},
                     {"stopping", standing.runs ? base::escaped(stopping_text(tuner, now)) : std::string()},
                     {"metric", base::escaped(tuner.spec().objective.metric)},
                     {"most", tuner.spec().max_iterations},
                     {"on_ranks", shown.on_ranks.size()},
                     {"held", shown.held.size()},
                     {"waiting", shown.waiting.size()},
                     {"trials", LiveJson::array()}};
    for (const auto* ids : {&shown.on_ranks, &shown.held, &shown.waiting})
        for (const study::TrialId id : *ids)
            if (json["trials"].size() < most_live_trials)
                json["trials"].push_back(live_trial(state, id, standing.runs, now));
    return json.dump(-1, ' ', false, LiveJson::error_handler_t::replace);
}

} // namespace ranktune::report
