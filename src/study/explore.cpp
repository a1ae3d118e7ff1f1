// SPDX-License-Identifier: Apache-2.0
#include "study/explore.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

#include "ranktune/study/trainable_info.hpp"
#include "study/options.hpp"

namespace ranktune::study {
namespace {

/// Multiplying makes sense.
bool is_numeric(const space::Domain& domain) {
    return std::holds_alternative<space::FloatRange>(domain) || std::holds_alternative<space::IntRange>(domain) ||
           std::holds_alternative<space::Normal>(domain);
}

/// Values of an ordered list go to a neighbour, by the factor's direction.
bool is_ordered(const space::Domain& domain) {
    const auto* choice = std::get_if<space::Choice>(&domain);
    return choice != nullptr && choice->ordered;
}

} // namespace

std::string explore_problem(const Explored& explored, const space::Parameter& parameter, const ResourceSpec& resources,
                            const TrainableInfo* trainable) {
    if (std::holds_alternative<space::Constant>(parameter.domain)) return "is a constant";
    if (parameter.name == resources.ranks_parameter)
        return "says how many ranks a trial has (resources.ranks); it keeps its value";
    const OptionInfo* option = trainable == nullptr ? nullptr : find_option(*trainable, parameter.name);
    if (option != nullptr && !option->may_change)
        return "cannot change while a trial of '" + trainable->name + "' trains: its state was saved for another value";
    if (explored.factors.empty()) return "";
    if (!is_numeric(parameter.domain) && !is_ordered(parameter.domain))
        return "has no order in which factors could move it: write \"resample\", or in [space] choice([...], "
               "ordered=true)";
    const bool are_factors = std::ranges::all_of(
        explored.factors, [](double factor) { return std::isfinite(factor) && factor > 0.0 && factor != 1.0; });
    return are_factors ? "" : "factors are numbers above 0, and not 1";
}

std::vector<std::string> explorable(const space::SearchSpace& space, const ResourceSpec& resources,
                                    const TrainableInfo* trainable) {
    std::vector<std::string> names;
    for (const space::Parameter& parameter : space.parameters())
        if (explore_problem({parameter.name, {}}, parameter, resources, trainable).empty())
            names.push_back(parameter.name);
    return names;
}

} // namespace ranktune::study
