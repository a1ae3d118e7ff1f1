// SPDX-License-Identifier: Apache-2.0
#include "drivers/supervise/overdue.hpp"

#include <algorithm>
#include <utility>

namespace ranktune::drivers {

Overdue::Overdue(base::Duration wait, std::optional<storage::LeaseHolder> before)
    : wait_(static_cast<std::uint32_t>((wait + storage::lease_period - base::Duration(1)) / storage::lease_period)),
      last_(std::move(before)) {}

void Overdue::look_at_lease(const StepReading& now) {
    if (!now.known) {
        gone_ = still_ = 0;
        return;
    }
    held_ = held_ || now.ended;
    if (!now.lease) {
        ++gone_;
        still_ = 0;
        return;
    }
    gone_ = 0;
    const bool renewed = now.lease != last_;
    held_ = held_ || renewed;
    still_ = renewed ? 0 : still_ + 1;
    last_ = now.lease;
}

bool Overdue::next(const StepReading& now) {
    if (wait_ == 0) return false;
    look_at_lease(now);
    had_children_ = had_children_ || now.children.value_or(false);
    childless_ = now.children.value_or(true) ? 0 : childless_ + 1;
    // A reading may come just before a renewal: a lease is stale one reading later than its holder's clock says.
    const auto stale = std::max<std::uint32_t>(wait_, storage::lease_periods + 1);
    return (held_ && (gone_ >= wait_ || still_ >= stale)) || (had_children_ && childless_ >= wait_);
}

} // namespace ranktune::drivers
