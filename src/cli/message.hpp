// SPDX-License-Identifier: Apache-2.0
#pragma once
// Error messages in the one form that all verbs use.

#include <string>
#include <string_view>

namespace ranktune::cli {

/// `ranktune: <what>\n` with ` (exit N)` at the end of the first line.
[[nodiscard]] std::string error_message(std::string_view what, int exit_code);

} // namespace ranktune::cli
