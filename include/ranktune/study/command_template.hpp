// SPDX-License-Identifier: Apache-2.0
#pragma once
// CommandTemplate: the command line of a program, with placeholders that each trial fills in.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/base/ids.hpp"
#include "ranktune/space/configuration.hpp"
#include "ranktune/study/spec.hpp"

namespace ranktune::study {

/// What surrounds a placeholder in a shell command.
enum class Quotes : std::uint8_t;

/// What a trial fills in.
struct CommandValues {
    const space::Configuration& configuration;
    std::string config_path; ///< of the configuration as a JSON file
    base::Iteration iterations = 0;
    base::TrialId trial = {};
    std::string folder = {};             ///< the trial's own
    std::span<const DataFile> data = {}; ///< of [data]
    std::string checkpoint = {};         ///< of a program that uses a trained trial; empty: it is no placeholder
    const space::Value* row = nullptr;   ///< number of the row whose cells the configuration has in its place
};

/// A word of a command before placeholders are filled in.
struct WrittenWord {
    std::string text;    ///< without its quotes; a placeholder with its braces
    bool varies = false; ///< contains a placeholder
};

/// `python3 train.py {args}` as words, split as a shell would split them but without a shell: blanks separate, quotes
/// and backslashes keep together. Or, with `shell`, one text for `/bin/sh -c`.
///
///     {args}        --lr=3.2e-05 --batch_size=32      one word per hyper-parameter of the trial; booleans: Flags
///     {args:py}     --amp=True                        the same with values as Python prints them
///     {args_hydra}  lr=3.2e-05 batch_size=32          as Hydra reads it; strings are quoted where they need it
///     {args_plain}  the older name of {args_hydra}
///     {config}      path of a JSON file with the same
///     {iterations}  study.max_iterations
///     {trial}       number of the trial
///     {folder}      path of a folder of its own, kept over its attempts
///     {checkpoint}  of side tasks: path of the trial's checkpoint
///     {data.NAME}   path of the file that [data] calls NAME
///     {name}        the value of the hyper-parameter `name`
///     {row}         of a table: number of the row, unless a column has that name
///     {name:py}     the same as Python prints it: True, [128, 64]
///     {{ }}         braces
///
/// A word with the placeholder of a hyper-parameter that the trial does not have (its condition does not hold) is left
/// out. For the shell, values are quoted where they need it, or written for the quotes or here-document that they stand
/// in.
class CommandTemplate {
  public:
    /// Throws base::UsageError: unbalanced quotes or braces, an empty command, characters that only a shell
    /// understands, `~` among them.
    CommandTemplate(std::string_view command, bool shell, Flags flags = Flags::off);
    /// Of a function: no words.
    explicit CommandTemplate(const ProgramSpec& program);
    /// The same, but collects all mistakes. With mistakes, only the placeholders of the result can be used.
    [[nodiscard]] static CommandTemplate read(std::string_view command, bool shell, std::vector<std::string>& mistakes);

    /// The placeholders in order, each name once: hyper-parameters, also of {name:py}, and `reserved` names.
    [[nodiscard]] std::vector<std::string> placeholders() const;
    /// The program and its arguments.
    [[nodiscard]] std::vector<std::string> expand(const CommandValues& values) const;

    /// The words of a command before placeholders are filled in; for a shell command, split by blanks and quotes only.
    [[nodiscard]] static std::vector<WrittenWord> written(std::string_view command);

    /// Placeholders that are not hyper-parameters, but for {data.NAME}.
    [[nodiscard]] static const std::vector<std::string>& reserved();

  private:
    struct Piece {
        std::string text; ///< as it is, or the name of a placeholder
        bool placeholder = false;
        Quotes quotes{};
    };
    using Word = std::vector<Piece>;
    class Reader;

    CommandTemplate(bool shell, Flags flags) : shell_(shell), flags_(flags) {}
    /// The text for a placeholder; nullopt: the trial has no such hyper-parameter.
    [[nodiscard]] std::optional<std::vector<std::string>> fill_in(const std::string& name,
                                                                  const CommandValues& values) const;

    std::vector<Word> words_; ///< a shell command is one word
    bool shell_ = false;
    Flags flags_ = Flags::off;
};

/// Whether models of the study can predict by this command. Throws base::UsageError for a command that is no
/// CommandTemplate, and for a placeholder that is neither {checkpoint} nor filled in by trials of the study.
void check_predict_command(const StudySpec& spec, const std::string& command);

/// The program of [predict].
[[nodiscard]] ProgramSpec program_of(const PredictSpec& predict);

/// `data.NAME`: the placeholder that stands for the path of the file.
[[nodiscard]] std::string data_placeholder(const DataFile& file);

/// One line that a shell would split into these words; for display.
[[nodiscard]] std::string shell_text(const std::vector<std::string>& words);

/// The command, or the function, as the study file names it.
[[nodiscard]] const std::string& shown_command(const ProgramSpec& program);

/// The Python of a function.
[[nodiscard]] std::string interpreter_of(const ProgramSpec& program);

/// The command line of a trial with this configuration, for display: the path of the configuration file is not known
/// yet. Requires a program as trainable. `row`: as in CommandValues.
[[nodiscard]] std::string trial_command_text(const StudySpec& spec, const space::Configuration& configuration,
                                             base::TrialId trial, const space::Value* row = nullptr);

// ---- `directory` and `env` of a program know {trial} and {folder}, too, and {{trial}} and {{folder}} for these texts;
// other braces in them mean themselves.

/// Fills in both.
[[nodiscard]] std::string fill_in_trial(std::string text, base::TrialId trial, const std::string& folder);
/// Whether a trial needs a folder of its own.
[[nodiscard]] bool uses_trial_folder(const ProgramSpec& program);
/// Whether this value of `env` is another one for each trial: {trial}, {folder}, or a hyper-parameter's {name} alone.
/// `space`: null while it is not known: any name may be one.
[[nodiscard]] bool differs_by_trial(std::string_view value, const space::SearchSpace* space);
/// Whether every trial works in another directory.
[[nodiscard]] bool works_apart(const ProgramSpec& program);
/// `directory`, above its first placeholder.
[[nodiscard]] std::string common_directory(const ProgramSpec& program);
/// The folder that a trial's program works in; a part `{folder}` is that folder, whatever is before it.
[[nodiscard]] std::string working_directory(const ProgramSpec& program, base::TrialId trial, const std::string& folder);

} // namespace ranktune::study
