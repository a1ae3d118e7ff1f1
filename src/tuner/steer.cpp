// SPDX-License-Identifier: Apache-2.0
// What users ask of a running study: whether it can take effect, and what it changes.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/study/change.hpp"
#include "ranktune/study/parse.hpp"
#include "study/parse/key_table.hpp"
#include "study/steering_file.hpp"
#include "tuner/apply.hpp"
#include "tuner/decide.hpp"
#include "tuner/rules/causes.hpp"

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
    const std::string its_name = named(ask.trial);
    if (const std::size_t trials = core.state.trials.size(); ask.trial.value() >= trials)
        return "there is no " + its_name + ": the study has " + base::counted(trials, "trial") + " so far, from #0 on";
    const Trial& t = core.state.trials[ask.trial];
    if (is_final(t.phase)) return its_name + " is over: " + study::describe(t.closed_by, t.closed_a, t.closed_b);
    if (ask.verb == SteerVerb::resume) {
        if (t.on_hold) return {};
        if (t.phase != TrialPhase::paused) return its_name + " is not paused";
        return its_name +
               " was paused by its scheduler, which lets it go on if it is good enough; users resume what users have "
               "paused";
    }
    if (core.admission->at_barrier(ask.trial))
        return its_name + " waits to be compared with the others of its round; ask again when it trains";
    if (ask.verb == SteerVerb::cancel) return {};
    if (t.on_hold) return its_name + " is paused by a user already; ranktune resume lets it go on";
    const std::string scheduler = "scheduler " + std::string(core.scheduler->name());
    if (core.scheduler->synchronous())
        return scheduler + " compares trials together: a paused one would hold up all others. It can be cancelled";
    if (core.scheduler->holds_up_others(ask.trial))
        return scheduler +
               " lets no other trial of a rung go on before all have reported there: a paused one would hold them up. "
               "It can be cancelled";
    if (core.spec.checkpoint.supported) return {};
    return "the trainable saves no checkpoints, so that a paused trial would begin again. It can be cancelled";
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

/// `later`: the next start can take over another value.
std::string key_is_fixed(const std::string& key, bool later) {
    const std::string settable = "; what can change while the study runs: " + study::settable_keys();
    if (later)
        return key + " changes with the next start only: ranktune stop, then ranktune run with " + key + "=..." +
               settable;
    const std::string longer =
        key == "study.max_iterations" ? "; longer training for some trials: ranktune extend" : "";
    return key + " cannot change in a study that has begun, because results depend on it; " +
           "another study can have it: ranktune run STUDY_FILE " + key + "=... -o DIRECTORY" + longer + settable;
}

std::string objection_to_settings(const Core& core, const study::Steering& ask) {
    if (ask.settings.empty()) return "there is nothing to set: ranktune set STUDY study.num_trials=120";
    std::vector<std::string> fixed;
    for (const std::string& setting : ask.settings)
        if (std::string key = study::key_of(setting); !study::may_be_set(key)) fixed.push_back(std::move(key));
    const auto why_fixed = [&] { return key_is_fixed(fixed[0], study::may_change_later(fixed[0], core.spec)); };
    const study::KeyTable known(study::Algorithms{{core.spec.scheduler.algorithm}, {core.spec.searcher.algorithm}});
    if (!fixed.empty() && std::ranges::find(known.keys(), fixed[0]) != known.keys().end()) return why_fixed();
    try {
        const study::StudySpec later = steered_spec(core, ask); // refuses keys that there are not
        if (!fixed.empty()) return why_fixed();
        const auto created =
            core.state.trials.size() + core.state.requests.points().size() * core.spec.searcher.repeats;
        if (later.num_trials < created)
            return "study.num_trials: there are " + base::counted(created, "trial") + " already, so it cannot be " +
                   std::to_string(later.num_trials);
        const auto changes = study::differences(core.spec, later);
        if (changes.empty()) return "the study has these settings already";
        for (const study::KeyChange& change : changes)
            if (!study::may_be_set(change.key))
                return key_is_fixed(change.key, change.may_change); // it follows from what was asked
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
    if (core.state.draining || core.state.ended) return "the study is ending; ask again when it runs";
    if (!core.admission->may_be_steered() && !only_more_trials(ask))
        return "the study is deterministic: its results must not depend on when somebody asks for something. It takes "
               "more trials (ranktune add, or set study.num_trials) and ranktune stop";
    if (is_about_a_trial(ask.verb)) return objection_to_trial(core, ask);
    if (ask.verb == SteerVerb::add) return ask.points.empty() ? "there is no trial to add" : "";
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
