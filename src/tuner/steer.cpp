// SPDX-License-Identifier: Apache-2.0
// What users ask of a running study: whether it can take effect, and what it changes.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ranktune/base/error.hpp"
#include "ranktune/study/change.hpp"
#include "ranktune/study/parse.hpp"
#include "study/parse/key_table.hpp"
#include "study/steering_file.hpp"
#include "tuner/apply.hpp"
#include "tuner/decide.hpp"
#include "tuner/rules/causes.hpp"
#include "tuner/rules/words.hpp"

namespace ranktune::tuner {
namespace {

using study::SteerVerb;

bool is_about_a_trial(SteerVerb verb) {
    return verb == SteerVerb::pause || verb == SteerVerb::resume || verb == SteerVerb::cancel;
}

/// More trials are the one change that the order of a deterministic study survives.
bool only_more_trials(const study::Steering& ask) {
    if (ask.verb != SteerVerb::set) return ask.verb == SteerVerb::add;
    return std::ranges::all_of(ask.settings,
                               [](const auto& each) { return study::key_of(each) == "study.num_trials"; });
}

std::string objection_to_trial(const Core& core, const study::Steering& ask) {
    if (ask.trial.value() >= core.state.trials.size()) return words::no_such_trial(ask.trial, core.state.trials.size());
    const Trial& t = core.state.trials[ask.trial];
    if (is_final(t.phase)) return words::is_over(ask.trial, t.closed_by, t.closed_a, t.closed_b);
    if (ask.verb == SteerVerb::resume) {
        if (t.on_hold) return {};
        return t.phase == TrialPhase::paused ? words::paused_by_scheduler(ask.trial) : words::is_not_paused(ask.trial);
    }
    if (core.admission->at_barrier(ask.trial)) return words::is_at_barrier(ask.trial);
    if (ask.verb == SteerVerb::cancel) return {};
    if (t.on_hold) return words::is_on_hold(ask.trial);
    if (core.scheduler->synchronous()) return words::compares_together(core.scheduler->name());
    if (core.scheduler->holds_up_others(ask.trial)) return words::holds_up_others(core.scheduler->name());
    return core.spec.checkpoint.supported ? std::string() : words::would_begin_again();
}

/// The study file with what was asked for. Throws base::UsageError with the mistakes.
study::StudySpec steered_spec(const Core& core, const study::Steering& ask) {
    if (ask.verb == SteerVerb::set)
        return study::parse_resolved_study(study::resolved_toml(core.spec), "the request",
                                           {{core.spec.scheduler.algorithm}, {core.spec.searcher.algorithm}},
                                           ask.settings);
    study::StudySpec later = core.spec;
    later.num_trials += static_cast<std::uint32_t>(ask.points.size()) * core.spec.searcher.repeats;
    return later;
}

std::string objection_to_settings(const Core& core, const study::Steering& ask) {
    if (ask.settings.empty()) return words::nothing_to_set();
    std::vector<std::string> fixed;
    for (const std::string& setting : ask.settings)
        if (std::string key = study::key_of(setting); !study::may_be_set(key)) fixed.push_back(std::move(key));
    const auto why_fixed = [&] { return words::key_is_fixed(fixed[0], study::may_change_later(fixed[0], core.spec)); };
    const study::KeyTable known(study::Algorithms{{core.spec.scheduler.algorithm}, {core.spec.searcher.algorithm}});
    if (!fixed.empty() && std::ranges::find(known.keys(), fixed[0]) != known.keys().end()) return why_fixed();
    try {
        const study::StudySpec later = steered_spec(core, ask); // refuses keys that there are not
        if (!fixed.empty()) return why_fixed();
        const auto created =
            core.state.trials.size() + core.state.requests.points().size() * core.spec.searcher.repeats;
        if (later.num_trials < created) return words::fewer_trials(created, later.num_trials);
        const auto changes = study::differences(core.spec, later);
        if (changes.empty()) return words::nothing_changes();
        for (const study::KeyChange& change : changes)
            if (!study::may_be_set(change.key))
                return words::key_is_fixed(change.key, change.may_change); // it follows from what was asked
        return {};
    } catch (const study::StudyFileError& error) {
        const study::Mistake& first = error.mistakes().front();
        return (first.key.empty() ? "" : first.key + ": ") + first.message;
    } catch (const base::UsageError& error) {
        return error.what();
    }
}

/// Takes over the keys that differ, and keeps what they were: a later start with the same study file keeps them, too.
void steer_spec(Core& core, const std::string& resolved) {
    const study::StudySpec later = study::parse_resolved_study(
        resolved, "the journal", {{core.spec.scheduler.algorithm}, {core.spec.searcher.algorithm}});
    bool stops = false;
    for (const study::KeyChange& change : study::differences(core.spec, later)) {
        stops = stops || change.key.starts_with("stop.");
        core.state.requests.changed(change.key, change.before);
    }
    lose_determinism(core);
    study::take_over(core.spec, later);
    if (!core.spec.checkpoint.supported) core.state.pace.set_stretch(trained_up_to(core, nullptr));
    core.scheduler->study_changed(core.spec);
    if (!stops) return;
    for (std::uint32_t i = 0; i < core.state.trials.size(); ++i)
        trial(core, TrialId{i}).window.clear(); // of the old rule
}

} // namespace

std::string objection(const Core& core, const study::Steering& ask) {
    if (core.state.requests.knows(ask.request)) return {};
    if (core.state.draining || core.state.ended) return words::study_is_ending();
    if (!core.admission->may_be_steered() && !only_more_trials(ask)) return words::study_is_deterministic();
    if (is_about_a_trial(ask.verb)) return objection_to_trial(core, ask);
    if (ask.verb == SteerVerb::add) return ask.points.empty() ? words::nothing_to_add() : "";
    return objection_to_settings(core, ask);
}

Next take(const Core& core, const study::SteerAsked& event, Round& round) {
    round.stale = core.state.requests.knows(event.ask.request) || !objection(core, event.ask).empty();
    if (round.stale) return {};
    study::Steered record{round.now, event.who, study::describe(event.ask), event.ask, {}};
    if (!is_about_a_trial(event.ask.verb)) record.spec = study::resolved_toml(steered_spec(core, event.ask));
    return record;
}

void apply_one(Core& core, const study::Steered& r) {
    core.state.requests.take_effect(r.ask.request, r.ask.points);
    if (!r.spec.empty()) steer_spec(core, r.spec);
    if (r.ask.verb == SteerVerb::pause || r.ask.verb == SteerVerb::resume)
        core.state.trials.set_on_hold(r.ask.trial, r.ask.verb == SteerVerb::pause);
    if (r.ask.verb != SteerVerb::cancel) return;
    trial(core, r.ask.trial).verdict = {Verb::stop, Reason::cancelled, 0.0, 0.0};
}

} // namespace ranktune::tuner
