// SPDX-License-Identifier: Apache-2.0
#pragma once
// The rungs of several brackets as one list, for the live table.

#include <algorithm>
#include <vector>

#include "ranktune/schedulers/scheduler.hpp"

namespace ranktune::schedulers {

/// Adds a rung of another bracket to those of the first: to the one at the same iteration, or in its place.
inline void merge(std::vector<Scheduler::RungView>& views, const Scheduler::RungView& rung) {
    const auto at = std::ranges::lower_bound(views, rung.iteration, {}, &Scheduler::RungView::iteration);
    if (at == views.end() || at->iteration != rung.iteration) {
        views.insert(at, rung);
        return;
    }
    at->entries += rung.entries;
    at->promoted += rung.promoted;
}

} // namespace ranktune::schedulers
