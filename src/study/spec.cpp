// SPDX-License-Identifier: Apache-2.0
#include "ranktune/study/spec.hpp"

#include <algorithm>
#include <limits>

#include "ranktune/base/error.hpp"

namespace ranktune::study {
namespace {

std::uint32_t checked_ranks(const std::string& parameter, std::int64_t value) {
    if (value < 1 || value > std::numeric_limits<std::int32_t>::max())
        throw base::UsageError("resources.ranks: the parameter '" + parameter + "' gives " + std::to_string(value) +
                               " ranks; a trial needs at least 1");
    return static_cast<std::uint32_t>(value);
}

/// The largest integer of a domain; 1 for domains that the parser refuses as a number of ranks.
std::int64_t largest(const space::Domain& domain) {
    if (std::holds_alternative<space::IntRange>(domain))
        return space::value_at(domain, *space::cardinality(domain) - 1).as_int();
    if (const auto* constant = std::get_if<space::Constant>(&domain)) return constant->value.as_int();
    std::int64_t best = 1;
    const auto scan = [&](const std::vector<space::Value>& values) {
        for (const space::Value& value : values) best = std::max(best, value.as_int());
    };
    if (const auto* choice = std::get_if<space::Choice>(&domain)) scan(choice->values);
    if (const auto* grid = std::get_if<space::Grid>(&domain)) scan(grid->values);
    return best;
}

} // namespace

const DataFile* StudySpec::data_file(std::string_view called) const {
    const auto found = std::ranges::find(data, called, &DataFile::name);
    return found == data.end() ? nullptr : &*found;
}

const std::string* TrainableSpec::content_of(const std::string& option) const {
    const auto found = std::ranges::find(inputs, option, &InputFile::option);
    return found == inputs.end() ? nullptr : &found->content;
}

std::uint32_t ResourceSpec::ranks_per_gpu() const {
    constexpr double rounding = 1e-6; // 0.333333 is a third
    return static_cast<std::uint32_t>((1.0 + rounding) / gpu_share);
}

std::uint32_t StudySpec::ranks_for(const space::Configuration& configuration) const {
    if (resources.ranks_parameter.empty() || workers_for(configuration) == WorkerKind::without_gpu)
        return resources.ranks;
    return checked_ranks(resources.ranks_parameter, configuration.at(resources.ranks_parameter).as_int());
}

WorkerKind StudySpec::workers_for(const space::Configuration& configuration) const {
    if (resources.gpus != GpuUse::some) return WorkerKind::any;
    return configuration.at(resources.ranks_parameter).as_int() == 0 ? WorkerKind::without_gpu : WorkerKind::with_gpu;
}

std::uint32_t StudySpec::max_ranks_per_trial() const { return max_ranks_per_trial(WorkerKind::any); }

std::uint32_t StudySpec::max_ranks_per_trial(WorkerKind kind) const {
    if (resources.ranks_parameter.empty() || kind == WorkerKind::without_gpu) return resources.ranks;
    const space::Parameter* parameter = space.find(resources.ranks_parameter);
    if (parameter == nullptr)
        throw base::UsageError("resources.ranks: the space has no parameter '" + resources.ranks_parameter + "'");
    const std::uint32_t most = checked_ranks(parameter->name, largest(parameter->domain));
    const bool of_both = kind == WorkerKind::any && resources.gpus == GpuUse::some;
    return of_both ? std::max(most, resources.ranks) : most;
}

std::uint32_t StudySpec::trials_at_once(std::uint32_t workers) const {
    return (workers - std::min(output.spares + resources.helpers, workers)) / max_ranks_per_trial();
}

const SideSpec& StudySpec::side(SideTask::Kind kind) const {
    if (kind == SideTask::Kind::after_trial) return after_trial;
    return kind == SideTask::Kind::before ? before : after;
}

bool StudySpec::evaluates_checkpoints() const {
    const std::string& command = after_trial.command;
    const std::size_t at = command.find("{checkpoint}");
    return at != std::string::npos && (at == 0 || command[at - 1] != '{'); // a doubled brace is text
}

} // namespace ranktune::study
