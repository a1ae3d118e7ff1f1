// SPDX-License-Identifier: Apache-2.0
#pragma once
// The newest 1024 durations of syncs, and their percentiles.

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace ranktune::storage {

/// Durations in milliseconds.
class CommitTimes {
  public:
    void add(double ms) {
        times_[count_ % times_.size()] = ms;
        ++count_;
    }
    /// Nearest-rank percentile of the newest 1024, `share` in [0, 1]; 0 when there are none.
    [[nodiscard]] double percentile(double share) const {
        std::vector<double> sorted(times_.begin(), times_.begin() + static_cast<std::ptrdiff_t>(kept()));
        if (sorted.empty()) return 0.0;
        const auto rank = static_cast<std::size_t>(share * static_cast<double>(sorted.size()));
        const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(std::min(rank, sorted.size() - 1));
        std::nth_element(sorted.begin(), at, sorted.end());
        return *at;
    }

  private:
    [[nodiscard]] std::size_t kept() const { return std::min(count_, times_.size()); }

    std::array<double, 1024> times_{};
    std::size_t count_ = 0;
};

} // namespace ranktune::storage
