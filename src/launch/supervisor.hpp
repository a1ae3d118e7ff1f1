// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs the step of a study as a child, and restarts it when it was lost.

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "launch/launch_line.hpp"

namespace ranktune::launch {

struct SuperviseOptions {
    std::uint32_t max_restarts = 20;
    std::chrono::seconds launcher_wait{90}; ///< for a launcher without living ranks; 0: for ever
    std::function<void(const std::string& sentence)> say;
};

struct SuperviseEnd {
    int code = 0;
    std::string words; ///< why; empty: already said
};

/// Returns when the study has ended or another start would not help. `directory`: of the study, absolute. The caller
/// has blocked the stop signals. Throws base::IoError.
[[nodiscard]] SuperviseEnd supervise(LaunchLine line, std::string directory, const SuperviseOptions& options);

} // namespace ranktune::launch
