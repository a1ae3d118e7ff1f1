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
#include "tuner/causes.hpp"
#include "tuner/tuner.hpp"
#include "tuner/words.hpp"

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

} // namespace

// ---- questions

std::string Tuner::objection(const study::Steering& ask) const {
    if (state_.requests.knows(ask.request)) return {};
    if (state_.draining || state_.ended) return words::study_is_ending();
    if (!admission_->may_be_steered() && !only_more_trials(ask)) return words::study_is_deterministic();
    if (is_about_a_trial(ask.verb)) return objection_to_trial(ask);
    if (ask.verb == SteerVerb::add) return ask.points.empty() ? words::nothing_to_add() : "";
    return objection_to_settings(ask);
}

std::string Tuner::objection_to_trial(const study::Steering& ask) const {
    if (ask.trial.value() >= state_.trials.size()) return words::no_such_trial(ask.trial, state_.trials.size());
    const Trial& t = state_.trials[ask.trial];
    if (is_final(t.phase)) return words::is_over(ask.trial, t.closed_by, t.closed_a, t.closed_b);
    if (ask.verb == SteerVerb::resume) {
        if (t.on_hold) return {};
        return t.phase == TrialPhase::paused ? words::paused_by_scheduler(ask.trial) : words::is_not_paused(ask.trial);
    }
    if (admission_->at_barrier(ask.trial)) return words::is_at_barrier(ask.trial);
    if (ask.verb == SteerVerb::cancel) return {};
    if (t.on_hold) return words::is_on_hold(ask.trial);
    if (scheduler_->synchronous()) return words::compares_together(scheduler_->name());
    if (scheduler_->holds_up_others(ask.trial)) return words::holds_up_others(scheduler_->name());
    return spec_.checkpoint.supported ? std::string() : words::would_begin_again();
}

std::string Tuner::objection_to_settings(const study::Steering& ask) const {
    if (ask.settings.empty()) return words::nothing_to_set();
    std::vector<std::string> fixed;
    for (const std::string& setting : ask.settings)
        if (std::string key = study::key_of(setting); !study::may_be_set(key)) fixed.push_back(std::move(key));
    const auto why_fixed = [&] { return words::key_is_fixed(fixed[0], study::may_change_later(fixed[0], spec_)); };
    const study::KeyTable known(study::Algorithms{{spec_.scheduler.algorithm}, {spec_.searcher.algorithm}});
    if (!fixed.empty() && std::ranges::find(known.keys(), fixed[0]) != known.keys().end()) return why_fixed();
    try {
        const study::StudySpec later = steered_spec(ask); // refuses keys that there are not
        if (!fixed.empty()) return why_fixed();
        const auto created = state_.trials.size() + state_.requests.points().size() * spec_.searcher.repeats;
        if (later.num_trials < created) return words::fewer_trials(created, later.num_trials);
        const auto changes = study::differences(spec_, later);
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

/// The study file with what was asked for. Throws base::UsageError with the mistakes.
study::StudySpec Tuner::steered_spec(const study::Steering& ask) const {
    if (ask.verb == SteerVerb::set)
        return study::parse_resolved_study(study::resolved_toml(spec_), "the request",
                                           {{spec_.scheduler.algorithm}, {spec_.searcher.algorithm}}, ask.settings);
    study::StudySpec later = spec_;
    later.num_trials += static_cast<std::uint32_t>(ask.points.size()) * spec_.searcher.repeats;
    return later;
}

Tuner::Next Tuner::take(const study::SteerAsked& event, Round& round) const {
    round.stale = state_.requests.knows(event.ask.request) || !objection(event.ask).empty();
    if (round.stale) return {};
    study::Steered record{round.now, event.who, study::describe(event.ask), event.ask, {}};
    if (!is_about_a_trial(event.ask.verb)) record.spec = study::resolved_toml(steered_spec(event.ask));
    return record;
}

// ---- mutators

void Tuner::apply_one(const study::Steered& r) {
    state_.requests.take_effect(r.ask.request, r.ask.points);
    if (!r.spec.empty()) steer_spec(r.spec);
    if (r.ask.verb == SteerVerb::pause || r.ask.verb == SteerVerb::resume)
        state_.trials.set_on_hold(r.ask.trial, r.ask.verb == SteerVerb::pause);
    if (r.ask.verb != SteerVerb::cancel) return;
    trial(r.ask.trial).verdict = {Verb::stop, Reason::cancelled, 0.0, 0.0};
}

/// Takes over the keys that differ, and keeps what they were: a later start with the same study file keeps them, too.
void Tuner::steer_spec(const std::string& resolved) {
    const study::StudySpec later =
        study::parse_resolved_study(resolved, "the journal", {{spec_.scheduler.algorithm}, {spec_.searcher.algorithm}});
    bool stops = false;
    for (const study::KeyChange& change : study::differences(spec_, later)) {
        stops = stops || change.key.starts_with("stop.");
        state_.requests.changed(change.key, change.before);
    }
    lose_determinism();
    study::take_over(spec_, later);
    if (!spec_.checkpoint.supported) state_.pace.set_stretch(trained_up_to(nullptr));
    scheduler_->set_num_trials(spec_.num_trials);
    if (!stops) return;
    for (std::uint32_t i = 0; i < state_.trials.size(); ++i) trial(TrialId{i}).window.clear(); // of the old rule
}

} // namespace ranktune::tuner
