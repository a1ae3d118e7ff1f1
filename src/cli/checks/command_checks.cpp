// SPDX-License-Identifier: Apache-2.0
#include "cli/checks/remarks.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string_view>

#include <unistd.h>

#include <fmt/format.h>

#include "process/environment.hpp"
#include "process/spawn.hpp"
#include "ranktune/study/command_template.hpp"
#include "study/launchers.hpp"
#include "studydir/trial_folder.hpp"

namespace ranktune::cli {
namespace {

namespace fs = std::filesystem;
using study::ProgramSpec;
using study::WrittenWord;

constexpr const char* on_this_machine = "on this machine";

std::string launcher_warning(const std::string& launcher) {
    return fmt::format(
        "trainable.command starts '{}', but ranktune is the launcher: it starts the command once for each rank of a "
        "trial, with torchrun's variables (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT). Write the program "
        "alone, and the number of processes as ranks under [resources]",
        launcher);
}

/// Environment entries whose PATH a trial's command is searched on.
std::vector<std::string> search_path(const ProgramSpec& program) {
    for (const auto& variable : program.env)
        if (variable.name == "PATH") return {"PATH=" + variable.value};
    return process::environment_entries();
}

fs::path in_directory(const ProgramSpec& program, const std::string& path) {
    const std::string directory = study::common_directory(program);
    const std::string found = study::works_apart(program) ? studydir::find_above(directory, path) : "";
    return found.empty() ? fs::path(directory) / path : fs::path(found);
}

std::string missing_text(const char* what, const ProgramSpec& program, const fs::path& path) {
    return fmt::format("there is no {} {} {}; a relative path counts from {} (directory)", what,
                       "'" + path.string() + "'", on_this_machine, study::common_directory(program));
}

/// The first line of a script names the program that runs it: `#!/usr/bin/env python3`.
std::string interpreter_missing(const ProgramSpec& program, const fs::path& script) {
    std::string line(256, '\0');
    std::ifstream file(script, std::ios::binary);
    file.read(line.data(), static_cast<std::streamsize>(line.size()));
    line.resize(static_cast<std::size_t>(file.gcount()));
    const std::string name = "'" + script.string() + "'";
    if (!line.starts_with("#!")) {
        const bool binary = line.empty() || line.find('\0') != std::string::npos || line.starts_with("\x7f");
        return binary ? "" : name + " needs a first line that names what runs it, such as #!/bin/sh";
    }
    line = line.substr(2, line.find('\n') - 2);
    if (line.ends_with('\r'))
        return fmt::format("{} has lines that end as on Windows, and its first line names no program therefore; {}",
                           name, "sed -i 's/\\r$//' " + study::shell_text({script.string()}));
    std::istringstream words(line);
    std::string interpreter, argument;
    words >> interpreter >> argument;
    if (interpreter.empty() || !interpreter.starts_with('/')) return "";
    if (access(interpreter.c_str(), X_OK) != 0)
        return fmt::format("the first line of {} names '{}', which is no program {}", name, interpreter,
                           on_this_machine);
    const bool on_path = study::program_of(interpreter) == "env" && !argument.empty() && !argument.starts_with('-') &&
                         argument.find('=') == std::string::npos;
    if (on_path && process::find_program(argument, search_path(program)).empty())
        return fmt::format("the first line of {} names '{}', which is not on PATH {}", name, argument, on_this_machine);
    return "";
}

/// What only a shell reads as the first word: `NAME=value`, or a command of its own; empty: neither.
std::string meant_for_a_shell(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const auto in_names = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
    if (equals != std::string::npos && !name.empty() && std::ranges::all_of(name, in_names))
        return fmt::format(
            "'{}' sets a variable in a shell alone: sh -c '...' starts one, and in [trainable] env = {{ {} = {} }} "
            "sets it",
            word, name, space::Value(word.substr(equals + 1)).literal());
    constexpr std::string_view builtins[] = {"cd", "source", ".", "export", "exec", "ulimit", "set", "eval"};
    if (std::ranges::find(builtins, word) == std::end(builtins)) return "";
    return fmt::format("'{}' is a command of the shell: sh -c '...' starts one, and in [trainable] shell = true", word);
}

std::string missing_program(const ProgramSpec& program, const WrittenWord& word) {
    const bool is_path = word.text.find('/') != std::string::npos;
    const std::string found = is_path ? "" : process::find_program(word.text, search_path(program));
    const bool exists = !found.empty() || (is_path && access(in_directory(program, word.text).c_str(), F_OK) == 0);
    if (const std::string why = exists ? "" : meant_for_a_shell(word.text); !why.empty()) return why;
    if (!is_path) {
        if (!found.empty()) return interpreter_missing(program, found);
        const bool beside = access(in_directory(program, word.text).c_str(), F_OK) == 0;
        return fmt::format("there is no program '{}' on PATH {}; {}", word.text, on_this_machine,
                           beside ? "the file of that name beside the study file is ./" + word.text
                                  : "load its module, activate its environment, or write its path");
    }
    const fs::path path = in_directory(program, word.text);
    if (access(path.c_str(), F_OK) != 0) return missing_text("program", program, path);
    std::error_code error;
    if (fs::is_directory(path, error))
        return fmt::format("{} is a directory, not a program", "'" + path.string() + "'");
    if (access(path.c_str(), X_OK) != 0)
        return fmt::format("{} may not be executed: {}", "'" + path.string() + "'",
                           "chmod +x " + study::shell_text({path.string()}));
    return interpreter_missing(program, path);
}

/// The word that an interpreter takes as its script; nullptr when that is not certain: options of most interpreters may
/// take a value, or replace the script.
const WrittenWord* script_of(const std::vector<WrittenWord>& words) {
    const std::string interpreter = study::program_of(words.front().text);
    const bool python = study::is_python(interpreter);
    constexpr std::string_view others[] = {"sh", "bash", "dash", "zsh", "Rscript", "julia", "perl", "ruby", "node"};
    if (!python && std::ranges::find(others, interpreter) == std::end(others)) return nullptr;
    for (std::size_t i = 1; i < words.size(); ++i) {
        const std::string& word = words[i].text;
        if (!word.starts_with('-')) return &words[i];
        constexpr std::string_view flags[] = {"-u", "-O", "-OO", "-B", "-E", "-s", "-S", "-I", "-q", "-v"};
        if (!python || std::ranges::find(flags, word) == std::end(flags)) return nullptr;
    }
    return nullptr;
}

std::string missing_script(const ProgramSpec& program, const WrittenWord& word) {
    const fs::path path = in_directory(program, word.text);
    if (access(path.c_str(), F_OK) != 0) return missing_text("file", program, path);
    if (access(path.c_str(), R_OK) != 0)
        return fmt::format("{} may not be read by this user; mend its permissions", "'" + path.string() + "'");
    return "";
}

/// The file that a command runs, as far as that is certain; empty: it is not.
fs::path file_run_by(const ProgramSpec& program) {
    const auto words = study::CommandTemplate::written(program.command);
    if (words.empty() || words.front().varies) return {};
    const bool is_path = words.front().text.find('/') != std::string::npos;
    const WrittenWord* script = is_path ? &words.front() : script_of(words);
    return script == nullptr || script->varies ? fs::path() : in_directory(program, script->text);
}

/// Whether the file may define it, or import it: it has the word.
bool mentions(const fs::path& path, const std::string& function) {
    std::ifstream file(path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    return std::regex_search(text, std::regex("\\b" + function + "\\b")) || text.find("import *") != std::string::npos;
}

std::string missing_function(const ProgramSpec& program) {
    const auto colon = program.function.rfind(':');
    const fs::path path = program.function.substr(0, colon);
    const std::string name = program.function.substr(colon + 1);
    if (access(path.c_str(), R_OK) != 0)
        return fmt::format("there is no file '{}' {} that this user may read", path.string(), on_this_machine);
    if (!mentions(path, name)) return fmt::format("'{}' has no function '{}'", path.string(), name);
    const std::string interpreter = study::interpreter_of(program);
    const bool is_path = interpreter.find('/') != std::string::npos;
    if (is_path ? access(interpreter.c_str(), X_OK) == 0
                : !process::find_program(interpreter, search_path(program)).empty())
        return "";
    return fmt::format("there is no Python '{}' {} (interpreter)", interpreter, on_this_machine);
}

} // namespace

std::string missing_in_command(const ProgramSpec& program) {
    if (!program.function.empty()) return missing_function(program);
    std::error_code error;
    const auto words = study::CommandTemplate::written(program.command);
    if (program.shell || words.empty() || words.front().varies) return "";
    if (!fs::is_directory(study::common_directory(program), error)) return ""; // a mistake of its own
    std::string missing = missing_program(program, words.front());
    if (!missing.empty()) return missing;
    const WrittenWord* script = script_of(words);
    return script == nullptr || script->varies ? "" : missing_script(program, *script);
}

std::vector<std::string> command_warnings(const study::StudySpec& spec) {
    if (!spec.trainable.program) return {};
    const ProgramSpec& program = *spec.trainable.program;
    if (const std::string launcher = study::launcher_in(program); !launcher.empty())
        return {launcher_warning(launcher)};
    const std::string missing = missing_in_command(program);
    if (missing.empty()) {
        std::string script = program.has_tasks() && program.function.empty()
                                 ? job_script_warning(file_run_by(program).string(), spec.resources)
                                 : std::string();
        if (script.empty()) return {};
        return {std::move(script)};
    }
    return {(program.function.empty() ? "trainable.command: " : "trainable.python: ") + missing +
            "; without it every trial fails (the nodes of a job may differ)"};
}

std::string command_warning_lines(const study::StudySpec& spec, const report::Style& style) {
    std::string text;
    for (const auto& warning : command_warnings(spec))
        text += report::prose("warning", warning, style, report::Tone::bad);
    for (const auto& remark : space_remarks(spec)) text += report::prose("note", remark, style);
    return report::encoded(std::move(text), style);
}

} // namespace ranktune::cli
