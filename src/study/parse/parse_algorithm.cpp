// SPDX-License-Identifier: Apache-2.0
#include "study/parse/parse_algorithm.hpp"

#include <algorithm>
#include <limits>

#include "study/options.hpp"

namespace ranktune::study {
namespace {

template <class Number>
Number bound(const std::optional<double>& given, Number none) {
    return given ? static_cast<Number>(*given) : none;
}

/// One of `accepted`, or any string when that is empty.
std::optional<space::Value> read_string(TableReader& table, const AlgorithmOption& option) {
    if (option.accepted.empty()) {
        const auto text = table.string(option.name);
        return text ? std::optional<space::Value>(*text) : std::nullopt;
    }
    const std::vector<std::string_view> accepted(option.accepted.begin(), option.accepted.end());
    const auto word = table.one_of(option.name, accepted);
    return word ? std::optional<space::Value>(option.accepted[*word]) : std::nullopt;
}

/// nullopt: absent or wrong; a mistake has been reported.
std::optional<space::Value> read_value(TableReader& table, const AlgorithmOption& option) {
    constexpr double infinite = std::numeric_limits<double>::infinity();
    using Integers = std::numeric_limits<std::int64_t>;
    switch (option.kind) {
        case OptionInfo::Kind::boolean:
            if (const auto value = table.boolean(option.name)) return *value;
            return std::nullopt;
        case OptionInfo::Kind::integer:
            if (const auto value =
                    table.integer(option.name, bound(option.low, Integers::min()), bound(option.high, Integers::max())))
                return *value;
            return std::nullopt;
        case OptionInfo::Kind::number:
            if (const auto value =
                    table.number(option.name, bound(option.low, -infinite), bound(option.high, infinite)))
                return *value;
            return std::nullopt;
        default: // a string or a path: check_description allows no other
            return read_string(table, option);
    }
}

/// `variant "stop"`
std::string condition_text(const OptionValue& condition) {
    return condition.option + " " +
           (condition.value.is_string() ? in_quotes(condition.value.as_string()) : condition.value.text());
}

/// Refuses the keys that only algorithms other than the chosen one have.
void refuse_others(TableReader& table, const std::vector<const AlgorithmInfo*>& algorithms,
                   const AlgorithmInfo& chosen) {
    for (const AlgorithmInfo* other : algorithms) {
        for (const AlgorithmOption& option : other->options) {
            if (find_option(chosen, option.name) != nullptr || !table.has(option.name)) continue;
            std::vector<const AlgorithmInfo*> owners;
            std::ranges::copy_if(algorithms, std::back_inserter(owners),
                                 [&](const auto* owner) { return find_option(*owner, option.name) != nullptr; });
            if (owners.front() == other) // once
                table.refuse(option.name, "is a key of type " + type_names(owners) + " only");
        }
    }
}

/// The study was begun by a program that registers algorithms of its own.
void refuse_unknown(TableReader& table, const std::vector<std::string_view>& names) {
    const Node* type = table.take("type");
    if (type == nullptr || !type->is(Node::Kind::string) || std::ranges::find(names, type->text) != names.end()) return;
    throw base::UsageError("the study has " + table.dotted("type") + " = " + in_quotes(type->text) +
                           ", which this program does not have; use the program that runs the study");
}

} // namespace

std::string type_names(const std::vector<const AlgorithmInfo*>& algorithms) {
    std::vector<std::string_view> names;
    for (const AlgorithmInfo* algorithm : algorithms) names.push_back(algorithm->name);
    return either(names);
}

std::optional<std::size_t> choose_algorithm(const ParseContext& context, TableReader& table,
                                            const std::vector<const AlgorithmInfo*>& algorithms,
                                            bool type_is_required) {
    const std::size_t before = table.mistakes().size();
    std::vector<std::string_view> names;
    for (const AlgorithmInfo* algorithm : algorithms) names.push_back(algorithm->name);
    if (context.trust_trainable) refuse_unknown(table, names);
    const auto type = table.one_of("type", names);
    if (type_is_required && table.table() != nullptr) table.require("type", either(names));
    if (table.mistakes().size() == before) {
        refuse_others(table, algorithms, *algorithms[type.value_or(0)]);
        return type.value_or(0);
    }
    // Without a valid type, only keys that no type has are reported.
    for (const AlgorithmInfo* algorithm : algorithms)
        for (const AlgorithmOption& option : algorithm->options) static_cast<void>(table.take(option.name));
    table.finish();
    return std::nullopt;
}

void check_objectives(const ParseContext& context, TableReader& table, const AlgorithmInfo& chosen,
                      const std::vector<const AlgorithmInfo*>& algorithms) {
    const std::string why = one_metric_only(chosen, context.spec.objective);
    if (why.empty()) return;
    std::vector<const AlgorithmInfo*> able;
    std::ranges::copy_if(algorithms, std::back_inserter(able), &AlgorithmInfo::several_objectives);
    table.complain("type",
                   why + "; use " + type_names(able) + ", or one metric and limits on the others in study.constraints");
}

OptionReader::OptionReader(ParseContext& context, TableReader& table, const AlgorithmInfo& algorithm)
    : table_(table), algorithm_(algorithm) {
    for (const AlgorithmOption& option : algorithm.options) {
        options_.set(option.name, option.standard);
        const std::size_t before = table.mistakes().size();
        read(option);
        options_.set(option.name,
                     resolved(as_option_info(option), options_.at(option.name), context.directory)); // a path
        if (table.mistakes().size() != before) wrong_.emplace_back(option.name);
    }
    check_deterministic(context);
    if (algorithm.check) check(context);
}

bool OptionReader::is_right(std::string_view option) const { return std::ranges::find(wrong_, option) == wrong_.end(); }

OptionReader::Applies OptionReader::applies(const AlgorithmOption& option) const {
    if (!option.only_with) return Applies::yes;
    const AlgorithmOption& other = *find_option(algorithm_, option.only_with->option);
    const Applies others = applies(other);
    if (others == Applies::no) return Applies::no;
    if (others == Applies::unknown || !is_right(other.name)) return Applies::unknown;
    return options_.at(other.name) == as_kind(other, option.only_with->value) ? Applies::yes : Applies::no;
}

void OptionReader::read(const AlgorithmOption& option) {
    if (applies(option) == Applies::no) {
        table_.refuse(option.name, "is a key of " + condition_text(*option.only_with) + " only");
    } else if (const auto value = read_value(table_, option)) {
        options_.set(option.name, *value);
    }
}

void OptionReader::check_deterministic(const ParseContext& context) {
    const auto why = not_deterministic(algorithm_, options_);
    if (!context.spec.deterministic || !why) return;
    const auto& when = algorithm_.not_deterministic->when;
    const bool all_right =
        std::ranges::all_of(when, [&](const OptionValue& condition) { return is_right(condition.option); });
    if (!all_right) return;
    table_.complain(why->first, why->second);
    if (!when.empty()) wrong_.emplace_back(when.front().option);
}

void OptionReader::check(ParseContext& context) {
    // Parameters with a wrong domain are not counted: whether they need a coordinate is unknown.
    const auto coordinates = std::ranges::count_if(
        context.entries, [](const SpaceEntry& entry) { return entry.domain && space::has_coordinate(*entry.domain); });
    const AlgorithmCheck check{
        .options = options_,
        .max_iterations = context.has_max_iterations ? std::optional(context.spec.max_iterations) : std::nullopt,
        .coordinates = static_cast<std::size_t>(coordinates),
        .several_objectives = context.spec.objective.several(),
        .is_right = [this](std::string_view option) { return is_right(option); },
        .reads_file = true,
        .complain =
            [this](std::string_view option, const std::string& message) {
                table_.complain(option, message);
                if (const AlgorithmOption* wrong = find_option(algorithm_, option)) wrong_.emplace_back(wrong->name);
            }};
    algorithm_.check(check);
}

} // namespace ranktune::study
