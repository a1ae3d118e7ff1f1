// SPDX-License-Identifier: Apache-2.0
#include "ranktune/study/steering.hpp"
#include "base/joined.hpp"
#include "base/number_in.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <span>

#include "base/csv.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "study/options.hpp"
#include "study/parse/checker.hpp"
#include "study/parse/toml_tree.hpp"
#include "study/schedule.hpp"
#include "study/start.hpp"
#include "study/steering_file.hpp"
#include "study/toml_text.hpp"

namespace ranktune::study {
namespace {

constexpr std::array<std::string_view, 5> steer_verbs{"pause", "resume", "cancel", "add", "set"};

/// What the core reads while trials run, and nothing that groups have been told. The time-outs are kept by the workers.
constexpr std::array<std::string_view, 5> settable{"study.num_trials", "study.max_concurrent", "study.time_budget",
                                                   "failure.", "stop."};

std::string toml_string(const std::string& text) { return space::Value(text).literal(); }

space::Configuration point_of(const Node& table, const space::SearchSpace& space) {
    space::Configuration point;
    for_each_leaf(table, [&](const std::string& name, const Node& node) {
        Mistakes mistakes;
        const auto value = to_value(node, name, mistakes);
        if (!value) throw base::UsageError(name + ": " + mistakes.sorted().front().message);
        const space::Parameter* parameter = space.find(name);
        point.set(name, parameter == nullptr ? *value : as_in(parameter->domain, *value));
    });
    const auto problems = start_problems(point, space);
    const auto in_words = [](const StartProblem& each) { return each.name + ": " + each.message; };
    if (!problems.empty()) throw base::UsageError(base::joined(problems, in_words, "; "));
    return point;
}

const Node& needed_key(const Node& root, std::string_view key, Node::Kind kind) {
    const Node* node = root.find(key);
    if (node == nullptr || !node->is(kind))
        throw base::UsageError("the request has no valid '" + std::string(key) + "'");
    return *node;
}

} // namespace

std::string_view name(SteerVerb verb) { return steer_verbs.at(static_cast<std::size_t>(verb)); }

std::string describe(const Steering& ask) {
    std::string text(name(ask.verb));
    if (ask.verb == SteerVerb::set) return text + " " + base::join(ask.settings);
    if (ask.verb != SteerVerb::add) return text + " trial #" + std::to_string(ask.trial.value());
    text += " " + base::counted(ask.points.size(), "trial");
    std::vector<std::string> points;
    for (const auto& point : ask.points) points.push_back(point.empty() ? "(suggested)" : point.text());
    return text + ": " + base::join_some(std::move(points), 3, "; ");
}

std::string steering_text(const SteeringFile& file) {
    char request[24];
    std::snprintf(request, sizeof request, "%016llx", static_cast<unsigned long long>(file.ask.request));
    std::string text = "request = " + toml_string(request) + "\nwho = " + toml_string(file.who) +
                       "\nverb = " + toml_string(std::string(name(file.ask.verb))) +
                       "\ntrial = " + std::to_string(file.ask.trial.value()) + "\nsettings = [";
    for (const std::string& setting : file.ask.settings) text += toml_string(setting) + ", ";
    text += "]\n";
    for (const auto& point : file.ask.points) {
        text += "[[points]]\n";
        for (const auto& [key, value] : point.entries()) text += key + " = " + text_of(value) + "\n";
    }
    return text;
}

SteeringFile parse_steering(const std::string& text, const space::SearchSpace& space) {
    try {
        const Node root = parse_toml(text);
        SteeringFile file;
        const auto request = base::number_in<std::uint64_t>(needed_key(root, "request", Node::Kind::string).text, 16);
        if (!request) throw base::UsageError("the request has no valid number");
        file.ask.request = *request;
        file.who = needed_key(root, "who", Node::Kind::string).text;
        const std::string& verb = needed_key(root, "verb", Node::Kind::string).text;
        const auto known = std::ranges::find(steer_verbs, verb);
        if (known == steer_verbs.end())
            throw base::UsageError("'" + verb + "' is none of " + base::join(std::span(steer_verbs)));
        file.ask.verb = static_cast<SteerVerb>(known - steer_verbs.begin());
        const std::int64_t trial = needed_key(root, "trial", Node::Kind::integer).integer;
        if (trial < 0 || trial > std::numeric_limits<std::uint32_t>::max())
            throw base::UsageError("there is no trial " + std::to_string(trial));
        file.ask.trial = base::TrialId{static_cast<std::uint32_t>(trial)};
        for (const Node& setting : needed_key(root, "settings", Node::Kind::array).items) {
            if (!setting.is(Node::Kind::string)) throw base::UsageError("the request has no valid 'settings'");
            file.ask.settings.push_back(setting.text);
        }
        if (const Node* points = root.find("points"))
            for (const Node& point : points->items) file.ask.points.push_back(point_of(point, space));
        return file;
    } catch (const TomlError& error) {
        throw base::UsageError(std::string("the request is no valid TOML: ") + error.what());
    }
}

space::Configuration parse_point(const std::vector<std::string>& words, const space::SearchSpace& space) {
    Node root;
    for (const std::string& word : words) apply_override(root, word);
    return point_of(root, space);
}

std::vector<space::Configuration> parse_points_csv(const std::string& text, const std::string& file,
                                                   const space::SearchSpace& space) {
    std::vector<space::Configuration> points;
    std::vector<std::string> names;
    std::vector<std::string> cells;
    base::CsvReader rows(text);
    try {
        while (rows.next(cells)) {
            if (names.empty()) {
                names = cells;
                for (const std::string& name : names)
                    if (std::ranges::count(names, name) > 1)
                        throw base::UsageError("two columns have the name '" + name + "'");
                continue;
            }
            std::vector<std::string> words;
            for (std::size_t i = 0; i < cells.size(); ++i)
                if (!cells[i].empty()) words.push_back(names[i] + "=" + cells[i]);
            points.push_back(parse_point(words, space));
        }
    } catch (const base::Error& error) {
        throw base::UsageError(file + ":" + std::to_string(rows.row_line()) + ": " + error.what());
    }
    if (points.empty())
        throw base::UsageError(file +
                               ": no trial in it: a line with names of hyper-parameters, then one for each trial");
    return points;
}

bool may_be_set(std::string_view key) {
    if (key.starts_with("failure.") && key.ends_with("_timeout")) return false; // the ranks keep theirs
    return std::ranges::any_of(
        settable, [&](std::string_view entry) { return entry.ends_with('.') ? key.starts_with(entry) : key == entry; });
}

std::string settable_keys() {
    return "study.num_trials, study.max_concurrent, study.time_budget, and those of [stop] and "
           "[failure], but for its time limits (*_timeout)";
}

std::string key_of(const std::string& setting) {
    return std::string(base::trimmed(setting.substr(0, setting.find('='))));
}

} // namespace ranktune::study
