// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "cli/checks/remarks.hpp"
#include "ranktune/study/command_template.hpp"

namespace ranktune::cli {
namespace {

using space::Value;

/// Whether every trial gets the same value.
bool is_fixed(const space::Parameter& parameter) { return space::cardinality(parameter.domain) == 1U; }

std::string nothing_tuned(const study::StudySpec& spec) {
    const auto& parameters = spec.space.parameters();
    if (spec.num_trials < 2 || !std::ranges::all_of(parameters, is_fixed)) return "";
    return fmt::format(
        "nothing is tuned: {}, so all {} trials have the same configuration. A domain is written as in "
        "lr = \"loguniform(1e-4, 1e-1)\" or lr = [0.1, 0.01]",
        parameters.empty()
            ? "[space] has no hyper-parameter"
            : fmt::format("{} of [space] {}", parameters.front().name + (parameters.size() > 1 ? ", ..." : ""),
                          parameters.size() > 1 ? "are constants" : "is a constant"),
        spec.num_trials);
}

/// Multiples of a quantum begin at 0, not at the lower bound, as other tools count.
std::string other_steps(const space::Parameter& parameter) {
    space::Domain from_lower = parameter.domain;
    Value lower;
    if (auto* ints = std::get_if<space::IntRange>(&from_lower); ints != nullptr && !ints->log && !ints->from_lower) {
        lower = ints->lower;
        ints->from_lower = true;
    } else if (auto* floats = std::get_if<space::FloatRange>(&from_lower);
               floats != nullptr && !floats->log && !floats->from_lower && floats->quantum > 0.0) {
        lower = floats->lower;
        floats->from_lower = true;
    } else {
        return "";
    }
    const Value least = space::value_at(parameter.domain, 0);
    if (least == lower) return "";
    const Value greatest = space::value_at(parameter.domain, *space::cardinality(parameter.domain) - 1);
    return fmt::format("{} = \"{}\" has multiples, from {} to {}; \"{}\" counts from its lower bound", parameter.name,
                       space::text(parameter.domain), least.text(), greatest.text(), space::text(from_lower));
}

const std::vector<Value>* list_in(const space::Domain& domain) {
    if (const auto* choice = std::get_if<space::Choice>(&domain)) return &choice->values;
    const auto* grid = std::get_if<space::Grid>(&domain);
    return grid == nullptr ? nullptr : &grid->values;
}

/// Two values of a list for which the command is the same: the strings of ["a,b"] and ["a", "b"] have no quotes in it.
std::string same_words(const study::ProgramSpec& program, const space::Parameter& parameter) {
    const auto* values = list_in(parameter.domain);
    if (values == nullptr) return "";
    const study::CommandTemplate command(program);
    const auto placeholders = command.placeholders();
    if (std::ranges::find(placeholders, "config") != placeholders.end()) return "";
    const auto words_for = [&](const space::Configuration& configuration) {
        return command.expand({configuration, "config.json", 1});
    };
    const auto without = words_for({});
    std::map<std::vector<std::string>, Value> seen;
    for (const Value& value : *values) {
        const auto words = words_for(space::Configuration({{parameter.name, value}}));
        if (words == without) continue;
        const auto [at, is_new] = seen.emplace(words, value);
        if (!is_new && at->second != value)
            return fmt::format(
                "{} and {} of {} make the same argument: the program cannot tell them apart. {{args_hydra}}, "
                "{{args:py}} "
                "and {{config}} in the command keep them apart",
                at->second.literal(), value.literal(), parameter.name);
    }
    return "";
}

} // namespace

std::vector<std::string> space_remarks(const study::StudySpec& spec) {
    std::vector<std::string> remarks;
    const auto note = [&](std::string remark) {
        if (!remark.empty()) remarks.push_back(std::move(remark));
    };
    note(nothing_tuned(spec));
    for (const space::Parameter& parameter : spec.space.parameters()) {
        note(other_steps(parameter));
        if (spec.trainable.program) note(same_words(*spec.trainable.program, parameter));
    }
    return remarks;
}

} // namespace ranktune::cli
