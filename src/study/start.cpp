// SPDX-License-Identifier: Apache-2.0
#include "study/start.hpp"

#include <algorithm>

#include "ranktune/base/text.hpp"

namespace ranktune::study {
namespace {

std::string unknown_text(const std::string& name, const space::SearchSpace& space) {
    std::vector<std::string> names;
    for (const space::Parameter& parameter : space.parameters()) names.push_back(parameter.name);
    const std::string meant = base::suggestion(name, names);
    return "no hyper-parameter of [space] has this name" + (meant.empty() ? "; it has " + base::join(names) : meant);
}

/// The value that a parameter certainly has: the given one, or the only one. Null: unknown.
const space::Value* certain(std::string_view name, const space::Configuration& point, const space::SearchSpace& space) {
    if (const space::Value* given = point.find(name)) return given;
    const space::Parameter* parameter = space.find(name);
    const auto* constant = parameter == nullptr ? nullptr : std::get_if<space::Constant>(&parameter->domain);
    return constant != nullptr && !parameter->condition ? &constant->value : nullptr;
}

/// All values that its condition mentions are known, and the condition does not hold.
bool cannot_exist(const space::Parameter& parameter, const space::Configuration& point,
                  const space::SearchSpace& space) {
    if (!parameter.condition) return false;
    const auto value_of = [&](std::string_view name) { return certain(name, point, space); };
    const auto& names = parameter.condition->names();
    if (!std::ranges::all_of(names, [&](const std::string& name) { return value_of(name) != nullptr; })) return false;
    return !parameter.condition->holds(value_of);
}

} // namespace

std::vector<StartProblem> start_problems(const space::Configuration& point, const space::SearchSpace& space) {
    std::vector<StartProblem> problems;
    for (const auto& [name, value] : point.entries()) {
        const space::Parameter* parameter = space.find(name);
        if (parameter == nullptr) {
            problems.push_back({name, false, unknown_text(name, space)});
        } else if (!space::contains(parameter->domain, value)) {
            problems.push_back({name, true, value.literal() + " is no value of " + space::text(parameter->domain)});
        } else if (cannot_exist(*parameter, point, space)) {
            problems.push_back(
                {name, false, "does not exist at this point; its condition is " + parameter->condition->text()});
        }
    }
    if (problems.empty() && !space.rules().empty() && !point.empty() && !space.pinned(point)) {
        const space::Rule* broken = space.broken_by(point);
        problems.push_back({(*point.entries().begin()).name, true,
                            broken != nullptr ? "this point breaks " + broken->text()
                                              : "no values of the other hyper-parameters keep the rules of [space]"});
    }
    return problems;
}

} // namespace ranktune::study
