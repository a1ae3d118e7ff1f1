// SPDX-License-Identifier: Apache-2.0
#pragma once
// The study directory of a simulated study: what the views need, marked as simulated in its first record.

#include <string>

#include "simulate/driver.hpp"
#include "storage/file_system.hpp"

namespace ranktune::simulate {

struct DirectoryRequest {
    std::string directory;  ///< absolute
    std::string study_text; ///< of the study file
    std::string model_text; ///< of the model file; empty: the defaults
    std::string fault_text; ///< of the file with the failures; empty: none
    std::string version;    ///< of this program
    bool fresh = false;     ///< a study that is there is moved aside
};

/// Simulates the study and writes its directory: study.toml, resolved.toml, model.toml and faults.toml (if there
/// are such files), the journal and `outcome`. No checkpoints, logs and tables. The bytes are a function of `setup` and
/// `request`: time begins in 1970, and the journal names no writer. Keeps the journal in memory until the end, about 64
/// bytes per report. Throws base::UsageError when the directory holds something already, base::IoError.
[[nodiscard]] Figures simulate_to(storage::FileSystem& files, const Setup& setup, const DirectoryRequest& request,
                                  const Progressing& progress = {});

} // namespace ranktune::simulate
