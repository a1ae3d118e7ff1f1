// SPDX-License-Identifier: Apache-2.0
#include "drivers/supervise/overdue.hpp"

#include <algorithm>
#include <utility>

namespace ranktune::drivers {

Overdue::Overdue(base::Duration wait, std::optional<storage::LeaseHolder> before)
    : wait_(static_cast<std::uint32_t>((wait + storage::lease_period - base::Duration(1)) / storage::lease_period)),
      last_(std::move(before)) {}

bool Overdue::next(const std::optional<storage::LeaseHolder>& lease, bool ended) {
    if (wait_ == 0) return false;
    held_ = held_ || ended;
    if (lease) {
        gone_ = 0;
        const bool renewed = !last_ || *lease != *last_;
        held_ = held_ || renewed;
        still_ = renewed ? 0 : still_ + 1;
        last_ = lease;
    } else {
        ++gone_;
        still_ = 0;
    }
    // A reading may come just before a renewal: a lease is stale one reading later than its holder's clock says.
    const auto stale = std::max<std::uint32_t>(wait_, storage::lease_periods + 1);
    return held_ && (gone_ >= wait_ || still_ >= stale);
}

} // namespace ranktune::drivers
