// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the end of a program's process means for its attempt.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "process/child.hpp"
#include "process/program/messages.hpp"

namespace ranktune::worker {

/// What the program says itself, or how it ended. Requires that the process has ended. `said`: before its end.
[[nodiscard]] std::string failure_text(const process::Child& ended, const std::optional<process::ProgramFailed>& said);

/// That no space is left where a program works; nothing: there is some, or it cannot be told.
[[nodiscard]] std::optional<std::string> full_disk(const std::string& works_in);

/// The process has ended, and the attempt with it: throws what outcome_of knows. `refusal`: how storage has refused
/// what the program writes. `retry_on`: FailureSpec.
[[noreturn]] void throw_failure(const process::Child& ended, const std::optional<process::ProgramFailed>& said,
                                const std::string& text, const std::optional<std::string>& refusal,
                                const std::vector<std::uint32_t>& retry_on);

} // namespace ranktune::worker
