// SPDX-License-Identifier: Apache-2.0
#pragma once
// Error messages in the one form that all verbs use.

#include <string>
#include <string_view>

#include "ranktune/base/error.hpp"

namespace ranktune::cli {

/// `ranktune: <what>\n` with ` (exit N)` at the end of the first line.
[[nodiscard]] std::string error_message(std::string_view what, int exit_code);

/// Says what is wrong with a study's directory before anything began; returns the exit code: 75 for what may pass, such
/// as permissions or a full disk.
int tell_trouble(const base::IoError& error);

/// What `begin` returns, or what `tell_trouble` does: for every verb that is about to begin a study or to go on with
/// one.
template <class Begin>
int or_trouble(const Begin& begin) {
    try {
        return begin();
    } catch (const base::IoError& error) {
        return tell_trouble(error);
    }
}

} // namespace ranktune::cli
