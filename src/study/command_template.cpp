// SPDX-License-Identifier: Apache-2.0
#include "ranktune/study/command_template.hpp"
#include "base/joined.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "study/shell/shell_place.hpp"

namespace ranktune::study {
namespace {

constexpr std::string_view blanks = " \t\n\r";

bool is_blank(char c) { return blanks.find(c) != std::string_view::npos; }

/// Characters that a shell would interpret. They would be passed on literally, which is never meant.
bool is_for_shells(char c) { return std::string_view("$`|&;<>()").find(c) != std::string_view::npos; }

constexpr std::string_view trial_placeholder = "{trial}";
constexpr std::string_view folder_placeholder = "{folder}";

/// Whether the placeholder at `at` stands in braces once more, `{{trial}}`, and means its own text.
bool is_literal(std::string_view text, std::size_t at, std::string_view placeholder) {
    const std::size_t end = at + placeholder.size();
    return at > 0 && text[at - 1] == '{' && end < text.size() && text[end] == '}';
}

bool has(std::string_view text, std::string_view placeholder) {
    for (std::size_t at = text.find(placeholder); at != std::string_view::npos; at = text.find(placeholder, at + 1))
        if (!is_literal(text, at, placeholder)) return true;
    return false;
}

void replace(std::string& text, std::string_view placeholder, const std::string& by) {
    std::size_t begin = 0;
    for (std::size_t at = 0; (at = text.find(placeholder, begin)) != std::string::npos;) {
        if (is_literal(text, at, placeholder)) {
            text.replace(at - 1, placeholder.size() + 2, placeholder);
            begin = at - 1 + placeholder.size();
        } else {
            text.replace(at, placeholder.size(), by);
            begin = at + by.size();
        }
    }
}

constexpr std::string_view for_python = ":py";
constexpr std::string_view python_arguments = "args:py";

bool is_hydra(std::string_view name) { return name == "args_hydra" || name == "args_plain"; }
bool stands_for_words(std::string_view name) { return name == "args" || name == python_arguments || is_hydra(name); }

/// The hyper-parameter, or reserved name, that a placeholder stands for.
std::string_view name_in(std::string_view placeholder) {
    if (!placeholder.ends_with(for_python)) return placeholder;
    const std::string_view name = placeholder.substr(0, placeholder.size() - for_python.size());
    const auto& reserved = CommandTemplate::reserved();
    return std::ranges::find(reserved, name) == reserved.end() ? name : placeholder;
}

/// A word, quoted for a shell if necessary.
std::string quoted(const std::string& word) {
    constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
    std::string text = "'";
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return text + "'";
}

/// Between single quotes, with a backslash in front of quotes and `more`.
std::string in_single_quotes(const std::string& text, std::string_view more) {
    std::string quoted = "'";
    for (const char c : text) {
        if (c == '\'' || more.find(c) != std::string_view::npos) quoted += '\\';
        quoted += c;
    }
    return quoted + "'";
}

/// As `print` of Python shows it; `inside`: of a list.
std::string python_text(const space::Value& value, bool inside = false) {
    if (value.is_bool()) return value.as_bool() ? "True" : "False";
    if (value.is_string()) return inside ? in_single_quotes(value.as_string(), "\\") : value.as_string();
    if (!value.is_list()) return value.text();
    return "[" + base::joined(value.as_list(), [](const space::Value& item) { return python_text(item, true); }) + "]";
}

/// A string that Hydra's grammar leaves a string, and the same: a word that is no number, boolean or null.
bool is_plain_for_hydra(const std::string& text) {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    if (text.empty() || !letter(text[0])) return false;
    std::string small;
    for (const char c : text) {
        if (!letter(c) && !(c >= '0' && c <= '9') && c != '-' && c != '/' && c != '.') return false;
        small += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    constexpr std::string_view others[] = {"null", "true", "false", "inf", "nan"};
    return std::ranges::find(others, small) == std::end(others);
}

/// A string between quotes of Hydra, in which a backslash protects quotes, and backslashes in front of them. What
/// looks like an interpolation of OmegaConf, which reads the string next, is protected from it.
std::string hydra_quoted(const std::string& text) {
    std::string quoted = "'";
    std::size_t backslashes = 0; // directly before this character
    const auto once_more = [&] { quoted.append(backslashes, '\\'); };
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        const bool interpolates = text.compare(i, 2, "${") == 0;
        if (c == '\'' || interpolates) {
            once_more();
            quoted += '\\';
        }
        backslashes = c == '\\' ? backslashes + 1 : 0;
        quoted += c;
    }
    once_more();
    return quoted + "'";
}

/// As a value of an override of Hydra.
std::string hydra_text(const space::Value& value) {
    if (value.is_string())
        return is_plain_for_hydra(value.as_string()) ? value.as_string() : hydra_quoted(value.as_string());
    if (value.is_none()) return "null";
    if (!value.is_list()) return value.text();
    return "[" + base::joined(value.as_list(), hydra_text, ",") + "]";
}

/// Whether a shell reads a piece of a command, written as `text`, as its author did.
bool reads_alike(bool placeholder, const std::string& text, ShellPlace& as_read, ShellPlace& as_written) {
    if (placeholder) static_cast<void>(as_read.value());
    for (const char c : text) {
        as_written.step(c);
        if (placeholder) continue;
        as_read.step(c);
        if (!as_written.is_as_deep_as(as_read)) return false;
    }
    return as_written.is_as_deep_as(as_read);
}

std::vector<std::string> hydra_arguments(const space::Configuration& configuration) {
    std::vector<std::string> words;
    for (const auto& [name, value] : configuration.entries()) words.push_back(name + "=" + hydra_text(value));
    return words;
}

std::vector<std::string> python_like_arguments(const space::Configuration& configuration) {
    std::vector<std::string> words;
    for (const auto& [name, value] : configuration.entries())
        if (!value.is_none()) words.push_back("--" + name + "=" + python_text(value));
    return words;
}

std::vector<std::string> arguments(const space::Configuration& configuration, Flags flags) {
    std::vector<std::string> words;
    for (const auto& [name, value] : configuration.entries()) {
        if (value.is_none()) continue;
        if (flags == Flags::off || !value.is_bool()) {
            words.push_back("--" + name + "=" + value.text());
        } else if (value.as_bool()) {
            words.push_back("--" + name);
        } else if (flags == Flags::both) {
            words.push_back("--no-" + name);
        }
    }
    return words;
}

} // namespace

std::optional<std::vector<std::string>> CommandTemplate::fill_in(const std::string& name,
                                                                 const CommandValues& values) const {
    if (name == "args") return arguments(values.configuration, flags_);
    if (is_hydra(name)) return hydra_arguments(values.configuration);
    if (name == python_arguments) return python_like_arguments(values.configuration);
    if (name == "config") return std::vector<std::string>{values.config_path};
    if (name == "iterations") return std::vector<std::string>{std::to_string(values.iterations)};
    if (name == "trial") return std::vector<std::string>{std::to_string(values.trial.value())};
    if (name == "folder") return std::vector<std::string>{values.folder};
    if (name == "checkpoint" && !values.checkpoint.empty()) return std::vector<std::string>{values.checkpoint};
    const std::string_view parameter = name_in(name);
    for (const DataFile& file : values.data)
        if (parameter == data_placeholder(file)) return std::vector<std::string>{file.path};
    const space::Value* value = values.configuration.find(parameter);
    if (value == nullptr && parameter == row_parameter) value = values.row;
    if (value == nullptr || value->is_none()) return std::nullopt;
    return std::vector<std::string>{parameter == name ? value->text() : python_text(*value)};
}

/// Reads the text of a command once, from left to right. Mistakes are noted, and their text is taken literally.
class CommandTemplate::Reader {
  public:
    Reader(std::string_view text, bool shell, std::vector<std::string>& mistakes)
        : text_(text), shell_(shell), mistakes_(mistakes) {}

    std::vector<Word> words() {
        while (at_ < text_.size()) step();
        if (quote_ != '\0') complain(std::string("the quote ") + quote_ + " is never closed");
        if (shell_ && std::ranges::any_of(word_, &Piece::placeholder) && !place_.ends())
            complain("values cannot be quoted in this command: " + place_.why());
        end_word();
        if (words_.empty() || (shell_ && text_.find_first_not_of(blanks) == std::string_view::npos))
            complain("the command is empty");
        return std::move(words_);
    }

  private:
    void step() {
        const char c = text_[at_++];
        if (c == '{' || c == '}') return brace(c);
        if (shell_) return add(c);
        if (quote_ != '\0') return inside_quotes(c);
        if (c == '\'' || c == '"') {
            quote_ = c;
            in_word_ = true;
        } else if (is_blank(c)) {
            end_word();
        } else if (c == '\\') {
            if (at_ == text_.size()) return complain("a backslash at the end of the command");
            add(text_[at_++]);
        } else {
            if (is_for_shells(c)) refuse(c);
            if (c == '~' && names_home())
                complain(
                    "'~' is the home directory to a shell, but the command is run without one; write the whole path, "
                    "or put it between single quotes if it is meant as it stands");
            add(c);
        }
    }

    /// `~`, `~/data` and `~user` at the beginning of a word, and `--data=~/x`, although few shells expand that.
    [[nodiscard]] bool names_home() const {
        if (!in_word_) return true;
        return !word_.empty() && !word_.back().placeholder && word_.back().text.ends_with('=') &&
               text_.substr(at_).starts_with('/');
    }

    void inside_quotes(char c) {
        if (c == quote_) {
            quote_ = '\0';
        } else if (quote_ == '"' && c == '\\' && at_ < text_.size() &&
                   std::string_view("\"\\$`").find(text_[at_]) != std::string_view::npos) {
            add(text_[at_++]);
        } else {
            if (quote_ == '"' && (c == '$' || c == '`')) refuse(c);
            add(c);
        }
    }

    void complain(const std::string& mistake) {
        if (std::ranges::find(mistakes_, mistake) == mistakes_.end()) mistakes_.push_back(mistake);
    }

    void refuse(char c) {
        complain(std::string("'") + c +
                 "' means something to a shell, but the command is run without one; say shell = true, or put it "
                 "between single quotes");
    }

    void brace(char c) {
        if (at_ < text_.size() && text_[at_] == c) {
            ++at_;
            return add(c);
        }
        if (c == '}') return complain("a lone '}'; a brace is written '}}'");
        const auto end = text_.find_first_of("{}", at_);
        if (end == std::string_view::npos || text_[end] != '}')
            return complain("a '{' without its '}'; a brace is written '{{'");
        in_word_ = true;
        word_.push_back({std::string(text_.substr(at_, end - at_)), true, quotes_at(end)});
        at_ = end + 1;
    }

    /// Around the placeholder that ends there.
    Quotes quotes_at(std::size_t end) {
        if (!shell_) return {};
        const auto quotes = place_.value();
        if (!quotes)
            complain("a value cannot be quoted where {" + std::string(text_.substr(at_, end - at_)) +
                     "} stands: " + place_.why() + "; put it into a variable before: v={x}; echo \"$v\"");
        return quotes.value_or(Quotes::none);
    }

    void add(char c) {
        if (shell_) place_.step(c);
        in_word_ = true;
        if (word_.empty() || word_.back().placeholder) word_.emplace_back();
        word_.back().text += c;
    }

    void end_word() {
        if (!in_word_) return;
        const auto list = std::ranges::find_if(
            word_, [](const Piece& piece) { return piece.placeholder && stands_for_words(piece.text); });
        if (!shell_ && list != word_.end() && word_.size() > 1)
            complain("{" + list->text + "} stands for several words, so it must be a word of its own");
        words_.push_back(std::move(word_));
        word_.clear();
        in_word_ = false;
    }

    std::string_view text_;
    bool shell_;
    std::vector<std::string>& mistakes_;
    std::size_t at_ = 0;
    char quote_ = '\0';
    ShellPlace place_; ///< of a shell command
    bool in_word_ = false;
    Word word_;
    std::vector<Word> words_;
};

CommandTemplate::CommandTemplate(std::string_view command, bool shell, Flags flags) : shell_(shell), flags_(flags) {
    std::vector<std::string> mistakes;
    words_ = Reader(command, shell, mistakes).words();
    if (!mistakes.empty()) throw base::UsageError(base::join(mistakes, "; "));
}

CommandTemplate::CommandTemplate(const ProgramSpec& program) : CommandTemplate(program.shell, program.flags) {
    if (program.function.empty()) *this = CommandTemplate(program.command, program.shell, program.flags);
}

std::string interpreter_of(const ProgramSpec& program) {
    return program.interpreter.empty() ? "python3" : program.interpreter;
}

const std::string& shown_command(const ProgramSpec& program) {
    return program.function.empty() ? program.command : program.function;
}

CommandTemplate CommandTemplate::read(std::string_view command, bool shell, std::vector<std::string>& mistakes) {
    CommandTemplate result(shell, Flags::off);
    result.words_ = Reader(command, shell, mistakes).words();
    return result;
}

void check_predict_command(const StudySpec& spec, const std::string& command) {
    std::vector<std::string> known = {"checkpoint", "args", "args_hydra", "args:py", "iterations", "trial"};
    for (const DataFile& file : spec.data)
        if (!file.is_mixture()) known.push_back(data_placeholder(file));
    for (const space::Parameter& parameter : spec.space.parameters()) known.push_back(parameter.name);
    for (const auto& option : spec.trainable.options.entries()) known.push_back(option.name);
    std::vector<std::string> mistakes;
    const CommandTemplate read = CommandTemplate::read(command, false, mistakes);
    // There is no such key here.
    constexpr std::string_view shell_key = "say shell = true";
    std::string text = base::join(mistakes, "; ");
    for (auto at = text.find(shell_key); at != std::string::npos; at = text.find(shell_key, at))
        text.replace(at, shell_key.size(), "write sh -c '...'");
    if (!mistakes.empty()) throw base::UsageError(text);
    for (const std::string& name : read.placeholders())
        if (std::ranges::find(known, name) == known.end())
            throw base::UsageError("unknown placeholder {" + name + "}" + base::suggestion(name, known) +
                                   "; known: " + base::join(known) + "; a brace is written '{{'");
}

ProgramSpec program_of(const PredictSpec& predict) {
    ProgramSpec program;
    program.command = predict.command;
    program.function = predict.function;
    program.interpreter = predict.interpreter;
    program.directory = predict.directory;
    return program;
}

std::string data_placeholder(const DataFile& file) { return "data." + file.name; }

const std::vector<std::string>& CommandTemplate::reserved() {
    static const std::vector<std::string> names = {"args",   "args_hydra", "args_plain", "args:py",
                                                   "config", "iterations", "trial",      "folder"};
    return names;
}

std::vector<std::string> CommandTemplate::placeholders() const {
    std::vector<std::string> names;
    for (const Word& word : words_) {
        for (const Piece& piece : word) {
            const std::string name(name_in(piece.text));
            if (piece.placeholder && std::ranges::find(names, name) == names.end()) names.push_back(name);
        }
    }
    return names;
}

std::vector<std::string> CommandTemplate::expand(const CommandValues& values) const {
    std::vector<std::string> result;
    const Word* option = nullptr; // the word before, if it is one such as `--lr`
    ShellPlace as_read;
    ShellPlace as_written;
    for (const Word& word : words_) {
        std::string text;
        bool complete = true;
        for (const Piece& piece : word) {
            const std::size_t begin = text.size();
            const auto filling = piece.placeholder ? fill_in(piece.text, values) : std::vector{piece.text};
            if (!filling) {
                complete = false;
            } else if (!piece.placeholder) {
                text += piece.text;
            } else if (shell_) {
                const bool as_words = piece.quotes == Quotes::none || stands_for_words(piece.text);
                text += written_at(piece.quotes, as_words ? shell_text(*filling) : filling->front());
            } else if (stands_for_words(piece.text)) {
                result.insert(result.end(), filling->begin(), filling->end());
                complete = false; // the word is only the placeholder
            } else {
                text += filling->front();
            }
            if (shell_ && !reads_alike(piece.placeholder, text.substr(begin), as_read, as_written))
                throw base::UsageError(
                    "with the values of this trial a shell would read the command otherwise, such as a line of a "
                    "here-document as its end; pass them by variables: v={x}, and \"$v\" there");
        }
        if (complete || shell_)
            result.push_back(std::move(text));
        else if (option != nullptr && word.size() == 1 && !stands_for_words(word.front().text))
            result.pop_back(); // an option goes with its value
        const bool is_option = word.size() == 1 && !word.front().placeholder && word.front().text.size() > 1 &&
                               word.front().text.starts_with('-') && word.front().text != "--";
        option = is_option ? &word : nullptr;
    }
    if (shell_) return {"/bin/sh", "-c", result.front()};
    return result;
}

std::vector<WrittenWord> CommandTemplate::written(std::string_view command) {
    std::vector<std::string> ignored; // in a shell command these are no mistakes
    std::vector<WrittenWord> result;
    for (const Word& word : Reader(command, false, ignored).words()) {
        WrittenWord written;
        for (const Piece& piece : word) {
            written.text += piece.placeholder ? "{" + piece.text + "}" : piece.text;
            written.varies = written.varies || piece.placeholder;
        }
        result.push_back(std::move(written));
    }
    return result;
}

std::string shell_text(const std::vector<std::string>& words) { return base::joined(words, quoted, " "); }

std::string trial_command_text(const StudySpec& spec, const space::Configuration& configuration, base::TrialId trial,
                               const space::Value* row) {
    const ProgramSpec& program = *spec.trainable.program;
    if (!program.function.empty()) {
        const auto argument = [](const auto& entry) { return entry.name + "=" + entry.value.literal(); };
        return program.function.substr(program.function.rfind('/') + 1) + "(" +
               base::joined(configuration.entries(), argument) + ")";
    }
    const std::string folder = "trials/" + std::to_string(trial.value());
    return shell_text(CommandTemplate(program).expand({.configuration = configuration,
                                                       .config_path = "config.json",
                                                       .iterations = spec.max_iterations,
                                                       .trial = trial,
                                                       .folder = folder,
                                                       .data = spec.data,
                                                       .row = row}));
}

std::string fill_in_trial(std::string text, base::TrialId trial, const std::string& folder) {
    replace(text, trial_placeholder, std::to_string(trial.value()));
    replace(text, folder_placeholder, folder);
    return text;
}

bool uses_trial_folder(const ProgramSpec& program) {
    const auto uses = [](const std::string& text) { return has(text, folder_placeholder); };
    const auto names = CommandTemplate(program).placeholders();
    return std::ranges::find(names, "folder") != names.end() || uses(program.directory) ||
           std::ranges::any_of(program.env, [&](const auto& variable) { return uses(variable.value); });
}

bool differs_by_trial(std::string_view value, const space::SearchSpace* space) {
    const auto is_of_a_name = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
    };
    const bool in_braces = value.size() > 2 && value.front() == '{' && value.back() == '}';
    const std::string_view name = in_braces ? value.substr(1, value.size() - 2) : std::string_view();
    const bool is_name = space != nullptr ? std::ranges::count(space->parameters(), name, &space::Parameter::name) > 0
                                          : in_braces && std::ranges::all_of(name, is_of_a_name);
    return is_name || has(value, trial_placeholder) || has(value, folder_placeholder); // (JSON has other braces.)
}

bool works_apart(const ProgramSpec& program) { return common_directory(program) != program.directory; }

std::string common_directory(const ProgramSpec& program) {
    std::filesystem::path common;
    for (const std::filesystem::path& part : std::filesystem::path(program.directory)) {
        if (has(part.string(), trial_placeholder) || has(part.string(), folder_placeholder)) break;
        common /= part;
    }
    return common.string();
}

std::string working_directory(const ProgramSpec& program, base::TrialId trial, const std::string& folder) {
    std::filesystem::path directory;
    for (const std::filesystem::path& part : std::filesystem::path(program.directory))
        directory /= fill_in_trial(part.string(), trial, folder); // an absolute one replaces what is before it
    return directory.string();
}

} // namespace ranktune::study
