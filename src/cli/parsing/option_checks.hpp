// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks and conversions of words on the command line, and the options and arguments that many verbs have.

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/verbs/verbs.hpp"
#include "ranktune/base/text.hpp"

namespace ranktune::cli {

template <class Enum>
using Names = std::map<std::string, Enum>;
inline const Names<Format> text_formats{{"text", Format::text}, {"json", Format::json}};

/// "{a,b}": describes a check whose values are these words, for completions and manual pages.
[[nodiscard]] std::string words_text(const std::vector<std::string>& words);
/// No check, but the usual values, for completions.
[[nodiscard]] CLI::Validator usually(const std::vector<std::string>& words);

/// Converts a word to its enum value; the error lists the accepted words.
template <class Enum>
CLI::Validator one_of(const Names<Enum>& names) {
    std::vector<std::string> accepted;
    for (const auto& [name, value] : names) accepted.push_back(name);
    const auto convert = [&names, accepted](std::string& word) -> std::string {
        const auto found = names.find(word);
        if (found == names.end()) {
            return "unknown value '" + word + "'" + base::suggestion(word, std::span<const std::string>(accepted)) +
                   " (" + base::join(accepted) + ")";
        }
        word = std::to_string(static_cast<int>(found->second));
        return {};
    };
    return CLI::Validator(convert, words_text(accepted));
}

/// A whole number from `low` on; `#7` is 7.
[[nodiscard]] CLI::Validator whole_number(std::uint32_t low, const std::string& what);
/// A finite number in this range. (CLI::Range accepts NaN.)
[[nodiscard]] CLI::Validator number_between(double low, double high);
/// Refuses an empty path: an unset shell variable would otherwise silently mean the default.
[[nodiscard]] CLI::Validator no_empty_path();
/// Accepts a trial's number, or "best"; `or_task`: or "before" or "after".
[[nodiscard]] CLI::Validator trial_or_best(bool or_task = false);

/// A verb. The help lists those of a group, which are added together, under its name. `example`: a line to type, for a
/// study called digits; null: the verb has a footer of its own, or none.
CLI::App* add_verb(CLI::App& app, const std::string& group, const std::string& name, const std::string& words,
                   const char* example = nullptr);
inline constexpr const char* unlisted = ""; ///< the group of verbs that the help does not list
/// Sets `to` to what the verb does, once its words are parsed.
void on_call(CLI::App* verb, std::function<int()>& to, std::function<int()> call);

/// Takes paths that are not empty. `type`: "FILE"; empty for an argument.
template <class Paths>
CLI::Option* add_path(CLI::App* verb, const std::string& names, Paths& paths, const std::string& type,
                      const std::string& words) {
    return verb->add_option(names, paths, words)->type_name(type)->check(no_empty_path());
}
/// Takes a whole number from `low` on; `what`: for the message about another.
template <class Number>
CLI::Option* add_number(CLI::App* verb, const std::string& names, Number& number, const std::string& words,
                        std::uint32_t low, const std::string& what) {
    return verb->add_option(names, number, words)->type_name("N")->transform(whole_number(low, what));
}
/// The STUDY argument. Verbs that read the study directory resolve it with directory_of.
CLI::Option* add_study(CLI::App* verb, std::string& study);
CLI::Option* add_trial(CLI::App* verb, std::string& trial, bool or_task = false);
/// Overrides in their two forms.
struct Overrides {
    std::vector<std::string> words; ///< OVERRIDE
    std::vector<std::string> set;   ///< --set
    bool logical_time = false;      ///< --deterministic

    /// In the order of the command line: for one key the last override counts, in either form.
    [[nodiscard]] std::vector<std::string> in_order(const CLI::App& verb) const;
};
void add_overrides(CLI::App* verb, Overrides& overrides);
/// What `run` takes beside its study. `output`: the help of -o.
void add_run_options(CLI::App* verb, RunArguments& run, Overrides& overrides,
                     const char* output = "Study directory (default: ./<study.name>)");

/// `--format text|json`, and `--json` for short. `names`: where `-f` means something else.
void add_text_or_json(CLI::App* verb, Format& format, const std::string& names = "-f,--format");

// ---- Which user-supplied text `submit` accepts into an #SBATCH line.

/// Checks the sbatch options after `--`. Throws UsageError for an option that `submit` writes itself (--nodes, --time,
/// --ntasks, --gpus, --array, ...), naming the option of `submit` to use, and for a word of several lines.
void refuse_own_options(const std::vector<std::string>& words);

/// Checks the value of an option (`name`: "--partition") that is written without quoting. Throws UsageError for
/// characters that Slurm interprets: white space, quotes, a backslash or '#'.
void refuse_several_words(const std::string& name, const std::string& value);

} // namespace ranktune::cli
