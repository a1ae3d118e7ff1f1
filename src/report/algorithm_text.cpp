// SPDX-License-Identifier: Apache-2.0
#include "report/algorithm_text.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace ranktune::report {
namespace {

using Kind = study::OptionInfo::Kind;

/// As a study file writes it.
std::string literal(const space::Value& value) {
    return value.is_string() ? "\"" + value.as_string() + "\"" : value.literal();
}

using space::number_text;

std::string default_text(const study::AlgorithmOption& option) {
    return option.kind == Kind::number ? number_text(option.standard.as_double()) : literal(option.standard);
}

/// "integer 1 to 64", "number >= 0"; an upper limit of `unlimited` or more is omitted.
std::string range_text(std::string_view what, const study::AlgorithmOption& option, double unlimited) {
    std::string text(what);
    const bool bounded = option.high && *option.high < unlimited;
    if (option.low && bounded) return text + " " + number_text(*option.low) + " to " + number_text(*option.high);
    if (option.low) return text + " >= " + number_text(*option.low);
    return bounded ? text + " <= " + number_text(*option.high) : text;
}

/// The accepted values of an option; `quote` goes around a string.
std::string takes_text(const study::AlgorithmOption& option, std::string_view quote) {
    if (!option.takes.empty()) return option.takes;
    std::vector<std::string> words;
    switch (option.kind) {
        case Kind::boolean:
            return "boolean";
        case Kind::integer:
            return range_text("integer", option, 1e9);
        case Kind::number:
            return range_text("number", option, 1e15);
        default:
            for (const std::string& word : option.accepted) words.push_back(fmt::format("{0}\"{1}\"{0}", quote, word));
            return words.empty() ? "string" : base::join(words);
    }
}

/// The value of another option that this option requires, such as `promote`; empty: none.
std::string only_with(const study::AlgorithmOption& option) {
    return option.only_with ? option.only_with->value.text() : std::string();
}

// ---- for a terminal

std::string indented(std::string_view text, std::size_t indent, std::size_t width) {
    std::string out;
    for (const std::string& line : wrap(text, std::max<std::size_t>(width, indent + 20) - indent))
        out += std::string(indent, ' ') + line + "\n";
    return out;
}

std::string block(std::string_view table, const study::AlgorithmInfo& info, bool is_default, std::size_t width) {
    std::string out = fmt::format("[{}] type = \"{}\"{}\n", table, info.name, is_default ? "  (the default)" : "") +
                      indented(info.description, 2, width);
    for (const study::AlgorithmOption& option : info.options) {
        std::string what = fmt::format("{}: {}; default {}", option.name, takes_text(option, ""), default_text(option));
        if (option.only_with)
            what += fmt::format("; only with {} = {}", option.only_with->option, literal(option.only_with->value));
        out += indented(what, 2, width) + indented(option.description, 6, width);
    }
    return out;
}

template <class Info>
std::string blocks(std::string_view table, const std::vector<std::shared_ptr<const Info>>& algorithms,
                   std::size_t width) {
    std::string out;
    for (const auto& info : algorithms)
        out += (out.empty() ? "" : "\n") + block(table, *info, info == algorithms.front(), width);
    return out;
}

// ---- for the reference page

struct Row {
    std::string key;
    std::string takes;
    std::string standard;
    std::string algorithm;
    std::string meaning;
};

std::string text_of(const std::vector<Row>& rows) {
    std::string out = "| key | value | default | for | meaning |\n|---|---|---|---|---|\n";
    for (const Row& row : rows)
        out +=
            fmt::format("| `{}` | {} | {} | {} | {} |\n", row.key, row.takes, row.standard, row.algorithm, row.meaning);
    return out;
}

template <class Info>
std::string table_of(const std::vector<std::shared_ptr<const Info>>& algorithms, const std::string& when_required) {
    std::vector<std::string> names;
    std::string meanings;
    for (const auto& info : algorithms) {
        names.push_back("`\"" + info->name + "\"`");
        meanings += fmt::format("{}`{}`: {}", meanings.empty() ? "" : " ", info->name, info->description);
    }
    std::vector<Row> rows{{"type", base::join(names), names.front() + when_required, "all", meanings}};
    for (const auto& info : algorithms) {
        for (const study::AlgorithmOption& option : info->options) {
            const std::string standard = default_text(option);
            rows.push_back({option.name, takes_text(option, "`"),
                            option.standard.is_string() ? "`" + standard + "`" : standard,
                            info->name + (option.only_with ? ", " + only_with(option) : ""), option.description});
        }
    }
    return text_of(rows);
}

// ---- for a study file

std::string comment(std::string_view text) {
    constexpr std::size_t columns = 100;
    std::string out;
    for (const std::string& line : wrap(text, columns)) out += "# " + line + "\n";
    return out;
}

std::string commented(std::string_view table, const study::AlgorithmInfo& info) {
    std::string out = fmt::format("[{}]\ntype = \"{}\"\n", table, info.name) + comment(info.description);
    for (const study::AlgorithmOption& option : info.options) {
        std::string what = option.description;
        if (option.only_with)
            what += fmt::format(" Only with {} = {}.", option.only_with->option, literal(option.only_with->value));
        out += "#\n" + comment(fmt::format("{} ({})", what, takes_text(option, ""))) +
               fmt::format("# {} = {}\n", option.name, literal(option.standard));
    }
    return out;
}

} // namespace

std::string algorithms_text(const study::Algorithms& algorithms, std::size_t width) {
    return blocks("searcher", algorithms.searchers, width) + "\n" + blocks("scheduler", algorithms.schedulers, width);
}

std::string searcher_table(const study::Algorithms& algorithms) { return table_of(algorithms.searchers, ""); }
std::string scheduler_table(const study::Algorithms& algorithms) {
    return table_of(algorithms.schedulers, "; required when the table is there");
}

std::string commented_table(const study::SearcherInfo& searcher) { return commented("searcher", searcher); }
std::string commented_table(const study::SchedulerInfo& scheduler) {
    std::string text = commented("scheduler", scheduler);
    if (scheduler.explores)
        text += "\n[scheduler.explore]\n" +
                comment(
                    "A line for each hyper-parameter that changes while a trial trains: NAME = \"perturb\", "
                    "\"resample\", or a list of factors such as [0.8, 1.2].") +
                "lr = \"perturb\"\n";
    if (scheduler.schedules)
        text += "\n[scheduler.schedule]\n" +
                comment(
                    "A line for each hyper-parameter that changes while a trial trains: NAME = [[iterations, value], "
                    "...]. After so many iterations it has this value.") +
                "lr = [[1, 0.05]]\n";
    return text;
}

} // namespace ranktune::report
