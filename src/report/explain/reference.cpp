// SPDX-License-Identifier: Apache-2.0
#include "report/explain/reference.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "report/screens/text.hpp"
#include "simulate/file_keys.hpp"

namespace ranktune::report {
namespace {

using OptionKind = study::OptionInfo::Kind;

std::string_view table_of_key(std::string_view key) { return key.substr(0, key.find('.')); }
std::string_view name_in_table(std::string_view key) { return key.substr(key.find('.') + 1); }

std::string rows_of(std::span<const study::KeyInfo> keys, std::string_view table) {
    std::string rows;
    for (const study::KeyInfo& key : keys)
        if (table_of_key(key.key) == table)
            rows += table_row({fmt::format("`{}`", name_in_table(key.key)), std::string(key.takes),
                               literal_cell(key.standard), std::string(key.meaning)});
    return rows.empty() ? rows : table_head({"key", "takes", "default", "what it does"}) + rows;
}

/// Where a table has more than these keys.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> more = {{
    {"trainable", "Options of the built-in trainables: [trainables.md](trainables.md)."},
    {"space", "Forms, edges and conditions: [the study file](../study-file.md#space)."},
    {"searcher", "Options of each searcher: [algorithms.md](algorithms.md#searchers)."},
    {"scheduler", "Options of each scheduler: [algorithms.md](algorithms.md#schedulers)."},
}};

std::string domains_table() {
    std::string text = table_head({"domain", "values"});
    for (const study::DomainInfo& domain : study::domain_infos())
        text += table_row({fmt::format("`{}`", domain.call), std::string(domain.values)});
    return text;
}

/// "integer 1 to 64", "number >= 0", "`a`, `b`".
std::string takes_of(const study::OptionInfo& option) {
    const auto bounded = [&](std::string text) {
        if (option.low && option.high)
            return fmt::format("{} {} to {}", text, space::number_text(*option.low), space::number_text(*option.high));
        return option.low ? fmt::format("{} >= {}", text, space::number_text(*option.low)) : text;
    };
    switch (option.kind) {
        case OptionKind::boolean:
            return "boolean";
        case OptionKind::integer:
            return bounded("integer");
        case OptionKind::number:
            return bounded("number");
        case OptionKind::integer_list:
            return bounded("list of integers");
        case OptionKind::path:
            return "path";
        case OptionKind::string:
            break;
    }
    std::vector<std::string> words;
    for (const std::string& word : option.accepted) words.push_back(fmt::format("`\"{}\"`", word));
    return words.empty() ? "string" : base::join(words);
}

/// A description ends with the default in parentheses: (what it does, default).
std::pair<std::string, std::string> split_default(const study::OptionInfo& option) {
    const std::string& text = option.description;
    const auto open = text.rfind(" (");
    if (option.required || !text.ends_with(')') || open == std::string::npos)
        return {text, option.required ? "required" : ""};
    return {text.substr(0, open), text.substr(open + 2, text.size() - open - 3)};
}

std::string trainable_section(const study::TrainableInfo& trainable) {
    std::string text = fmt::format("\n## `{}`\n\n{}.\n\n", trainable.name, trainable.description);
    if (!trainable.options.empty()) text += table_head({"option", "takes", "default", "what it does"});
    std::string example = fmt::format("[trainable]\nbuiltin = \"{}\"\n", trainable.name);
    for (const study::OptionInfo& option : trainable.options) {
        const auto [meaning, standard] = split_default(option);
        text += table_row({"`" + option.name + "`", takes_of(option), standard, meaning});
        if (option.required) example += fmt::format("{} = \"FILE\"\n", option.name);
    }
    if (!trainable.metrics.empty()) {
        std::vector<std::string> metrics;
        for (const std::string& metric : trainable.metrics) metrics.push_back("`" + metric + "`");
        text += fmt::format("\nMetrics: {}.\n", base::join(metrics));
    }
    return text + fmt::format("\n```toml\n{}```\n", example);
}

std::string key_text(const study::KeyInfo& key, std::size_t width) {
    return indented(without_marks(fmt::format("{}: {}; default {}", key.key, key.takes, key.standard)), 0, width) +
           indented(without_marks(key.meaning), 4, width);
}

[[noreturn]] void refuse_name(std::string_view name) {
    std::vector<std::string> names;
    for (const study::TableInfo& table : study::table_infos()) names.emplace_back(table.name);
    std::vector<std::string> all = names;
    for (const study::KeyInfo& key : study::key_infos()) {
        all.emplace_back(key.key);
        all.emplace_back(name_in_table(key.key));
    }
    throw base::UsageError(
        fmt::format("no table or key of a study file is called '{}'{}; tables: {} (options of searchers "
                    "and schedulers: ranktune algorithms)",
                    name, base::suggestion(name, std::span<const std::string>(all)), base::join(names)));
}

} // namespace

std::string page_begin(std::string_view title, std::string_view about) {
    return fmt::format("<!-- Written by `ranktune reference pages`; a test compares. Do not edit. -->\n# {}\n\n{}\n",
                       title, about);
}

std::string table_row(const std::vector<std::string>& cells) {
    std::string row = "|";
    for (std::string cell : cells) {
        for (auto at = cell.find('|'); at != std::string::npos; at = cell.find('|', at + 2)) cell.insert(at, "\\");
        row += " " + cell + " |";
    }
    return row + "\n";
}

std::string table_head(const std::vector<std::string>& cells) {
    std::string line = "|";
    for (std::size_t i = 0; i < cells.size(); ++i) line += "---|";
    return table_row(cells) + line + "\n";
}

std::string literal_cell(std::string_view text) {
    return text.starts_with('"') || text.starts_with('[') ? fmt::format("`{}`", text) : std::string(text);
}

std::string study_keys_page() {
    std::string text =
        page_begin("Keys of the study file",
                   "What the tables mean together is in [the study file](../study-file.md). In a terminal: "
                   "`ranktune keys`, or `ranktune keys failure`. A duration is text such as `\"90m\"` or "
                   "`\"2h30m\"` ([all forms](../study-file.md#durations)).");
    for (const study::TableInfo& table : study::table_infos()) {
        text += fmt::format("\n## `[{}]`\n\n{}\n", table.name, table.meaning);
        if (const std::string rows = rows_of(study::key_infos(), table.name); !rows.empty()) text += "\n" + rows;
        if (table.name == "space") text += "\n" + domains_table();
        for (const auto& [name, words] : more)
            if (name == table.name) text += fmt::format("\n{}\n", words);
        if (!table.example.empty()) text += fmt::format("\n```toml\n{}```\n", table.example);
    }
    return text;
}

std::string trainables_page(const std::vector<study::TrainableInfo>& trainables) {
    std::string text =
        page_begin("Options of the built-in trainables",
                   "Each is fixed in `[trainable]` or searched over in `[space]`, never both. What the models "
                   "do is in [trainables](../trainables.md).");
    for (const study::TrainableInfo& trainable : trainables) text += trainable_section(trainable);
    return text;
}

std::string simulation_page() {
    std::string text = page_begin("Files of `ranktune simulate`",
                                  "Keys of the TOML files of `--model` and `--faults`. What they mean together is in "
                                  "[simulate](../simulate.md).");
    constexpr std::array<std::string_view, 6> examples = {
        "[curves]\nnoise = 0.01\n",
        "[time]\niteration = 90\nstart = 30\n",
        "[cluster]\nranks_per_host = 4\n",
        "[trials]\nrate = 0.02\n",
        "[ranks]\nmean_time_to_failure = \"2000h\"\n",
        "[job]\nwalltime = \"8h\"\nwait = \"2h\"\nmean_time_to_failure = \"100h\"\n"};
    std::size_t next = 0;
    for (const auto& [option, keys] :
         {std::pair("--model", simulate::model_key_infos()), std::pair("--faults", simulate::fault_key_infos())}) {
        std::vector<std::string_view> tables;
        for (const study::KeyInfo& key : keys)
            if (std::ranges::find(tables, table_of_key(key.key)) == tables.end())
                tables.push_back(table_of_key(key.key));
        for (const std::string_view table : tables)
            text += fmt::format("\n## `{}`: `[{}]`\n\n{}\n```toml\n{}```\n", option, table, rows_of(keys, table),
                                examples.at(next++));
    }
    return text;
}

std::string keys_text(std::string_view name, std::size_t width) {
    std::string text;
    for (const study::TableInfo& table : study::table_infos()) {
        const bool whole = name.empty() || name == table.name || name == fmt::format("[{}]", table.name);
        if (whole)
            text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", table.name) +
                    indented(without_marks(table.meaning), 0, width);
        for (const study::KeyInfo& key : study::key_infos())
            if (table_of_key(key.key) == table.name && (whole || key.key == name || name_in_table(key.key) == name))
                text += key_text(key, width);
    }
    if (text.empty()) refuse_name(name);
    return text;
}

std::string without_marks(std::string_view markdown) {
    std::string text;
    for (std::size_t i = 0; i < markdown.size(); ++i) {
        const auto close = markdown[i] == '[' ? markdown.find(']', i) : std::string_view::npos;
        const auto end = close < markdown.size() - 1 && markdown[close + 1] == '(' ? markdown.find(')', close)
                                                                                   : std::string_view::npos;
        if (end != std::string_view::npos) {
            text += without_marks(markdown.substr(i + 1, close - i - 1));
            i = end;
        } else if (markdown[i] != '`') {
            text += markdown[i];
        }
    }
    return text;
}

} // namespace ranktune::report
