// SPDX-License-Identifier: Apache-2.0
#include "cli/study_input.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "ranktune/study/parse.hpp"
#include "ranktune/trainables/trainable.hpp"

namespace ranktune::cli {

StudyInput read_study(const std::string& file, const std::vector<std::string>& overrides) {
    if (std::filesystem::is_directory(file)) {
        throw base::UsageError(
            "'" + file + "' is a directory; give a study file (resuming a directory comes with the next version)");
    }
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    if (!in || !(text << in.rdbuf())) {
        const bool toml_exists = std::filesystem::exists(file + ".toml");
        throw base::UsageError(
            "cannot read the study file '" + file + "'" +
            (toml_exists ? "; did you mean '" + file + ".toml'?" : "; `ranktune init NAME` writes one to start from"));
    }
    return {study::parse_study(text.str(), file, overrides, trainables::known_trainables()), text.str()};
}

} // namespace ranktune::cli
