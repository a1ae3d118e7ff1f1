// SPDX-License-Identifier: Apache-2.0
#include "report/replay/replay.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ranktune/base/error.hpp"
#include "ranktune/study/parse.hpp"
#include "schedulers/built_in.hpp"
#include "searchers/built_in.hpp"
#include "tuner/lineage.hpp"

namespace ranktune::report {
namespace {

/// What one hyper-parameter was while the weights were trained.
struct Course {
    std::vector<space::Value> values; ///< each once, in the order of their first use
    std::vector<study::Scheduled::Change> changes;
};

Course course_of(const std::string& name, const std::vector<tuner::Stretch>& stretches) {
    Course course;
    study::Iteration trained = 0;
    const space::Value* now = nullptr;
    for (const tuner::Stretch& stretch : stretches) {
        const space::Value* value = stretch.configuration->find(name);
        if (value != nullptr) { // otherwise its condition does not hold
            if (now != nullptr && *now != *value) course.changes.push_back({trained, *value});
            if (std::ranges::find(course.values, *value) == course.values.end()) course.values.push_back(*value);
            now = value;
        }
        trained += stretch.length();
    }
    return course;
}

/// Constants as far as possible. What a condition may look at must list its values, so that it can come true.
void take_courses(study::StudySpec& spec, const std::vector<tuner::Stretch>& stretches) {
    const auto& all = spec.space.parameters();
    const bool conditional =
        std::ranges::any_of(all, [](const space::Parameter& p) { return p.condition.has_value(); });
    std::vector<space::Parameter> parameters;
    for (const space::Parameter& parameter : all) {
        Course course = course_of(parameter.name, stretches);
        if (course.values.empty()) continue; // its condition never held
        const bool lists = conditional && course.values.size() > 1;
        const space::Domain domain =
            lists ? space::Domain(space::Grid{course.values}) : space::Domain(space::Constant{course.values.front()});
        parameters.push_back({parameter.name, domain, parameter.condition});
        if (!course.changes.empty()) spec.scheduler.schedule.push_back({parameter.name, std::move(course.changes)});
    }
    spec.space = space::SearchSpace(std::move(parameters));
}

/// "digits-trial-3"
std::string name_of(const std::string& study, const std::string& ending) {
    std::string name = study + ending;
    // A name has a limited length.
    for (std::size_t keep = study.size(); keep > 0 && !study::is_study_name(name); --keep)
        name = study.substr(0, keep - 1) + ending;
    return name;
}

study::StudySpec repeated(const tuner::Tuner& tuner, study::TrialId trial,
                          const std::vector<tuner::Stretch>& stretches) {
    study::StudySpec spec = tuner.spec();
    spec.name = name_of(spec.name, "-trial-" + std::to_string(trial.value()));
    spec.num_trials = 1;
    spec.seed = spec.seed_of(trial);
    spec.max_iterations = 0;
    for (const tuner::Stretch& stretch : stretches) spec.max_iterations += stretch.length();
    spec.max_concurrent = 0;
    spec.time_budget.reset();
    spec.deterministic = false;
    spec.trainable.inputs.clear(); // the next start reads its files anew
    for (study::DataFile& file : spec.data) file.content.clear();
    spec.searcher = searchers::chosen("random");
    spec.scheduler = {};
    take_courses(spec, stretches);
    auto schedule = std::exchange(spec.scheduler.schedule, {});
    spec.scheduler = schedulers::chosen(schedule.empty() ? "fifo" : "schedule");
    spec.scheduler.schedule = std::move(schedule);
    return spec;
}

/// The values that the trials have of what a schedule has changed.
void take_scheduled(study::StudySpec& spec, const std::vector<space::Configuration>& configurations) {
    std::vector<space::Parameter> parameters = spec.space.parameters();
    for (space::Parameter& parameter : parameters) {
        if (std::ranges::find(spec.scheduler.schedule, parameter.name, &study::Scheduled::name) ==
            spec.scheduler.schedule.end())
            continue;
        std::vector<space::Value> values;
        for (const auto& each : configurations)
            if (const space::Value* value = each.find(parameter.name);
                value != nullptr && std::ranges::find(values, *value) == values.end())
                values.push_back(*value);
        if (!values.empty()) parameter.domain = space::Choice{std::move(values)};
    }
    spec.space = space::SearchSpace(std::move(parameters), spec.space.rules());
}

} // namespace

study::StudySpec extended(const tuner::Tuner& tuner, const std::vector<study::TrialId>& trials,
                          study::Iteration max_iterations) {
    study::StudySpec spec = tuner.spec();
    std::vector<space::Configuration> configurations;
    for (const study::TrialId trial : trials) configurations.push_back(tuner.state().trial(trial).configuration);
    spec.name = name_of(spec.name, "-extended");
    spec.num_trials = static_cast<std::uint32_t>(configurations.size());
    spec.max_iterations = max_iterations;
    spec.max_concurrent = 0;
    spec.deterministic = false;
    spec.time_budget.reset();
    spec.stop = {};
    take_scheduled(spec, configurations);
    spec.scheduler = schedulers::chosen("fifo");
    spec.searcher = searchers::chosen("random");
    spec.searcher.start = std::move(configurations);
    return spec;
}

study::StudySpec repeated(const tuner::Tuner& tuner, study::TrialId trial) {
    const tuner::State& state = tuner.state();
    if (trial.value() >= state.trials.size())
        throw base::UsageError("there is no trial #" + std::to_string(trial.value()) + "; the study has " +
                               std::to_string(state.trials.size()));
    if (!state.trial(trial).reported)
        throw base::UsageError("trial #" + std::to_string(trial.value()) + " has not reported yet");
    return repeated(tuner, trial, lineage(state, trial));
}

study::StudySpec repeated_best(const tuner::Tuner& tuner) {
    const tuner::State& state = tuner.state();
    return repeated(tuner, *state.best, lineage_of_best(state, *state.best));
}

} // namespace ranktune::report
