// SPDX-License-Identifier: Apache-2.0
#include "cli/study_input.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <unistd.h>

#include "drivers/head/open_study.hpp"
#include "drivers/study_directory.hpp"
#include "ranktune/study/parse.hpp"
#include "ranktune/trainables/trainable.hpp"

namespace ranktune::cli {
namespace {

/// Options that name a file have to name one that can be read here: a trial would only say so after the start.
void check_files(const study::StudySpec& spec, const std::string& file,
                 const std::vector<study::TrainableInfo>& trainables) {
    std::vector<study::Mistake> mistakes;
    for (const auto& trainable : trainables) {
        if (trainable.name != spec.trainable.name) continue;
        for (const auto& option : trainable.options) {
            const auto* value = spec.trainable.options.find(option.name);
            if (option.kind != study::OptionInfo::Kind::path || value == nullptr) continue;
            const std::string& path = value->as_string();
            const std::string key = "trainable." + option.name;
            if (!std::filesystem::exists(path)) {
                mistakes.push_back({0, 0, key, "there is no file \"" + path + "\""});
            } else if (access(path.c_str(), R_OK) != 0) {
                mistakes.push_back({0, 0, key, "may not be read: \"" + path + "\""});
            }
        }
    }
    if (spec.trainable.program && !std::filesystem::is_directory(spec.trainable.program->directory)) {
        mistakes.push_back(
            {0, 0, "trainable.directory", "there is no directory \"" + spec.trainable.program->directory + "\""});
    }
    if (!mistakes.empty()) throw study::StudyFileError(file, std::move(mistakes));
}

} // namespace

StudyInput read_study(const std::string& file, const std::vector<std::string>& overrides) {
    const auto known = trainables::known_trainables();
    if (std::filesystem::is_directory(file)) {
        // The copy of the study file there may name its data by a path that was relative to another folder.
        const std::string text = drivers::resolved_file_of(storage::posix_file_system(), file);
        const std::string name = drivers::StudyDirectory{file}.resolved_file();
        StudyInput input{study::parse_study(text, name, overrides, known), text, file};
        check_files(input.spec, name, known);
        return input;
    }
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    if (!in || !(text << in.rdbuf())) {
        const bool toml_exists = std::filesystem::exists(file + ".toml");
        throw base::UsageError(
            "cannot read the study file '" + file + "'" +
            (toml_exists ? "; did you mean '" + file + ".toml'?" : "; `ranktune init NAME` writes one to start from"));
    }
    StudyInput input{study::parse_study(text.str(), file, overrides, known), text.str(), {}};
    check_files(input.spec, file, known);
    return input;
}

std::string directory_for(const RunArguments& arguments, const StudyInput& input) {
    std::string directory = arguments.directory.empty() ? input.directory : arguments.directory;
    while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
    return directory.empty() ? input.spec.name : directory;
}

} // namespace ranktune::cli
