// SPDX-License-Identifier: Apache-2.0
#include "launch/overdue.hpp"

#include <algorithm>
#include <utility>

namespace ranktune::launch {

namespace {

/// Number of readings in `time`, rounded up.
std::uint32_t readings_in(base::Duration time) {
    return static_cast<std::uint32_t>((time + storage::lease_period - base::Duration(1)) / storage::lease_period);
}

} // namespace

Overdue::Overdue(base::Duration wait, std::optional<storage::LeaseHolder> before, base::Duration start,
                 base::Duration after_end)
    : wait_(readings_in(wait)),
      start_(readings_in(start)),
      after_end_(after_end > base::Duration{} ? readings_in(after_end) : wait_),
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
    const bool renewed = now.lease != last_ || now.head_lives;
    held_ = held_ || renewed;
    still_ = renewed ? 0 : still_ + 1;
    last_ = now.lease;
}

bool Overdue::next(const StepReading& now) {
    if (wait_ == 0) return false;
    look_at_lease(now);
    had_children_ = had_children_ || now.children.value_or(false);
    childless_ = now.children.value_or(true) ? 0 : childless_ + 1;
    // A reading may come just before a renewal, so allow one more reading than lease_periods.
    const auto stale = std::max<std::uint32_t>(wait_, storage::lease_periods + 1);
    return (held_ && (gone_ >= (now.ended ? after_end_ : wait_) || still_ >= stale)) ||
           (had_children_ && childless_ >= wait_) || (start_ > 0 && !had_children_ && childless_ >= start_);
}

} // namespace ranktune::launch
