// SPDX-License-Identifier: Apache-2.0
#include "report/explain/algorithm_text.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "report/explain/reference.hpp"

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

// ---- for a terminal

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

std::string comment(std::string_view text) {
    constexpr std::size_t columns = 100;
    std::string out;
    for (const std::string& line : wrap(text, columns)) out += "# " + line + "\n";
    return out;
}

std::string options_table(const study::AlgorithmInfo& info) {
    const bool conditional = std::ranges::any_of(
        info.options, [](const study::AlgorithmOption& option) { return option.only_with.has_value(); });
    std::vector<std::string> head{"option", "takes", "default"};
    if (conditional) head.emplace_back("only with");
    head.emplace_back("what it does");
    std::string text = table_head(head);
    for (const study::AlgorithmOption& option : info.options) {
        std::vector<std::string> cells{"`" + option.name + "`", takes_text(option, "`"),
                                       literal_cell(default_text(option))};
        if (conditional)
            cells.push_back(option.only_with
                                ? fmt::format("`{} = {}`", option.only_with->option, literal(option.only_with->value))
                                : "");
        cells.push_back(option.description);
        text += table_row(cells);
    }
    return text;
}

/// The table of a study file with the options that apply by default.
std::string example_of(std::string_view table, const study::AlgorithmInfo& info) {
    space::Configuration options;
    for (const study::AlgorithmOption& option : info.options) options.set(option.name, option.standard);
    std::string text = fmt::format("[{}]\ntype = \"{}\"\n", table, info.name);
    for (const study::AlgorithmOption& option : info.options)
        if (study::applies(info, options, option))
            text += fmt::format("{} = {}\n", option.name, literal(option.standard));
    return text;
}

std::string capitalised(std::string text) {
    text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
    return text;
}

std::string section_of(std::string_view kind, const study::AlgorithmInfo& info, bool is_default,
                       const std::string& further) {
    std::string text = fmt::format("\n### {} `{}`\n\n{}{}\n", kind, info.name, capitalised(info.description),
                                   is_default ? " This is the default." : "");
    if (!info.options.empty()) text += "\n" + options_table(info);
    return text + fmt::format("\n```toml\n{}{}```\n", example_of(kind == "Searcher" ? "searcher" : "scheduler", info),
                              further);
}

/// The lines of a study file for what changes while a trial trains.
std::string changes_of(const study::SchedulerInfo& scheduler, bool commented) {
    const auto part = [&](std::string_view table, std::string_view words, std::string_view line) {
        return fmt::format("\n[scheduler.{}]\n{}{}", table, commented ? comment(words) : "", line);
    };
    std::string text;
    if (scheduler.explores)
        text += part("explore",
                     "A line for each hyper-parameter that changes while a trial trains: NAME = \"perturb\", "
                     "\"resample\", or a list of factors such as [0.8, 1.2].",
                     "lr = \"perturb\"\n");
    if (scheduler.schedules)
        text += part("schedule",
                     "A line for each hyper-parameter that changes while a trial trains: NAME = [[iterations, value], "
                     "...]. After so many iterations it has this value.",
                     "lr = [[1, 0.05]]\n");
    return text;
}

// ---- for a study file

std::string commented(std::string_view table, const study::AlgorithmInfo& info) {
    std::string out = fmt::format("[{}]\ntype = \"{}\"\n", table, info.name) + comment(info.description);
    for (const study::AlgorithmOption& option : info.options) {
        std::string what = option.description;
        // Not "key = value": wrapped, that could begin a line and be taken for the line of the other option.
        if (option.only_with)
            what += fmt::format(" Only if {} is {}.", option.only_with->option, literal(option.only_with->value));
        out += "#\n" + comment(fmt::format("{} ({})", what, takes_text(option, ""))) +
               fmt::format("# {} = {}\n", option.name, literal(option.standard));
    }
    return out;
}

} // namespace

std::string algorithms_text(const study::Algorithms& algorithms, std::size_t width) {
    return blocks("searcher", algorithms.searchers, width) + "\n" + blocks("scheduler", algorithms.schedulers, width);
}

std::string algorithms_page(const study::Algorithms& algorithms) {
    std::string text =
        page_begin("Searchers and schedulers",
                   "The options of `[searcher]` and `[scheduler]`. When to use which: "
                   "[choosing](../../guides/choosing.md); what they have in common: "
                   "[searchers](../searchers.md), [schedulers](../schedulers.md). In a terminal: `ranktune "
                   "algorithms`. Options of another type, or without the value that they go with, are refused.");
    text += "\n## Searchers\n";
    for (const auto& searcher : algorithms.searchers)
        text += section_of("Searcher", *searcher, searcher == algorithms.searchers.front(), "");
    text += "\n## Schedulers\n";
    for (const auto& scheduler : algorithms.schedulers)
        text += section_of("Scheduler", *scheduler, scheduler == algorithms.schedulers.front(),
                           changes_of(*scheduler, false));
    return text;
}

std::string commented_table(const study::SearcherInfo& searcher) { return commented("searcher", searcher); }
std::string commented_table(const study::SchedulerInfo& scheduler) {
    return commented("scheduler", scheduler) + changes_of(scheduler, true);
}

} // namespace ranktune::report
