// SPDX-License-Identifier: Apache-2.0
#include "cli/checks/remarks.hpp"

#include <algorithm>
#include <filesystem>
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

constexpr const char* on_this_machine = "on this machine (the nodes of a job may differ)";

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
    return fmt::format(
        "trainable.command: there is no {} {} {}, and without it every trial fails. Mend the path; a relative one "
        "counts from {} (trainable.directory)",
        what, report::unbroken("'" + path.string() + "'"), on_this_machine,
        report::unbroken(study::common_directory(program)));
}

std::string program_warning(const ProgramSpec& program, const WrittenWord& word) {
    if (word.text.find('/') == std::string::npos) {
        if (!process::find_program(word.text, search_path(program)).empty()) return "";
        return fmt::format(
            "trainable.command: there is no program '{}' on PATH {}, and without it every trial fails. Load its "
            "module, activate its environment, or write its path",
            word.text, on_this_machine);
    }
    const fs::path path = in_directory(program, word.text);
    if (access(path.c_str(), F_OK) != 0) return missing_text("program", program, path);
    if (access(path.c_str(), X_OK) != 0)
        return fmt::format("trainable.command: {} may not be executed, and so every trial fails. Mend it: {}",
                           report::unbroken("'" + path.string() + "'"),
                           report::unbroken("chmod +x " + study::shell_text({path.string()})));
    return "";
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

std::string script_warning(const ProgramSpec& program, const WrittenWord& word) {
    const fs::path path = in_directory(program, word.text);
    if (access(path.c_str(), F_OK) != 0) return missing_text("file", program, path);
    if (access(path.c_str(), R_OK) != 0)
        return fmt::format(
            "trainable.command: {} may not be read by this user, and so every trial fails. Mend its permissions",
            report::unbroken("'" + path.string() + "'"));
    return "";
}

} // namespace

std::vector<std::string> command_warnings(const study::StudySpec& spec) {
    std::vector<std::string> warnings;
    if (!spec.trainable.program) return warnings;
    const ProgramSpec& program = *spec.trainable.program;
    if (const std::string launcher = study::launcher_in(program); !launcher.empty())
        return {launcher_warning(launcher)};
    const auto words = study::CommandTemplate::written(program.command);
    if (program.shell || words.empty() || words.front().varies) return warnings;
    const auto note = [&](std::string warning) {
        if (!warning.empty()) warnings.push_back(std::move(warning));
    };
    note(program_warning(program, words.front()));
    if (const WrittenWord* script = script_of(words); script != nullptr && !script->varies)
        note(script_warning(program, *script));
    return warnings;
}

std::string command_warning_lines(const study::StudySpec& spec, const report::Style& style) {
    std::string text;
    for (const auto& warning : command_warnings(spec))
        text += report::paint(report::prose("warning", warning, style), report::Tone::bad, style);
    for (const auto& remark : space_remarks(spec)) text += report::prose("note", remark, style);
    return report::encoded(std::move(text), style);
}

} // namespace ranktune::cli
