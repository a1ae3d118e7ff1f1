// SPDX-License-Identifier: Apache-2.0
#include "study/launchers.hpp"

#include <algorithm>
#include <span>
#include <string_view>

#include "ranktune/study/command_template.hpp"

namespace ranktune::study {
namespace {

/// Launchers of MPI programs.
constexpr std::string_view mpi_launchers[] = {"mpirun", "mpiexec",    "mpiexec_mpt", "orterun", "prterun",
                                              "srun",   "horovodrun", "aprun",       "jsrun",   "ibrun"};
/// Launchers of Python scripts: no interpreter stands before the script.
constexpr std::string_view script_launchers[] = {"torchrun", "deepspeed"};
/// The same as modules: `python3 -m torch.distributed.run train.py`.
constexpr std::string_view module_launchers[] = {"torch.distributed.run", "torch.distributed.launch",
                                                 "accelerate.commands.launch", "deepspeed.launcher.runner"};
/// Programs that start the program after their own options.
constexpr std::string_view wrappers[] = {"env",        "nice",    "nohup",  "stdbuf",    "time",       "timeout",
                                         "numactl",    "taskset", "exec",   "uv",        "conda",      "mamba",
                                         "micromamba", "poetry",  "pipenv", "apptainer", "singularity"};
template <std::size_t N>
bool is_one_of(std::string_view word, const std::string_view (&list)[N]) {
    return std::ranges::find(list, word) != std::end(list);
}

/// `mpiexec.hydra` and `mpirun.openmpi` count, too.
bool starts_mpi(const std::string& program) {
    return is_one_of(program, mpi_launchers) || program.starts_with("mpirun.") || program.starts_with("mpiexec.");
}

bool is_script(std::string_view word) { return word.ends_with(".py") || word.ends_with(".sh"); }

/// Whether the word names a program or script that a launcher or wrapper starts.
bool is_worker(const std::string& word) {
    return is_script(word) || word.starts_with("./") || is_python(program_of(word)) ||
           is_one_of(program_of(word), {"bash", "sh"});
}

bool is_assignment(const std::string& word) {
    const auto equals = word.find('=');
    return equals != std::string::npos && equals > 0 && word.find_first_of("-/") > equals;
}

bool ends_a_command(const std::string& word) {
    return word.ends_with(';') || word.ends_with('&') || word.ends_with('|') || word == "then" || word == "do";
}

/// The launcher that stands at the beginning of these words; empty: none.
std::string launcher_at(std::span<const WrittenWord> words) {
    const auto word = [&](std::size_t i) { return i < words.size() ? words[i].text : std::string(); };
    const std::string program = program_of(word(0).substr(std::min(word(0).find_first_not_of("({"), word(0).size())));
    if (starts_mpi(program) || is_one_of(program, script_launchers)) return program;
    if (program == "accelerate" && word(1) == "launch") return "accelerate launch";
    if (!is_python(program)) return {};
    std::size_t at = 1; // after the options of the interpreter
    while (word(at).starts_with('-') && word(at) != "-m") ++at;
    if (word(at) == "-m" && is_one_of(word(at + 1), module_launchers)) return program + " -m " + word(at + 1);
    return is_one_of(program_of(word(at)), script_launchers) ? program_of(word(at)) : std::string();
}

} // namespace

std::string program_of(const std::string& word) { return word.substr(word.rfind('/') + 1); }

bool is_python(const std::string& program) {
    for (const std::string_view name : {"python", "pypy"})
        if (program.starts_with(name) && program.find_first_not_of("0123456789.", name.size()) == std::string::npos)
            return true;
    return false;
}

std::string launcher_in(const ProgramSpec& program) {
    const auto words = CommandTemplate::written(program.command);
    bool expected = true; // the next word is a program
    bool wrapped = false;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i].text;
        if (expected) {
            if (std::string launcher = launcher_at(std::span(words).subspan(i)); !launcher.empty()) return launcher;
            wrapped = wrapped || is_one_of(program_of(word), wrappers);
            expected = (wrapped && !is_worker(word)) || (program.shell && is_assignment(word));
        }
        if (program.shell && ends_a_command(word)) {
            expected = true;
            wrapped = false;
        }
    }
    return {};
}

} // namespace ranktune::study
