// SPDX-License-Identifier: Apache-2.0
// keys, algorithms, and the texts that are made from the program's own tables.

#include <filesystem>
#include <iostream>
#include <utility>
#include <vector>

#include "cli/manual/manual.hpp"
#include "cli/terminal/output_file.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/verbs/verbs.hpp"
#include "cli/version.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/trainables/algorithms.hpp"
#include "ranktune/trainables/trainable.hpp"
#include "report/explain/algorithm_text.hpp"
#include "report/explain/reference.hpp"
#include "study/parse/key_table.hpp"

namespace ranktune::cli {
namespace {

/// (path in the folder, text)
using Files = std::vector<std::pair<std::string, std::string>>;

Files reference_pages(const CommandLine& line) {
    return {{"study-keys.md", report::study_keys_page()},
            {"algorithms.md", report::algorithms_page(ranktune::trainables::known_algorithms())},
            {"trainables.md", report::trainables_page(trainables::known_trainables())},
            {"simulation.md", report::simulation_page()},
            {"command-line.md", command_line_page(line)}};
}

Files manual_pages(const CommandLine& line) {
    Files files{{"man1/ranktune.1", program_manual(line, version())},
                {"man5/ranktune-study.5", study_manual(ranktune::trainables::known_algorithms(), version())}};
    for (const VerbWords& verb : line.verbs)
        files.emplace_back("man1/ranktune-" + verb.name + ".1", verb_manual(verb, version()));
    return files;
}

Files completion_files(const CommandLine& line) {
    const std::vector<std::string> keys = study::KeyTable(ranktune::trainables::known_algorithms()).keys();
    return {{"bash/ranktune", bash_completion(line, keys)},
            {"zsh/_ranktune", zsh_completion(line, keys)},
            {"fish/ranktune.fish", fish_completion(line, keys)}};
}

} // namespace

int keys(const std::string& name) {
    std::cout << report::keys_text(name, detect_terminal().style.width);
    return 0;
}

int algorithms(bool markdown) {
    const study::Algorithms known = ranktune::trainables::known_algorithms();
    std::cout << (markdown ? report::algorithms_page(known)
                           : report::algorithms_text(known, detect_terminal().style.width));
    return 0;
}

int reference(const std::string& kind, const std::string& folder, const CommandLine& line) {
    const Files files = kind == "pages" ? reference_pages(line)
                        : kind == "man" ? manual_pages(line)
                                        : completion_files(line);
    for (const auto& [name, text] : files) {
        const std::filesystem::path path = std::filesystem::path(folder) / name;
        std::filesystem::create_directories(path.parent_path());
        write_whole(OutputFile(path.string()), [&](std::ostream& out) { out << text; });
    }
    return 0;
}

} // namespace ranktune::cli
