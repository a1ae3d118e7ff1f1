// SPDX-License-Identifier: Apache-2.0
#include "cli/study_input.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <unistd.h>

#include "drivers/head/open_study.hpp"
#include "drivers/study_directory.hpp"
#include "ranktune/study/parse.hpp"
#include "ranktune/trainables/trainable.hpp"
#include "report/text.hpp"
#include "storage/content.hpp"

namespace ranktune::cli {
namespace {

/// What a study file names has to be there and readable here: a trial would only say so after the start.
study::PathChecks path_checks() {
    return {.file = [](const std::string& path) -> std::string {
                if (!std::filesystem::exists(path)) return "there is no file \"" + path + "\"";
                return access(path.c_str(), R_OK) == 0 ? "" : "may not be read: \"" + path + "\"";
            },
            .directory = [](const std::string& path) -> std::string {
                return std::filesystem::is_directory(path) ? "" : "there is no directory \"" + path + "\"";
            },
            .content =
                [](const std::string& path) {
                    return std::filesystem::is_regular_file(path)
                               ? storage::content_text(storage::posix_file_system(), path)
                               : std::string();
                }};
}

} // namespace

StudyInput read_study(const std::string& file, const std::vector<std::string>& overrides) {
    const auto known = trainables::known_trainables();
    if (std::filesystem::is_directory(file)) {
        // The copy of the study file there may name its data by a path that was relative to another folder.
        const std::string text = drivers::resolved_file_of(storage::posix_file_system(), file);
        const std::string name = drivers::StudyDirectory{file}.resolved_file();
        return {study::parse_study(text, name, overrides, known, path_checks()), text, file};
    }
    std::ifstream in(file, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    if (!in.is_open() || in.bad()) {
        const bool toml_exists = std::filesystem::exists(file + ".toml");
        throw base::UsageError(
            "cannot read the study file '" + file + "'" +
            (toml_exists ? "; did you mean '" + file + ".toml'?" : "; `ranktune init NAME` writes one to start from"));
    }
    return {study::parse_study(text, file, overrides, known, path_checks()), text, {}};
}

void refuse_too_few_ranks(const study::StudySpec& spec, std::uint32_t workers, const std::string& remedy) {
    const std::uint32_t most = spec.max_ranks_per_trial();
    if (workers >= most) return;
    throw base::UsageError("a trial may ask for " + std::to_string(most) + " ranks, which is more than the " +
                           report::counted(workers, "worker") + " here (one rank more is the head); " + remedy);
}

std::string absolute_directory(const std::string& directory) {
    const std::filesystem::path path = std::filesystem::absolute(directory).lexically_normal();
    return (path.has_filename() ? path : path.parent_path()).string();
}

std::string directory_for(const RunArguments& arguments, const StudyInput& input) {
    std::string directory = arguments.directory.empty() ? input.directory : arguments.directory;
    while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
    return directory.empty() ? input.spec.name : directory;
}

} // namespace ranktune::cli
