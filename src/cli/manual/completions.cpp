// SPDX-License-Identifier: Apache-2.0
// Completions for bash, zsh and fish: verbs, options, values, study files and directories, keys of overrides.

#include <set>

#include <fmt/format.h>

#include "base/joined.hpp"
#include "cli/manual/manual.hpp"
#include "ranktune/base/text.hpp"
#include "report/screens/text.hpp"

namespace ranktune::cli {
namespace {

/// Between single quotes of a shell.
std::string shell_quoted(std::string_view text) { return "'" + report::replaced(text, {{'\'', "'\\''"}}) + "'"; }

std::string verb_names(const CommandLine& line) { return base::joined(line.verbs, &VerbWords::name, " "); }

/// The names of all options that a value follows.
std::string options_with_value(const CommandLine& line) {
    std::set<std::string> names;
    for (const VerbWords& verb : line.verbs)
        for (const OptionWords& option : verb.options)
            if (!option.is_argument() && !option.is_flag()) names.insert(option.names.begin(), option.names.end());
    return base::join(std::vector<std::string>(names.begin(), names.end()), " ");
}

/// What completes a value, by shell.
struct Actions {
    std::string_view bash;
    std::string_view zsh;
    std::string_view fish;
};
/// By ValueKind; {}: the accepted words.
constexpr Actions actions[] = {
    {":", " ", ""},
    {"_ranktune_words '{}'", "({})", "{}"},
    {"_ranktune_studies", "_ranktune_studies", "(__ranktune_studies)"},
    {"_ranktune_directories", "_files -/", "(__fish_complete_directories)"},
    {"_ranktune_files", "_files", "(__fish_complete_path)"},
    {"_ranktune_keys", "_ranktune_keys", "(__ranktune_keys)"},
    {"_ranktune_words best", "(best)", "best"},
};

std::string action_of(const OptionWords& option, std::string_view Actions::*shell) {
    const std::string_view action = actions[static_cast<std::size_t>(kind_of(option))].*shell;
    return fmt::format(fmt::runtime(action), base::join(option.accepted, " "));
}

// ---- bash

/// Functions that fill COMPREPLY from the word `$current`.
constexpr std::string_view bash_functions =
    R"(_ranktune_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$current"); }
_ranktune_files() { compopt -o filenames 2> /dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$current"); }
_ranktune_directories() { compopt -o filenames 2> /dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$current"); }
# Study files and directories of studies; where there are none, directories to look into.
_ranktune_studies() {
    local each
    compopt -o filenames 2> /dev/null
    COMPREPLY=()
    while read -r each; do
        if [[ -d $each/journal || ( -f $each && $each == *.toml ) ]]; then COMPREPLY+=("$each"); fi
    done < <(compgen -f -- "$current")
    if ((${#COMPREPLY[@]} == 0)); then _ranktune_directories; fi
}
_ranktune_keys() {
    compopt -o nospace 2> /dev/null
    mapfile -t COMPREPLY < <(compgen -S = -W "$_ranktune_all_keys" -- "$current")
}
)";

std::string bash_verb(const VerbWords& verb) {
    std::string values;
    std::string all;
    std::vector<const OptionWords*> arguments;
    for (const OptionWords& option : verb.options) {
        if (option.is_argument()) arguments.push_back(&option);
        all += (all.empty() || option.names.empty() ? "" : " ") + base::join(option.names, " ");
        if (!option.is_argument() && !option.is_flag())
            values += fmt::format("            {}) {}; return ;;\n", base::join(option.names, " | "),
                                  action_of(option, &Actions::bash));
    }
    std::string text = fmt::format("    {})\n", verb.name);
    if (!values.empty()) text += "        case $previous in\n" + values + "        esac\n";
    text +=
        fmt::format("        if [[ $current == -* ]]; then _ranktune_words {}; return; fi\n        case $place in\n",
                    shell_quoted(all));
    for (std::size_t i = 0; i < arguments.size(); ++i)
        text += fmt::format("            {}) {} ;;\n", arguments[i]->repeated ? "*" : std::to_string(i),
                            action_of(*arguments[i], &Actions::bash));
    const bool has_rest = !arguments.empty() && arguments.back()->repeated;
    return text + (has_rest ? "" : "            *) ;;\n") + "        esac\n        ;;\n";
}

// ---- zsh

/// A word of a specification of _arguments: no colons and brackets.
std::string zsh_text(std::string_view text) {
    return report::replaced(text, {{':', "\\:"}, {'[', "\\["}, {']', "\\]"}, {'\\', "\\\\"}});
}

std::string zsh_verb(const VerbWords& verb) {
    std::string text = fmt::format("    {}) _arguments -s", verb.name);
    for (const OptionWords& option : verb.options) {
        if (option.is_argument()) {
            text += " " + shell_quoted(fmt::format("{}:{}:{}",
                                                   option.repeated   ? "*"
                                                   : option.required ? ""
                                                                     : ":",
                                                   option.value, action_of(option, &Actions::zsh)));
            continue;
        }
        const std::string how_often = option.repeated ? "*" : fmt::format("({})", base::join(option.names, " "));
        const std::string value =
            option.is_flag() ? "" : fmt::format(":{}:{}", zsh_text(option.value), action_of(option, &Actions::zsh));
        for (const std::string& name : option.names) {
            const char* equals = !value.empty() && name.starts_with("--") ? "=" : ""; // "--name VALUE" works, too
            text += " " + shell_quoted(fmt::format("{}{}{}[{}]{}", how_often, name, equals,
                                                   zsh_text(option.description), value));
        }
    }
    return text + " ;;\n";
}

// ---- fish

std::string fish_verb(const VerbWords& verb) {
    std::string text = fmt::format("complete -c ranktune -n __fish_use_subcommand -a {} -d {}\n", verb.name,
                                   shell_quoted(verb.description));
    const std::string when = shell_quoted("__fish_seen_subcommand_from " + verb.name);
    for (const OptionWords& option : verb.options) {
        text += "complete -c ranktune -n " + when;
        for (const std::string& name : option.names)
            text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
        if (!option.is_argument() && !option.is_flag()) text += " -x";
        if (const std::string action = option.is_flag() ? "" : action_of(option, &Actions::fish); !action.empty())
            text += " -a " + shell_quoted(action);
        text += (option.is_argument() ? "" : " -d " + shell_quoted(option.description)) + "\n";
    }
    return text;
}

} // namespace

std::string bash_completion(const CommandLine& line, const std::vector<std::string>& keys) {
    std::string text =
        "# Completion of ranktune for bash; written by `ranktune reference completions`.\n_ranktune_all_keys=" +
        shell_quoted(base::join(keys, " ")) + "\n_ranktune_with_value=" + shell_quoted(options_with_value(line)) +
        "\n" + std::string(bash_functions);
    text += R"(_ranktune() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} verb='' place=-1 i
    # bash splits --name=value at the sign.
    if [[ $current == = ]]; then current=''; elif [[ $previous == = ]]; then previous=${COMP_WORDS[COMP_CWORD - 2]}; fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ " $_ranktune_with_value " == *" ${COMP_WORDS[i]} "* ]]; then
            i=$((i + 1))
            if [[ ${COMP_WORDS[i]} == = ]]; then i=$((i + 1)); fi
        elif [[ ${COMP_WORDS[i]} != -* ]]; then
            if [[ -z $verb ]]; then verb=${COMP_WORDS[i]}; fi
            place=$((place + 1))
        fi
    done
    COMPREPLY=()
    case $verb in
)";
    text += fmt::format("    '') _ranktune_words {} ;;\n", shell_quoted(verb_names(line) + " --help --version"));
    for (const VerbWords& verb : line.verbs) text += bash_verb(verb);
    return text + "    esac\n}\ncomplete -F _ranktune ranktune\n";
}

std::string zsh_completion(const CommandLine& line, const std::vector<std::string>& keys) {
    std::string text =
        "#compdef ranktune\n# Completion of ranktune for zsh; written by `ranktune reference completions`.\n";
    text +=
        "_ranktune_studies() { _alternative 'files:study file:_files -g \"*.toml\"' 'directories:study:_files -/' }\n";
    text += "_ranktune_keys() { compadd -S = -- " + base::join(keys, " ") + " }\n";
    text += "_ranktune() {\n  local -a verbs=(";
    for (const VerbWords& verb : line.verbs) text += " " + shell_quoted(verb.name + ":" + zsh_text(verb.description));
    text +=
        ")\n  if (( CURRENT == 2 )); then _describe verb verbs; return; fi\n  local verb=$words[2]\n  shift words\n"
        "  (( CURRENT-- ))\n  case $verb in\n";
    for (const VerbWords& verb : line.verbs) text += zsh_verb(verb);
    return text + "  esac\n}\n_ranktune \"$@\"\n";
}

std::string fish_completion(const CommandLine& line, const std::vector<std::string>& keys) {
    std::string text = "# Completion of ranktune for fish; written by `ranktune reference completions`.\n";
    text += "function __ranktune_studies\n    __fish_complete_suffix .toml\nend\n";
    text +=
        "function __ranktune_keys\n    printf '%s=\\n' " + base::join(keys, " ") + "\nend\ncomplete -c ranktune -f\n";
    for (const VerbWords& verb : line.verbs) text += fish_verb(verb);
    return text;
}

} // namespace ranktune::cli
