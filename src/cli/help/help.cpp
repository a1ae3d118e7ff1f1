// SPDX-License-Identifier: Apache-2.0
#include "cli/help/help.hpp"

#include <algorithm>

#include "ranktune/base/text.hpp"
#include "report/screens/text.hpp"

namespace ranktune::cli {
namespace {

constexpr std::size_t help_width = 80;
constexpr std::size_t verb_column = 14;
constexpr std::size_t option_column = 26;

/// "WHAT:{a,b}" is how CLI11 gives a type with the values that a check accepts: ("WHAT", {a, b}).
std::pair<std::string, std::vector<std::string>> split_type(const std::string& type) {
    const auto brace = type.find('{');
    const std::string word = type.substr(0, type.find(':'));
    if (brace == std::string::npos || type.back() != '}') return {word, {}};
    std::vector<std::string> accepted;
    for (std::size_t at = brace + 1; at < type.size();) {
        const std::size_t end = std::min(type.find(',', at), type.size() - 1);
        accepted.push_back(type.substr(at, end - at));
        at = end + 1;
    }
    return {word, accepted};
}

OptionWords words_of(const CLI::Option& option) {
    auto [type, accepted] = split_type(option.get_type_name());
    OptionWords words{.names = {},
                      .value = option.get_type_size() == 0 ? "" : type,
                      .accepted = std::move(accepted),
                      .description = option.get_description(),
                      .required = option.get_required(),
                      .repeated = option.get_expected_max() == CLI::detail::expected_max_vector_size};
    if (!option.nonpositional()) words.value = option.get_name(true, false);
    for (const std::string& name : option.get_snames()) words.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) words.names.push_back("--" + name);
    if (!option.get_default_str().empty()) words.description += " (default: " + option.get_default_str() + ")";
    std::vector<std::string> others;
    for (const CLI::Option* other : option.get_excludes()) others.push_back(other->get_name());
    std::ranges::sort(others);
    if (!others.empty()) words.description += "; not with " + base::join(others);
    if (words.required && !words.is_argument()) words.description += " (required)";
    return words;
}

/// `left` in a column, and wrapped text on the right of it.
std::string two_columns(const std::string& left, const std::string& right, std::size_t column) {
    std::string text = "  " + left;
    const bool fits = text.size() + 1 < column;
    if (!fits) text += "\n";
    bool first = fits;
    for (const std::string& line : report::wrap(right, help_width - column)) {
        text += std::string(first ? column - text.size() : column, ' ') + line + "\n";
        first = false;
    }
    return text;
}

class HelpFormatter final : public CLI::Formatter {
  public:
    HelpFormatter() {
        label("SUBCOMMAND", "VERB");
        label("Positionals", "Arguments");
    }

    std::string make_description(const CLI::App* app) const override {
        return base::join(report::wrap(app->get_description(), help_width), "\n") + "\n\n";
    }

    std::string make_option(const CLI::Option* option, bool /*is_positional*/) const override {
        const OptionWords words = words_of(*option);
        return two_columns(heading_of(words), words.description, option_column);
    }

    std::string make_subcommands(const CLI::App* app, CLI::AppFormatMode /*mode*/) const override {
        std::string text;
        std::string group;
        for (const CLI::App* verb : listed_verbs(*app)) {
            if (verb->get_group() != group) text += "\n" + verb->get_group() + ":\n";
            group = verb->get_group();
            text += two_columns(verb->get_name(), verb->get_description(), verb_column);
        }
        return text;
    }
};

std::vector<OptionWords> options_of(const CLI::App& app) {
    std::vector<OptionWords> options;
    for (const CLI::Option* option : app.get_options())
        if (!option->get_group().empty()) options.push_back(words_of(*option));
    std::ranges::stable_partition(options, &OptionWords::is_argument);
    return options;
}

} // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<HelpFormatter>(); }

std::vector<const CLI::App*> listed_verbs(const CLI::App& app) {
    return app.get_subcommands([](const CLI::App* verb) { return !verb->get_group().empty(); });
}

CommandLine command_line_of(const CLI::App& app) {
    CommandLine line{
        .description = app.get_description(), .footer = app.get_footer(), .options = options_of(app), .verbs = {}};
    for (const CLI::App* verb : listed_verbs(app))
        line.verbs.push_back({.group = verb->get_group(),
                              .name = verb->get_name(),
                              .description = verb->get_description(),
                              .footer = verb->get_footer(),
                              .options = options_of(*verb)});
    return line;
}

} // namespace ranktune::cli
