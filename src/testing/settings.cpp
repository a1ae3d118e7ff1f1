// SPDX-License-Identifier: Apache-2.0
#include "testing/settings.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>

#include "base/joined.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/study/parse.hpp"
#include "ranktune/study/spec.hpp"

namespace ranktune::testing {
namespace {

using Kind = study::OptionInfo::Kind;

constexpr std::size_t most_combinations = 64;

bool applies(const study::AlgorithmInfo& info, const Settings& settings, const study::AlgorithmOption& option) {
    space::Configuration options;
    for (const study::AlgorithmOption& each : info.options) options.set(each.name, each.standard);
    for (const study::OptionValue& each : settings) options.set(each.option, each.value);
    return study::applies(info, options, option);
}

/// Values of an option with few values.
std::vector<space::Value> all_values(const study::AlgorithmOption& option) {
    if (option.kind == Kind::boolean) return {true, false};
    return {option.accepted.begin(), option.accepted.end()};
}

/// Values other than the default: the bounds, and some near the default.
std::vector<space::Value> some_numbers(const study::AlgorithmOption& option) {
    const double standard = option.standard.as_double();
    std::vector<double> numbers{standard + 1.0, 2.0 * standard, 0.5 * standard};
    if (option.low) numbers.push_back(*option.low);
    if (option.high) numbers.push_back(*option.high);
    std::vector<space::Value> values;
    for (double number : numbers) {
        if (option.kind == Kind::integer) number = std::floor(number);
        if (number == standard || (option.low && number < *option.low) || (option.high && number > *option.high))
            continue;
        const space::Value value =
            option.kind == Kind::integer ? space::Value(static_cast<std::int64_t>(number)) : space::Value(number);
        if (std::ranges::find(values, value) == values.end()) values.push_back(value);
    }
    return values;
}

/// Every combination of the options with few values.
std::vector<Settings> combinations(const study::AlgorithmInfo& info) {
    std::vector<Settings> all{{}};
    for (const study::AlgorithmOption& option : info.options) {
        std::vector<Settings> more;
        for (const Settings& settings : all) {
            if (!applies(info, settings, option)) continue;
            for (const space::Value& value : all_values(option)) {
                if (value == option.standard) continue;
                more.push_back(settings);
                more.back().push_back({option.name, value});
            }
        }
        for (Settings& settings : more)
            if (all.size() < most_combinations) all.push_back(std::move(settings));
    }
    return all;
}

/// One hyper-parameter, for those that explore.
void explore_one(study::SchedulerSpec& scheduler) {
    if (scheduler.algorithm->explores) scheduler.explore = {{"lr", {}}};
    if (scheduler.algorithm->schedules) scheduler.schedule = {{"lr", {{1, 0.5}}}};
}
void explore_one(study::SearcherSpec&) {}

template <class Info>
bool works_alone(const Info& info, const Settings& settings) {
    study::StudySpec spec;
    spec.max_iterations = 20;
    spec.space = space::SearchSpace({{"lr", space::FloatRange{}, {}}});
    try {
        auto chosen = study::chosen(std::make_shared<const Info>(info), settings);
        explore_one(chosen);
        check_options(chosen, spec);
        return true;
    } catch (const base::UsageError&) {
        return false;
    }
}

} // namespace

std::vector<Settings> settings_of(const study::AlgorithmInfo& info, const Works& works) {
    std::vector<Settings> all;
    std::ranges::copy_if(combinations(info), std::back_inserter(all), works);
    const std::vector<Settings> combined = all;
    for (const study::AlgorithmOption& option : info.options) {
        if (option.kind != Kind::integer && option.kind != Kind::number) continue;
        for (const space::Value& number : some_numbers(option)) {
            for (Settings settings : combined) {
                if (!applies(info, settings, option)) continue;
                settings.push_back({option.name, number});
                if (!works(settings)) continue;
                all.push_back(std::move(settings));
                break;
            }
        }
    }
    return all;
}

std::vector<Settings> settings_of(const study::SchedulerInfo& info) {
    return settings_of(info, [&](const Settings& settings) { return works_alone(info, settings); });
}
std::vector<Settings> settings_of(const study::SearcherInfo& info) {
    return settings_of(info, [&](const Settings& settings) { return works_alone(info, settings); });
}

void check_resolved(const study::StudySpec& spec, bool must_parse) {
    const std::string text = study::resolved_toml(spec);
    const study::Algorithms known{{spec.scheduler.algorithm}, {spec.searcher.algorithm}};
    try {
        const study::StudySpec again = study::parse_resolved_study(text, "/contract/resolved.toml", known);
        require(study::resolved_toml(again) == text, "options read back from the resolved file as they were written");
    } catch (const study::StudyFileError&) {
        if (must_parse) throw; // settings that do not fit into a study file
    }
}

std::string settings_text(const Settings& settings) {
    if (settings.empty()) return {};
    return "{" + base::joined(settings, [](const auto& each) { return each.option + " = " + each.value.literal(); }) +
           "}";
}

} // namespace ranktune::testing
