// SPDX-License-Identifier: Apache-2.0
#include "launch/same_study.hpp"

namespace ranktune::launch {

void SameStudy::begin(const DirectoryReading& now, bool anew) {
    existed_ = now.exists;
    anew_ = anew;
    had_journal_ = had_journal_ || now.has_journal;
    if (!now.uuid.empty()) uuid_ = now.uuid;
}

bool SameStudy::is_replaced(const DirectoryReading& now) {
    if (!now.exists) return false; // lost, or not begun
    // A head makes files in its directory before anything else, and its journal before the file `status`.
    if (!now.has_journal) return had_journal_ || now.has_status || (!existed_ && !now.has_entries);
    if (!now.uuid.empty() && !uuid_.empty() && now.uuid != uuid_ && !anew_) return true;
    had_journal_ = true;
    if (!now.uuid.empty()) uuid_ = now.uuid;
    return false;
}

} // namespace ranktune::launch
