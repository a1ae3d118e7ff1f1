// SPDX-License-Identifier: Apache-2.0
// What users ask of a running study: whether it can take effect, and what it changes.

#include <algorithm>
#include <string>

#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/study/change.hpp"
#include "ranktune/study/parse.hpp"
#include "study/steering_file.hpp"
#include "tuner/causes.hpp"
#include "tuner/tuner.hpp"

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

std::string key_objection(const std::string& key) {
    return key + " cannot change while the study runs; what can: " + study::settable_keys() +
           ". Others, as far as they may change at all, take effect with the next start: ranktune stop, then ranktune "
           "run with " +
           key + "=...";
}

} // namespace

// ---- questions

std::string Tuner::objection(const study::Steering& ask) const {
    if (state_.knows(ask.request)) return {};
    if (state_.draining || state_.ended) return "the study is ending; ask again when it runs";
    if (!occupancy_.may_be_steered() && !only_more_trials(ask))
        return "the study is deterministic: its results must not depend on when somebody asks for something. It takes "
               "more trials (ranktune add, or set study.num_trials) and ranktune stop";
    if (is_about_a_trial(ask.verb)) return objection_to_trial(ask);
    if (ask.verb == SteerVerb::add) return ask.points.empty() ? "there is no trial to add" : "";
    return objection_to_settings(ask);
}

std::string Tuner::objection_to_trial(const study::Steering& ask) const {
    if (ask.trial.value() >= state_.trials.size())
        return "there is no " + named(ask.trial) + ": the study has " + base::counted(state_.trials.size(), "trial") +
               " so far, from #0 on";
    const TrialState& t = state_.trials[ask.trial];
    if (is_final(t.phase))
        return named(ask.trial) + " is over: " + study::describe(t.closed_by, t.closed_a, t.closed_b);
    if (t.phase == TrialPhase::ending && t.verdict.verb == Verb::stop)
        return named(ask.trial) + " is ending: " + study::describe(t.verdict.reason, t.verdict.a, t.verdict.b);
    if (ask.verb == SteerVerb::resume) {
        if (t.on_hold) return {};
        if (t.phase == TrialPhase::paused)
            return named(ask.trial) +
                   " was paused by its scheduler, which lets it go on if it is good enough; users "
                   "resume what users have paused";
        return named(ask.trial) + " is not paused";
    }
    if (admission_->at_barrier(ask.trial))
        return named(ask.trial) + " waits to be compared with the others of its round; ask again when it trains";
    if (ask.verb == SteerVerb::cancel) return {};
    if (t.on_hold) return named(ask.trial) + " is paused by a user already; ranktune resume lets it go on";
    if (scheduler_->synchronous())
        return "scheduler " + std::string(scheduler_->name()) +
               " compares trials together: a paused one would hold up all others. It can be cancelled";
    if (scheduler_->holds_up_others(ask.trial))
        return "scheduler " + std::string(scheduler_->name()) +
               " lets no other trial of a rung go on before all have reported there: a paused one would hold them up. "
               "It can be cancelled";
    if (!spec_.checkpoint.supported)
        return "the trainable saves no checkpoints, so that a paused trial would begin again. It can be cancelled";
    return {};
}

std::string Tuner::objection_to_settings(const study::Steering& ask) const {
    if (ask.settings.empty()) return "there is nothing to set: ranktune set STUDY study.num_trials=120";
    for (const std::string& setting : ask.settings)
        if (const std::string key = study::key_of(setting); !study::may_be_set(key)) return key_objection(key);
    try {
        const study::StudySpec later = steered_spec(ask);
        const auto created = state_.trials.size() + state_.asked.size() * spec_.searcher.repeats;
        if (later.num_trials < created)
            return "study.num_trials: there are " + base::counted(created, "trial") + " already, so it cannot be " +
                   std::to_string(later.num_trials);
        const auto changes = study::differences(spec_, later);
        if (changes.empty()) return "the study has these settings already";
        for (const study::KeyChange& change : changes)
            if (!study::may_be_set(change.key)) return key_objection(change.key); // it follows from what was asked
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
    round.stale = state_.knows(event.ask.request) || !objection(event.ask).empty();
    if (round.stale) return {};
    study::Steered record{round.now, event.who, study::describe(event.ask), event.ask, {}};
    if (!is_about_a_trial(event.ask.verb)) record.spec = study::resolved_toml(steered_spec(event.ask));
    return record;
}

// ---- mutators

void Tuner::apply_one(const study::Steered& r) {
    if (state_.knows(r.ask.request)) impossible("a request takes effect twice");
    state_.requests.push_back(r.ask.request);
    for (const auto& point : r.ask.points) state_.asked.push_back(point);
    if (!r.spec.empty()) steer_spec(r.spec);
    if (r.ask.verb == SteerVerb::pause || r.ask.verb == SteerVerb::resume)
        state_.trials.set_on_hold(r.ask.trial, r.ask.verb == SteerVerb::pause);
    if (r.ask.verb != SteerVerb::cancel) return;
    TrialState& t = trial(r.ask.trial);
    t.verdict = {Verb::stop, Reason::cancelled, 0.0, 0.0};
    if (t.phase == TrialPhase::running) set_phase(r.ask.trial, TrialPhase::ending);
}

/// Takes over the keys that differ, and keeps what they were: a later start with the same study file keeps them, too.
void Tuner::steer_spec(const std::string& resolved) {
    const study::StudySpec later =
        study::parse_resolved_study(resolved, "the journal", {{spec_.scheduler.algorithm}, {spec_.searcher.algorithm}});
    bool stops = false;
    for (const study::KeyChange& change : study::differences(spec_, later)) {
        stops = stops || change.key.starts_with("stop.");
        if (std::ranges::find(state_.steered, change.key) != state_.steered.end()) continue;
        state_.steered.push_back(change.key);
        state_.unsteered.push_back(change.before);
    }
    lose_determinism();
    study::take_over(spec_, later);
    if (!spec_.checkpoint.supported) state_.pace.set_stretch(trained_up_to(nullptr));
    scheduler_->set_num_trials(spec_.num_trials);
    if (!stops) return;
    for (std::uint32_t i = 0; i < state_.trials.size(); ++i) trial(TrialId{i}).window.clear(); // of the old rule
}

} // namespace ranktune::tuner
