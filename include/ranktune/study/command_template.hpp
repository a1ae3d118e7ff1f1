// SPDX-License-Identifier: Apache-2.0
#pragma once
// CommandTemplate: the command line of a program, with placeholders that each trial fills in.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/base/ids.hpp"
#include "ranktune/space/configuration.hpp"
#include "ranktune/study/spec.hpp"

namespace ranktune::study {

/// What a trial puts in.
struct CommandValues {
    const space::Configuration& configuration;
    std::string config_path; ///< of the configuration as a JSON file
    base::Iteration iterations = 0;
};

/// A word of a command as it is written.
struct WrittenWord {
    std::string text;    ///< without its quotes; a placeholder with its braces
    bool varies = false; ///< has a placeholder in it
};

/// `python3 train.py {args}` as words, split as a shell would split them but without a shell: blanks separate, quotes
/// and backslashes keep together. Or, with `shell`, one text for `/bin/sh -c`.
///
///     {args}        --lr=3.2e-05 --batch_size=32      one word per hyper-parameter of the trial; booleans: Flags
///     {args_plain}  lr=3.2e-05 batch_size=32          likewise
///     {config}      path of a JSON file with the same
///     {iterations}  study.max_iterations
///     {name}        the value of the hyper-parameter `name`
///     {{ }}         braces
///
/// A word with the placeholder of a hyper-parameter that the trial does not have (its condition does not hold) is left
/// out. For the shell, values are quoted where they need it.
class CommandTemplate {
  public:
    /// Throws base::UsageError: unbalanced quotes or braces, an empty command, characters that only a shell
    /// understands, `~` among them.
    CommandTemplate(std::string_view command, bool shell, Flags flags = Flags::off);
    explicit CommandTemplate(const ProgramSpec& program);
    /// The same, with all mistakes told at once; only without any is the result good for more than its placeholders.
    [[nodiscard]] static CommandTemplate read(std::string_view command, bool shell, std::vector<std::string>& mistakes);

    /// What stands between braces, in order, each name once: hyper-parameters, and those of `reserved`.
    [[nodiscard]] std::vector<std::string> placeholders() const;
    /// The program and its arguments.
    [[nodiscard]] std::vector<std::string> expand(const CommandValues& values) const;

    /// The words of a command before any is filled in; those of a shell's command as far as blanks and quotes tell.
    [[nodiscard]] static std::vector<WrittenWord> written(std::string_view command);

    /// `{...}` that are not hyper-parameters.
    [[nodiscard]] static const std::vector<std::string>& reserved();

  private:
    struct Piece {
        std::string text; ///< as it is, or the name of a placeholder
        bool placeholder = false;
    };
    using Word = std::vector<Piece>;
    class Reader;

    CommandTemplate(bool shell, Flags flags) : shell_(shell), flags_(flags) {}
    /// What a placeholder becomes; nothing: the trial has no such hyper-parameter.
    [[nodiscard]] std::optional<std::vector<std::string>> fill_in(const std::string& name,
                                                                  const CommandValues& values) const;

    std::vector<Word> words_; ///< of a shell's command: one
    bool shell_ = false;
    Flags flags_ = Flags::off;
};

/// The words in one line that a shell would split into them again: for people.
[[nodiscard]] std::string shell_text(const std::vector<std::string>& words);

/// What a trial of this configuration runs, in one line, for people: the path of its configuration is not known yet.
/// Requires trials that are programs.
[[nodiscard]] std::string trial_command_text(const StudySpec& spec, const space::Configuration& configuration);

} // namespace ranktune::study
