// SPDX-License-Identifier: Apache-2.0
#pragma once
// What schedulers ask of a snapshot that they are restored from.

#include <stdexcept>
#include <string>

#include "ranktune/base/error.hpp"
#include "ranktune/schedulers/scheduler.hpp"

namespace ranktune::schedulers {

/// Throws base::FormatError, "the snapshot of scheduler <name> <what>", unless `holds`.
inline void require_format(bool holds, const char* name, const char* what) {
    if (holds) [[likely]]
        return;
    throw base::FormatError(std::string("the snapshot of scheduler ") + name + " " + what);
}

/// The same when what was restored does not hold together.
inline void require_invariants(const Scheduler& restored, const char* name) {
    try {
        restored.check_invariants();
    } catch (const std::logic_error& error) {
        throw base::FormatError(std::string("the snapshot of scheduler ") + name +
                                " does not fit together: " + error.what());
    }
}

} // namespace ranktune::schedulers
