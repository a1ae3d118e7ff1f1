// SPDX-License-Identifier: Apache-2.0
#pragma once
// Results of earlier studies, which a new study learns from ([searcher] warm_start).

#include <optional>
#include <string>

#include "ranktune/study/algorithm.hpp"
#include "ranktune/study/record.hpp"
#include "ranktune/study/spec.hpp"
#include "storage/file_system.hpp"

namespace ranktune::studydir {

/// Reads all files that the study names; nullopt: it names none. Throws base::UsageError for a file that is missing, or
/// that means something else than this study; base::IoError.
[[nodiscard]] std::optional<study::WarmStarted> read_earlier_results(storage::FileSystem& files,
                                                                     const study::StudySpec& spec,
                                                                     const study::Algorithms& algorithms);

/// One line for each file: "38 trials of old.csv; left out: 2 (lr = 3.0 is no value of uniform(0.0, 1.0))".
[[nodiscard]] std::vector<std::string> earlier_lines(const study::WarmStarted& earlier);

} // namespace ranktune::studydir
