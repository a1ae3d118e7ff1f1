// SPDX-License-Identifier: Apache-2.0
#include "study/launchers.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "ranktune/study/command_template.hpp"

namespace ranktune::study {
namespace {

using LauncherWords = std::vector<WrittenWord>;

/// Start processes that are to find each other by MPI.
constexpr std::string_view mpi_launchers[] = {"mpirun", "mpiexec",    "mpiexec_mpt", "orterun", "prterun",
                                              "srun",   "horovodrun", "aprun",       "jsrun",   "ibrun"};
/// Start a Python script, which needs no interpreter in front of it.
constexpr std::string_view script_launchers[] = {"torchrun", "deepspeed"};
/// The same as modules: `python3 -m torch.distributed.run train.py`.
constexpr std::string_view module_launchers[] = {"torch.distributed.run", "torch.distributed.launch",
                                                 "accelerate.commands.launch", "deepspeed.launcher.runner"};
/// Start the program that is behind their own options.
constexpr std::string_view wrappers[] = {"env",        "nice",    "nohup",  "stdbuf",    "time",       "timeout",
                                         "numactl",    "taskset", "exec",   "uv",        "conda",      "mamba",
                                         "micromamba", "poetry",  "pipenv", "apptainer", "singularity"};
/// How many processes a launcher starts.
constexpr std::string_view count_options[] = {"-n",
                                              "-np",
                                              "--np",
                                              "--ntasks",
                                              "--nproc_per_node",
                                              "--nproc-per-node",
                                              "--num_processes",
                                              "--num-processes",
                                              "--num_gpus"};

template <std::size_t N>
bool is_one_of(std::string_view word, const std::string_view (&list)[N]) {
    return std::ranges::find(list, word) != std::end(list);
}

/// `mpiexec.hydra` and `mpirun.openmpi` are other names of the same.
bool starts_mpi(const std::string& program) {
    return is_one_of(program, mpi_launchers) || program.starts_with("mpirun.") || program.starts_with("mpiexec.");
}

bool is_script(std::string_view word) { return word.ends_with(".py") || word.ends_with(".sh"); }

/// What a launcher would start, as one would type it.
bool is_worker(const std::string& word) {
    return is_script(word) || word.starts_with("./") || is_python(program_of(word)) ||
           is_one_of(program_of(word), {"bash", "sh"});
}

std::optional<std::uint32_t> count(std::string_view digits) {
    if (digits.empty() || digits.size() > 6 || digits.find_first_not_of("0123456789") != std::string_view::npos)
        return std::nullopt;
    return static_cast<std::uint32_t>(std::stoul(std::string(digits)));
}

/// From the options of a launcher, which begin at `first`.
std::optional<std::uint32_t> processes(const LauncherWords& words, std::size_t first) {
    for (std::size_t i = first; i < words.size() && !is_worker(words[i].text); ++i) {
        const std::string_view word = words[i].text;
        const auto equals = std::min(word.find('='), word.size());
        if (!is_one_of(word.substr(0, equals), count_options)) continue;
        if (equals < word.size()) return count(word.substr(equals + 1));
        return i + 1 < words.size() ? count(words[i + 1].text) : std::nullopt;
    }
    return std::nullopt;
}

class LauncherSearch {
  public:
    explicit LauncherSearch(const ProgramSpec& program)
        : command_(program.command), shell_(program.shell), words_(CommandTemplate::written(program.command)) {}

    std::optional<ForeignLauncher> found() {
        bool expected = true; // a program is, here
        for (std::size_t i = 0; i < words_.size(); ++i) {
            const std::string& word = words_[i].text;
            if (expected) {
                if (auto launcher = at(i)) return launcher;
                expected = is_one_of(program_of(word), wrappers) || (wrapped_ && !is_worker(word)) ||
                           (shell_ && is_assignment(word));
                wrapped_ = wrapped_ || is_one_of(program_of(word), wrappers);
            }
            if (shell_ && ends_a_command(word)) {
                expected = true;
                wrapped_ = false;
            }
        }
        return std::nullopt;
    }

  private:
    /// The launcher whose first word is that one.
    [[nodiscard]] std::optional<ForeignLauncher> at(std::size_t i) const {
        const std::size_t opened = shell_ ? std::min(words_[i].text.find_first_not_of("({"), words_[i].text.size()) : 0;
        const std::string word = words_[i].text.substr(opened);
        const std::string program = program_of(word);
        const std::string before = command_.substr(0, words_[i].at + opened);
        const auto next = [&](std::size_t n) { return n < words_.size() ? words_[n].text : std::string(); };
        const auto found = [&](const std::string& name, std::size_t first, const std::string& python) {
            const std::string rest = worker_from(first, python);
            return ForeignLauncher{name, rest.empty() ? rest : before + rest, processes(words_, first)};
        };
        if (starts_mpi(program)) return found(program, i + 1, "");
        if (is_one_of(program, script_launchers)) return found(program, i + 1, "python3");
        if (program == "accelerate" && next(i + 1) == "launch") return found("accelerate launch", i + 2, "python3");
        if (!is_python(program)) return std::nullopt;
        std::size_t at = i + 1; // behind the options of the interpreter
        while (next(at).starts_with('-') && next(at) != "-m") ++at;
        if (next(at) == "-m" && is_one_of(next(at + 1), module_launchers))
            return found(program + " -m " + next(at + 1), at + 2, word);
        if (is_one_of(program_of(next(at)), script_launchers)) return found(program_of(next(at)), at + 1, word);
        return std::nullopt;
    }

    /// The command from the first word on that the launcher would start; `python`: what runs scripts and modules;
    /// empty: such a word is not known.
    [[nodiscard]] std::string worker_from(std::size_t first, const std::string& python) const {
        for (std::size_t i = first; i < words_.size(); ++i) {
            const std::string& word = words_[i].text;
            const bool is_module = !python.empty() && (word == "-m" || word == "--module");
            if (is_module && i + 1 < words_.size()) return python + " -m " + text_from(i + 1);
            if (!is_worker(word)) continue;
            return python.empty() || !word.ends_with(".py") ? text_from(i) : python + " " + text_from(i);
        }
        return {};
    }

    [[nodiscard]] std::string text_from(std::size_t i) const { return command_.substr(words_[i].at); }

    static bool is_assignment(const std::string& word) {
        const auto equals = word.find('=');
        return equals != std::string::npos && equals > 0 && word.find_first_of("-/") > equals;
    }
    static bool ends_a_command(const std::string& word) {
        return word.ends_with(';') || word.ends_with('&') || word.ends_with('|') || word == "then" || word == "do";
    }

    const std::string& command_;
    bool shell_;
    LauncherWords words_;
    bool wrapped_ = false; ///< behind a wrapper
};

} // namespace

std::string program_of(const std::string& word) { return word.substr(word.rfind('/') + 1); }

bool is_python(const std::string& program) {
    for (const std::string_view name : {"python", "pypy"})
        if (program.starts_with(name) && program.find_first_not_of("0123456789.", name.size()) == std::string::npos)
            return true;
    return false;
}

std::optional<ForeignLauncher> launcher_in(const ProgramSpec& program) { return LauncherSearch(program).found(); }

} // namespace ranktune::study
