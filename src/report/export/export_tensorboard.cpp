// SPDX-License-Identifier: Apache-2.0
#include "report/export/export.hpp"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "ranktune/base/utf8.hpp"
#include "report/export/tfevents.hpp"
#include "report/view/wall_time.hpp"

namespace ranktune::report {
namespace {

using study::TrialPhase;
using tfevents::HyperParameter;

std::string event_file(double wall_time) {
    // TensorBoard orders the files of a run by name.
    return fmt::format("events.out.tfevents.{:010d}.ranktune", static_cast<std::int64_t>(wall_time));
}

HyperParameter described(const space::Parameter& parameter) {
    HyperParameter described;
    described.name = parameter.name;
    const auto list = [&](const std::vector<space::Value>& values) {
        for (const space::Value& value : values) described.values.push_back(tfevents::plain(value));
        const auto all = [&](auto is) { return std::ranges::all_of(described.values, is); };
        described.kind = all([](const space::Value& v) { return v.is_bool(); })     ? HyperParameter::Kind::boolean
                         : all([](const space::Value& v) { return v.is_number(); }) ? HyperParameter::Kind::number
                                                                                    : HyperParameter::Kind::string;
    };
    if (const auto* choice = std::get_if<space::Choice>(&parameter.domain)) list(choice->values);
    if (const auto* grid = std::get_if<space::Grid>(&parameter.domain)) list(grid->values);
    if (const auto* constant = std::get_if<space::Constant>(&parameter.domain)) list({constant->value});
    if (const auto* floats = std::get_if<space::FloatRange>(&parameter.domain))
        described.interval = {floats->lower, floats->upper};
    if (const auto* ints = std::get_if<space::IntRange>(&parameter.domain))
        described.interval = {static_cast<double>(ints->lower), static_cast<double>(ints->upper)};
    return described;
}

tfevents::Status status_of(const tuner::Trial& trial, bool study_is_over) {
    if (trial.phase == TrialPhase::failed) return tfevents::Status::failure;
    if (study::is_final(trial.phase) || study_is_over) return tfevents::Status::success;
    return tfevents::Status::running;
}

} // namespace

void export_tensorboard(const LoadedStudy& study, const History& history, const EachReport& each_report,
                        const WriteFile& write) {
    const tuner::State& state = study.tuner->state();
    const auto& parameters = study.tuner->spec().space.parameters();
    const auto wall = [&](study::StudyTime at) { return unix_at(history.starts(), base::to_seconds(at)); };
    std::vector<HyperParameter> hyper_parameters;
    for (const auto& parameter : parameters) hyper_parameters.push_back(described(parameter));
    const double begin = wall(study::StudyTime{});
    write(event_file(begin), tfevents::file_version(begin) + tfevents::experiment(begin, study.tuner->spec().name,
                                                                                  hyper_parameters, state.metrics));
    std::vector<std::string> metrics;
    for (const std::string& name : state.metrics) metrics.push_back(base::as_utf8(name));
    std::vector<std::string> events(state.trials.size()); // by trial
    each_report([&](const study::Reported& report) {
        for (const auto& metric : report.metrics)
            events.at(report.trial.value()) +=
                tfevents::scalar(wall(report.at), static_cast<std::int64_t>(report.iteration),
                                 metrics.at(metric.id.value()), metric.value);
    });
    for (std::uint32_t i = 0; i < state.trials.size(); ++i) {
        const tuner::Trial& trial = state.trials[i];
        const double start = wall(trial.attempt.id.value() > 0 ? trial.started : trial.created);
        std::vector<std::pair<std::string, space::Value>> values;
        const space::Configuration& configuration = tuner::best_configuration(trial);
        for (const auto& parameter : parameters)
            if (const auto* value = configuration.find(parameter.name))
                values.emplace_back(parameter.name, tfevents::plain(*value));
        std::string bytes = tfevents::file_version(start) + tfevents::session_start(start, values);
        bytes += std::exchange(events[i], {});
        const tfevents::Status status = status_of(trial, tuner::is_over(state));
        if (status != tfevents::Status::running)
            bytes +=
                tfevents::session_end(wall(study::is_final(trial.phase) ? trial.ended : trial.attempt.since), status);
        write(fmt::format("trial-{:04d}/{}", i, event_file(start)), bytes);
    }
}

} // namespace ranktune::report
