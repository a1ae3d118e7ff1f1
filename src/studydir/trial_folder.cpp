// SPDX-License-Identifier: Apache-2.0
#include "studydir/trial_folder.hpp"

#include <filesystem>
#include <system_error>

namespace ranktune::studydir {

std::string trial_folder(const std::string& study_directory, base::TrialId trial) {
    return trial_folders(study_directory) + "/" + std::to_string(trial.value());
}

std::string trial_folders(const std::string& study_directory) { return study_directory + "/trials"; }

std::string find_above(const std::string& folder, const std::string& name) {
    std::error_code error;
    for (std::filesystem::path at = folder;; at = at.parent_path()) {
        if (std::filesystem::is_regular_file(at / name, error)) return (at / name).lexically_normal().string();
        if (at == at.parent_path()) return {};
    }
}

} // namespace ranktune::studydir
