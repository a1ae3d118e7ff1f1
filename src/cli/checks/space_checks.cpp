// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "cli/checks/remarks.hpp"
#include "ranktune/base/text.hpp"
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

/// A nested table of constants with two numbers at least: so look ranges of other tools whose names nobody knows.
std::vector<std::string> tables_of_constants(const study::StudySpec& spec) {
    struct Table {
        std::vector<std::string> names;
        int numbers = 0;
        bool tuned = false;
    };
    std::map<std::string, Table> tables;
    for (const space::Parameter& parameter : spec.space.parameters()) {
        for (auto dot = parameter.name.find('.'); dot != std::string::npos; dot = parameter.name.find('.', dot + 1))
            if (!is_fixed(parameter)) tables[parameter.name.substr(0, dot)].tuned = true;
        const auto dot = parameter.name.rfind('.');
        const auto* constant = std::get_if<space::Constant>(&parameter.domain);
        if (dot == std::string::npos || constant == nullptr) continue;
        Table& table = tables[parameter.name.substr(0, dot)];
        table.names.push_back(parameter.name.substr(dot + 1));
        if (constant->value.is_int() || constant->value.is_double()) ++table.numbers;
    }
    std::vector<std::string> remarks;
    for (const auto& [name, table] : tables)
        if (!table.tuned && table.numbers > 1)
            remarks.push_back(fmt::format(
                "space.{} is a table of constants ({}): nothing in it is tuned. A range is a line of its own, {} = "
                "\"uniform(LOW, HIGH)\"",
                name, base::join(table.names), name));
    return remarks;
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
std::string same_words(const study::StudySpec& spec, const space::Parameter& parameter) {
    const auto* values = list_in(parameter.domain);
    if (values == nullptr) return "";
    const study::CommandTemplate command(*spec.trainable.program);
    const auto placeholders = command.placeholders();
    if (std::ranges::find(placeholders, "config") != placeholders.end()) return "";
    const auto words_for = [&](const space::Configuration& configuration) {
        return command.expand(
            {.configuration = configuration, .config_path = "config.json", .iterations = 1, .data = spec.data});
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
    if (std::string nothing = nothing_tuned(spec); !nothing.empty())
        remarks.push_back(std::move(nothing));
    else
        remarks = tables_of_constants(spec);
    for (const space::Parameter& parameter : spec.space.parameters()) {
        note(other_steps(parameter));
        if (spec.trainable.program) note(same_words(spec, parameter));
    }
    return remarks;
}

} // namespace ranktune::cli
