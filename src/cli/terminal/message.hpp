// SPDX-License-Identifier: Apache-2.0
#pragma once
// Error messages, in one form for all verbs.

#include <string>
#include <string_view>

#include "ranktune/base/error.hpp"

namespace ranktune::cli {

/// `ranktune: <what>\n` with ` (exit N)` at the end of the first line.
[[nodiscard]] std::string error_message(std::string_view what, int exit_code);

/// Prints what is wrong with a study's directory before a run has begun, and returns the exit code: 75 for what may
/// pass, such as permissions or a full disk.
int tell_trouble(const base::IoError& error);

/// Calls `begin`, which starts or resumes a study; returns its exit code, or that of `tell_trouble` after an IoError.
template <class Begin>
int or_trouble(const Begin& begin) {
    try {
        return begin();
    } catch (const base::IoError& error) {
        return tell_trouble(error);
    }
}

} // namespace ranktune::cli
