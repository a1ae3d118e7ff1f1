// SPDX-License-Identifier: Apache-2.0
#include "ranktune/study/algorithm.hpp"

#include <algorithm>

#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/study/spec.hpp"
#include "study/algorithm_options.hpp"
#include "study/explore.hpp"
#include "study/options.hpp"
#include "study/schedule.hpp"
#include "study/start.hpp"

namespace ranktune::study {
namespace {

const AlgorithmOption& option_of(const AlgorithmInfo& algorithm, std::string_view name) {
    if (const AlgorithmOption* option = find_option(algorithm, name)) return *option;
    std::vector<std::string> names;
    for (const AlgorithmOption& option : algorithm.options) names.push_back(option.name);
    throw base::UsageError("'" + algorithm.name + "' has no option '" + std::string(name) + "'" +
                           base::suggestion(name, names) + "; options: " + base::join(names));
}

space::Configuration defaults(const AlgorithmInfo& algorithm) {
    space::Configuration options;
    for (const AlgorithmOption& option : algorithm.options) options.set(option.name, option.standard);
    return options;
}

void set_option(const AlgorithmInfo& algorithm, space::Configuration& options, const OptionValue& value) {
    const AlgorithmOption& option = option_of(algorithm, value.option);
    const std::string why = option_problem(option, value.value);
    if (!why.empty()) throw base::UsageError(value.option + ": " + why);
    options.set(option.name, as_kind(option, value.value));
}

bool holds(const AlgorithmInfo& algorithm, const space::Configuration& options, const OptionValue& condition) {
    return options.at(condition.option) == as_kind(option_of(algorithm, condition.option), condition.value);
}
bool all_hold(const AlgorithmInfo& algorithm, const space::Configuration& options,
              const std::vector<OptionValue>& conditions) {
    return std::ranges::all_of(conditions,
                               [&](const OptionValue& condition) { return holds(algorithm, options, condition); });
}

template <class Spec, class Info>
Spec chosen_of(std::shared_ptr<const Info> algorithm, const std::vector<OptionValue>& values) {
    Spec spec{std::move(algorithm), {}};
    spec.options = defaults(*spec.algorithm);
    for (const OptionValue& value : values) set_option(*spec.algorithm, spec.options, value);
    return spec;
}

/// `table`: "scheduler" or "searcher".
void check_options(const AlgorithmInfo* algorithm, const space::Configuration& options, const std::string& table,
                   const StudySpec& study) {
    if (algorithm == nullptr) throw base::UsageError("the study has no " + table);
    const auto complain = [&table](std::string_view option, const std::string& message) {
        throw base::UsageError(table + "." + std::string(option) + ": " + message);
    };
    if (const std::string why = one_metric_only(*algorithm, study.objective); !why.empty()) complain("type", why);
    if (study.max_iterations < 1) throw base::UsageError("study.max_iterations must be at least 1");
    for (const AlgorithmOption& option : algorithm->options) {
        const std::string why = option_problem(option, options.at(option.name));
        if (!why.empty()) complain(option.name, why);
    }
    if (const auto why = not_deterministic(*algorithm, options); why && study.deterministic)
        complain(why->first, why->second);
    if (!algorithm->check) return;
    algorithm->check({.options = options,
                      .max_iterations = study.max_iterations,
                      .coordinates = study.space.dimensions(),
                      .several_objectives = study.objective.several(),
                      .is_right = [](std::string_view) { return true; },
                      .complain = complain});
}

void check_explored(const SchedulerSpec& scheduler, const StudySpec& study) {
    if (!scheduler.algorithm->explores && !scheduler.explore.empty())
        throw base::UsageError("scheduler.explore: '" + scheduler.algorithm->name +
                               "' changes nothing while a trial trains");
    for (const Explored& each : scheduler.explore) {
        const space::Parameter* parameter = study.space.find(each.name);
        const std::string problem =
            parameter == nullptr ? "is not in the space" : explore_problem(each, *parameter, study.resources, nullptr);
        if (!problem.empty()) throw base::UsageError("scheduler.explore." + each.name + ": " + problem);
    }
}

void check_scheduled(const SchedulerSpec& scheduler, const StudySpec& study) {
    if (scheduler.algorithm->schedules == scheduler.schedule.empty())
        throw base::UsageError("scheduler.schedule: '" + scheduler.algorithm->name +
                               (scheduler.schedule.empty() ? "' needs hyper-parameters and the iterations at which "
                                                             "they change"
                                                           : "' changes nothing at given iterations"));
    for (const Scheduled& each : scheduler.schedule) {
        const space::Parameter* parameter = study.space.find(each.name);
        std::string problem = parameter == nullptr ? "is not in the space" : changes_problem(each);
        if (problem.empty()) problem = schedule_problem(each, *parameter, nullptr);
        if (!problem.empty()) throw base::UsageError("scheduler.schedule." + each.name + ": " + problem);
    }
}

// ---- descriptions

[[noreturn]] void refuse(const AlgorithmInfo& algorithm, const std::string& why) {
    throw base::UsageError("the description of '" + algorithm.name + "': " + why);
}

bool is_key(std::string_view name) {
    return !name.empty() && name[0] >= 'a' && name[0] <= 'z' && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    });
}

/// `option` may depend only on options in `before`.
void check_option(const AlgorithmInfo& algorithm, const AlgorithmOption& option,
                  const std::vector<const AlgorithmOption*>& before) {
    const auto require = [&](bool holds, const std::string& what) {
        if (!holds) refuse(algorithm, "option '" + option.name + "' " + what);
    };
    using Kind = OptionInfo::Kind;
    require(is_key(option.name) && option.name != "type",
            "is no key: small letters, digits and '_', a letter first, and not 'type'");
    require(option.kind == Kind::boolean || option.kind == Kind::integer || option.kind == Kind::number ||
                option.kind == Kind::string || option.kind == Kind::path,
            "is neither a boolean nor an integer, a number, a string or a path");
    require(!option.description.empty(), "has no description");
    const std::string why = option_problem(option, option.standard);
    require(why.empty(), "has a default that it does not take: " + why);
    const bool twice = std::ranges::any_of(before, [&](const auto* other) { return other->name == option.name; });
    require(!twice, "is there twice");
    if (!option.only_with) return;
    const auto other = std::ranges::find(before, option.only_with->option, &AlgorithmOption::name);
    require(other != before.end(), "depends on '" + option.only_with->option + "', which is not listed before it");
    require(option_problem(**other, option.only_with->value).empty(),
            "depends on a value that '" + (*other)->name + "' cannot have");
}

/// `what`: depends on these values of options.
void check_conditions(const AlgorithmInfo& algorithm, const std::vector<OptionValue>& conditions,
                      const std::string& what) {
    for (const OptionValue& condition : conditions) {
        const AlgorithmOption* option = find_option(algorithm, condition.option);
        if (option == nullptr || !option_problem(*option, condition.value).empty())
            refuse(algorithm, what + " depends on '" + condition.option +
                                  "', which it does not have, or on a value that this option cannot have");
    }
}

void check_info(const AlgorithmInfo& algorithm) {
    if (!is_key(algorithm.name)) refuse(algorithm, "its name has small letters, digits and '_', a letter first");
    if (algorithm.description.empty()) refuse(algorithm, "it says nothing of what the algorithm does");
    std::vector<const AlgorithmOption*> before;
    for (const AlgorithmOption& option : algorithm.options) {
        check_option(algorithm, option, before);
        before.push_back(&option);
    }
    if (algorithm.not_deterministic)
        check_conditions(algorithm, algorithm.not_deterministic->when, "whether it goes with study.deterministic");
}

} // namespace

const AlgorithmOption* find_option(const AlgorithmInfo& algorithm, std::string_view name) {
    const auto found = std::ranges::find(algorithm.options, name, &AlgorithmOption::name);
    return found == algorithm.options.end() ? nullptr : &*found;
}

OptionInfo as_option_info(const AlgorithmOption& option) {
    return {.name = option.name,
            .kind = option.kind,
            .description = option.description,
            .accepted = option.accepted,
            .low = option.low,
            .high = option.high};
}

std::string option_problem(const AlgorithmOption& option, const space::Value& value) {
    return option_problem(as_option_info(option), value);
}

space::Value as_kind(const AlgorithmOption& option, const space::Value& value) {
    return option.kind == OptionInfo::Kind::number ? space::Value(value.as_double()) : value;
}

std::string one_metric_only(const AlgorithmInfo& algorithm, const Objective& objective) {
    if (algorithm.several_objectives || !objective.several()) return {};
    return "\"" + algorithm.name + "\" compares trials by one metric, and study.metric names " +
           std::to_string(objective.goals().size());
}

SchedulerSpec chosen(std::shared_ptr<const SchedulerInfo> algorithm, const std::vector<OptionValue>& values) {
    return chosen_of<SchedulerSpec>(std::move(algorithm), values);
}
SearcherSpec chosen(std::shared_ptr<const SearcherInfo> algorithm, const std::vector<OptionValue>& values) {
    return chosen_of<SearcherSpec>(std::move(algorithm), values);
}
void set_option(SchedulerSpec& scheduler, const OptionValue& value) {
    set_option(*scheduler.algorithm, scheduler.options, value);
}

bool applies(const AlgorithmInfo& algorithm, const space::Configuration& options, const AlgorithmOption& option) {
    if (!option.only_with) return true;
    return applies(algorithm, options, option_of(algorithm, option.only_with->option)) &&
           holds(algorithm, options, *option.only_with);
}

bool needs_checkpoints(const SchedulerSpec& scheduler) {
    const auto& need = scheduler.algorithm->needs_checkpoints;
    return need && all_hold(*scheduler.algorithm, scheduler.options, need->when);
}

std::optional<std::pair<std::string, std::string>> not_deterministic(const AlgorithmInfo& algorithm,
                                                                     const space::Configuration& options) {
    const auto& refusal = algorithm.not_deterministic;
    if (!refusal || !all_hold(algorithm, options, refusal->when)) return {};
    const OptionValue& because = refusal->when.empty() ? OptionValue{"type", algorithm.name} : refusal->when.front();
    const std::string value =
        because.value.is_string() ? "\"" + because.value.as_string() + "\"" : because.value.text();
    return std::pair(because.option, value + " does not go with study.deterministic" + refusal->why);
}

void check_options(const SchedulerSpec& scheduler, const StudySpec& study) {
    check_options(scheduler.algorithm.get(), scheduler.options, "scheduler", study);
    check_explored(scheduler, study);
    check_scheduled(scheduler, study);
}
void check_options(const SearcherSpec& searcher, const StudySpec& study) {
    check_options(searcher.algorithm.get(), searcher.options, "searcher", study);
    for (const space::Parameter& parameter : study.space.parameters()) {
        const std::string why =
            no_number(*searcher.algorithm, parameter.name, parameter.domain, parameter.condition.has_value());
        if (!why.empty()) throw base::UsageError("searcher.type: " + why);
    }
    for (const space::Configuration& point : searcher.start)
        for (const StartProblem& problem : start_problems(point, study.space))
            throw base::UsageError("searcher.start." + problem.name + ": " + problem.message);
}

std::string no_number(const SearcherInfo& searcher, std::string_view parameter, const space::Domain& domain,
                      bool conditional) {
    if (!searcher.only_numbers) return {};
    const std::string begin =
        "\"" + searcher.name + "\" needs a number for '" + std::string(parameter) + "' in every trial";
    if (conditional)
        return begin + ", not a parameter with a condition; remove the condition, or use \"tpe\" or \"auto\"";
    const auto* list = std::get_if<space::Choice>(&domain);
    if (list == nullptr || list->ordered || list->values.size() < 2) return {};
    constexpr std::size_t most_shown = 10;
    const std::size_t count = list->values.size();
    return begin + ", not " + (count > most_shown ? "one of " + base::counted(count, "value") : space::text(domain)) +
           "; if the values have an order, write choice([...], ordered=true); otherwise use \"tpe\" or \"auto\"";
}

void check_description(const SchedulerInfo& scheduler) {
    check_info(scheduler);
    if (!scheduler.make) refuse(scheduler, "it has no factory");
    if (scheduler.needs_checkpoints)
        check_conditions(scheduler, scheduler.needs_checkpoints->when, "whether it needs checkpoints");
}

void check_description(const SearcherInfo& searcher) {
    check_info(searcher);
    if (!searcher.make) refuse(searcher, "it has no factory");
}

} // namespace ranktune::study
