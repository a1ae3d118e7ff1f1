// SPDX-License-Identifier: Apache-2.0
#include "simulate/cluster/weights.hpp"

#include <cmath>
#include <span>
#include <variant>

#include "base/joined.hpp"

namespace ranktune::simulate {
namespace {

void add(Training& training, const space::Configuration& configuration, base::Iteration iterations) {
    if (iterations == 0) return;
    if (!training.empty() && training.back().first == configuration)
        training.back().second += iterations;
    else
        training.emplace_back(configuration, iterations);
}

Training training_of(const std::vector<tuner::Stretch>& stretches) {
    Training training;
    for (const tuner::Stretch& each : stretches) add(training, *each.configuration, each.length());
    return training;
}

std::string text(const Training& training) {
    return base::joined(training,
                        [](const auto& each) { return std::to_string(each.second) + " with " + each.first.text(); });
}

} // namespace

Training Weights::trained(const Attempt& attempt, base::Iteration iteration) {
    Training training = attempt.before;
    add(training, attempt.configuration, iteration - attempt.from);
    return training;
}

void Weights::see(const study::Record& record) {
    if (const auto* created = std::get_if<study::TrialCreated>(&record)) {
        members_[created->trial].configurations = {created->configuration};
    } else if (const auto* exploited = std::get_if<study::Exploited>(&record)) {
        members_.at(exploited->trial).configurations.push_back(exploited->configuration);
        members_.at(exploited->trial).taken_at.push_back(exploited->iteration);
    } else if (const auto* undone = std::get_if<study::ExploitUndone>(&record)) {
        members_.at(undone->trial).configurations.pop_back();
        members_.at(undone->trial).taken_at.pop_back();
    } else if (const auto* started = std::get_if<study::TrialStarted>(&record)) {
        Member& member = members_.at(started->trial);
        Attempt& attempt = member.attempts[started->attempt];
        attempt.configuration = member.configurations.back();
        if (const auto* state = study::checkpoint_of(started->from)) {
            const bool own = std::holds_alternative<study::CheckpointRef>(started->from);
            attempt.before = saved_.at(state->path);
            attempt.from = own ? state->iteration : member.taken_at.back();
        }
    } else if (const auto* report = std::get_if<study::Reported>(&record)) {
        Member& member = members_.at(report->trial);
        member.newest = trained(member.attempts.at(report->attempt), report->iteration);
    } else if (const auto* saved = std::get_if<study::CheckpointCommitted>(&record)) {
        const Attempt& attempt = members_.at(saved->trial).attempts.at(saved->attempt);
        saved_[saved->checkpoint.path] = trained(attempt, saved->checkpoint.iteration);
    }
}

std::vector<std::string> wrong_schedules(const MemoryJournal& journal, const study::StudySpec& spec) {
    std::vector<std::string> problems;
    Weights weights;
    std::map<base::TrialId, Training> best;
    tuner::Tuner tuner(spec);
    const tuner::State& state = tuner.state();
    const auto compare = [&](const std::vector<tuner::Stretch>& told, const Training& truth, base::TrialId trial,
                             const std::string& what) {
        if (training_of(told) != truth)
            problems.push_back("trial " + std::to_string(trial.value()) + " " + what + ": told " +
                               text(training_of(told)) + "; trained " + text(truth));
    };
    journal.for_each([&](const study::Record& record) {
        weights.see(record);
        const auto* report = std::get_if<study::Reported>(&record);
        const double before = report == nullptr ? 0.0 : state.trial(report->trial).best;
        tuner.apply(record);
        if (report == nullptr) return;
        compare(lineage(state, report->trial), weights.newest(report->trial), report->trial, "reports");
        const double after = state.trial(report->trial).best;
        if (!std::isnan(after) && after != before) best[report->trial] = weights.newest(report->trial);
    });
    for (std::uint32_t i = 0; i < state.trials.size(); ++i) {
        const base::TrialId trial{i};
        const tuner::Trial& t = state.trials[trial];
        if (const auto truth = best.find(trial); truth != best.end())
            compare(lineage_of_best(state, trial), truth->second, trial, "was best");
        for (const auto& each : std::span(t.checkpoints).subspan(t.of_earlier_life))
            compare(lineage(state, trial, each), weights.saved_in(each.path), trial, "kept " + each.path);
    }
    return problems;
}

} // namespace ranktune::simulate
