// SPDX-License-Identifier: Apache-2.0
#include "study/parse/space/condition_checks.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>

#include "ranktune/base/text.hpp"

namespace ranktune::study {
namespace {

constexpr std::size_t longest_domain = 60;
constexpr std::size_t most_names = 8;
constexpr std::uint64_t most_combinations = 10'000;

/// Suggests the nearest known name for an unknown one, else lists the known names.
std::string known_text(const std::string& name, std::vector<std::string> known) {
    if (std::string near = base::suggestion(name, known); !near.empty()) return near;
    if (known.empty()) return " (there is no other)";
    return " (known: " + base::join_some(std::move(known), most_names) + ")";
}

/// For a name on the right side of a comparison, which may have been meant as a text.
std::string quotes_hint(std::string_view condition, std::string_view name) {
    const std::string_view left = condition.substr(0, std::min(condition.find(name), condition.size()));
    const auto before = left.find_last_not_of(' ');
    const bool compared =
        before != std::string_view::npos && std::string_view("=<>").find(left[before]) != std::string_view::npos;
    return compared ? "; a text is written in quotes" : "";
}

/// Whether arithmetic can use some value of the domain.
bool has_number(const space::Domain& domain) {
    const auto* choice = std::get_if<space::Choice>(&domain);
    const auto* grid = std::get_if<space::Grid>(&domain);
    const auto* constant = std::get_if<space::Constant>(&domain);
    if (choice != nullptr) return std::ranges::any_of(choice->values, &space::Value::is_number);
    if (grid != nullptr) return std::ranges::any_of(grid->values, &space::Value::is_number);
    return constant == nullptr || constant->value.is_number();
}

/// All nodes that can be reached from `from`; `from` itself only if it is on a cycle.
std::vector<bool> reached(const std::vector<std::vector<std::size_t>>& edges, std::size_t from) {
    std::vector<bool> found(edges.size(), false);
    std::vector<std::size_t> open{from};
    while (!open.empty()) {
        const std::size_t at = open.back();
        open.pop_back();
        for (const std::size_t next : edges[at]) {
            if (found[next]) continue;
            found[next] = true;
            open.push_back(next);
        }
    }
    return found;
}

} // namespace

bool may_name_parameter(std::span<const SpaceEntry> entries, std::string_view name) {
    return std::ranges::any_of(entries, [&](const SpaceEntry& entry) {
        return name == entry.name || (!entry.is_parameter && name.starts_with(entry.name + "."));
    });
}

std::vector<std::string> names_of(std::span<const SpaceEntry> entries) {
    std::vector<std::string> names;
    for (const SpaceEntry& entry : entries) names.push_back(entry.name);
    return names;
}

void ConditionChecks::add_condition(space::Condition condition, const Node& node, std::string key, Conditions& to) {
    to.all = to.all ? space::Condition::both(*to.all, condition) : condition;
    to.parts.push_back(written_.size());
    written_.push_back({std::move(condition), &node, std::move(key)});
}

void ConditionChecks::add_unreadable(std::string_view text, Conditions& to) {
    to.unreadable = true;
    constexpr std::string_view in_names = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    for (auto at = text.find_first_of(in_names); at != std::string_view::npos; at = text.find_first_of(in_names, at)) {
        const auto end = std::min(text.find_first_not_of(in_names, at), text.size());
        mentioned_.emplace_back(text.substr(at, end - at));
        at = end;
    }
}

void ConditionChecks::add_entry(SpaceEntry entry) { entries_.push_back(std::move(entry)); }

const SpaceEntry* ConditionChecks::find(std::string_view name) const {
    const auto found = std::ranges::find(entries_, name, &SpaceEntry::name);
    return found == entries_.end() ? nullptr : &*found;
}

/// The domain of a parameter as conditions see it; null: unknown, or pinned to a value.
const space::Domain* ConditionChecks::drawn(std::string_view name) const {
    const SpaceEntry* entry = find(name);
    return entry == nullptr || entry->pinned || !entry->domain ? nullptr : &*entry->domain;
}

void ConditionChecks::check(Mistakes& mistakes, std::vector<std::string>& names, bool trusted) const {
    names.insert(names.end(), mentioned_.begin(), mentioned_.end());
    check_names(mistakes, names);
    check_circles(mistakes);
    if (!trusted) check_possible(mistakes);
}

void ConditionChecks::check_names(Mistakes& mistakes, std::vector<std::string>& names) const {
    const auto all = names_of(entries_);
    for (const Written& each : written_) {
        auto known = all;
        std::erase_if(known, [&](const std::string& own) { return each.key == "space." + own + ".condition"; });
        for (const std::string& name : each.condition.names()) {
            names.push_back(name);
            if (may_name_parameter(entries_, name)) continue;
            mistakes.value(*each.node, each.key,
                           "unknown parameter '" + name + "'" + known_text(name, known) +
                               quotes_hint(each.condition.text(), name) + ":  " + in_quotes(each.condition.text()));
        }
        for (const std::string& name : each.condition.numbers()) {
            const SpaceEntry* entry = find(name);
            if (entry == nullptr || !entry->domain || has_number(*entry->domain)) continue;
            mistakes.value(*each.node, each.key,
                           "'" + name + "' is no number: it is drawn from " + space::text(*entry->domain) + ":  " +
                               in_quotes(each.condition.text()));
        }
    }
}

/// For each parameter the parameters that its conditions mention.
std::vector<std::vector<std::size_t>> ConditionChecks::needs() const {
    std::vector<std::vector<std::size_t>> needs(entries_.size());
    for (std::size_t i = 0; i < entries_.size(); ++i)
        for (const std::size_t part : entries_[i].conditions.parts)
            for (const std::string& name : written_[part].condition.names())
                if (const SpaceEntry* needed = find(name))
                    needs[i].push_back(static_cast<std::size_t>(needed - entries_.data()));
    return needs;
}

void ConditionChecks::check_circles(Mistakes& mistakes) const {
    const auto edges = needs();
    std::vector<bool> told(entries_.size(), false);
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        if (told[i] || edges[i].empty()) continue;
        const auto from_here = reached(edges, i);
        if (!from_here[i]) continue;
        std::vector<std::size_t> circle;
        for (std::size_t j = 0; j < entries_.size(); ++j)
            if (from_here[j] && reached(edges, j)[i]) circle.push_back(j);
        for (const std::size_t j : circle) told[j] = true;
        tell_circle(mistakes, circle);
    }
}

/// Reports a cycle at the first parameter's condition that mentions another parameter of it.
void ConditionChecks::tell_circle(Mistakes& mistakes, const std::vector<std::size_t>& circle) const {
    std::vector<std::string> names;
    for (const std::size_t i : circle) names.push_back(entries_[i].name);
    for (const std::size_t part : entries_[circle.front()].conditions.parts) {
        const Written& at = written_[part];
        const bool leads = std::ranges::any_of(at.condition.names(), [&](const std::string& name) {
            return std::ranges::find(names, name) != names.end();
        });
        if (!leads) continue;
        mistakes.value(*at.node, at.key,
                       (names.size() == 1 ? "the condition of '" + names.front() + "' mentions '" + names.front() +
                                                "' itself; it may mention other parameters only"
                                          : "conditions that wait for each other: " + base::join(names) +
                                                "; one of them has to do without the others") +
                           ":  " + in_quotes(at.condition.text()));
        return;
    }
}

/// False only when no values of the parameters satisfy the condition: all combinations of finite domains are tried. In
/// doubt true: for a continuous domain, and for too many combinations.
bool ConditionChecks::possible(const space::Condition& condition) const {
    const auto& names = condition.names();
    std::vector<std::vector<std::optional<space::Value>>> values;
    std::uint64_t combinations = 1;
    for (const std::string& name : names) {
        const space::Domain* domain = drawn(name);
        const auto& numbers = condition.numbers();
        if (domain != nullptr && !has_number(*domain) && std::ranges::find(numbers, name) != numbers.end())
            return true; // which has been said
        const auto count = domain == nullptr ? std::nullopt : space::cardinality(*domain);
        if (!count || *count > most_combinations) return true;
        auto& of_name = values.emplace_back();
        for (std::uint64_t i = 0; i < *count; ++i) of_name.emplace_back(space::value_at(*domain, i));
        if (find(name)->conditions.any()) of_name.emplace_back(std::nullopt); // it may be absent
        combinations *= of_name.size();
        if (combinations > most_combinations) return true;
    }
    for (std::uint64_t n = 0; n < combinations; ++n) {
        const auto value_of = [&](std::string_view name) -> const space::Value* {
            std::uint64_t digits = n; // one for each name
            std::size_t at = 0;
            for (; names[at] != name; ++at) digits /= values[at].size();
            const auto& value = values[at][digits % values[at].size()];
            return value ? &*value : nullptr;
        };
        if (condition.holds(std::cref(value_of))) return true; // by reference: no allocation for each combination
    }
    return false;
}

/// "a is drawn from [1, 2]", for each parameter that the condition mentions and can count on.
std::string ConditionChecks::drawn_from(const space::Condition& condition) const {
    std::string text;
    for (const std::string& name : condition.names()) {
        const space::Domain* known = drawn(name);
        if (known == nullptr) continue;
        std::string domain = space::text(*known);
        if (domain.size() > longest_domain) domain = domain.substr(0, longest_domain - 3) + "...";
        text += (text.empty() ? "'" : ", '") + name + "' is drawn from " + domain;
    }
    return text;
}

void ConditionChecks::tell_impossible(Mistakes& mistakes, std::size_t part, const std::string& why) const {
    const Written& at = written_[part];
    mistakes.value(*at.node, at.key,
                   why + ": " + drawn_from(at.condition) +
                       "; compare with values that can be:  " + in_quotes(at.condition.text()));
}

void ConditionChecks::check_possible(Mistakes& mistakes) const {
    std::set<std::size_t> never;
    for (std::size_t part = 0; part < written_.size(); ++part) {
        if (possible(written_[part].condition)) continue;
        never.insert(part);
        tell_impossible(mistakes, part, "can never hold");
    }
    for (const SpaceEntry& entry : entries_) {
        const auto& parts = entry.conditions.parts;
        if (parts.size() < 2 || std::ranges::any_of(parts, [&](std::size_t part) { return never.contains(part); }))
            continue;
        if (possible(*entry.conditions.all) || !never.insert(parts.back()).second) continue;
        tell_impossible(mistakes, parts.back(), "can never hold together with the condition of the table around it");
    }
}

} // namespace ranktune::study
