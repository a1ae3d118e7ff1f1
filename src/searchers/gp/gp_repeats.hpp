// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether results are noisy: what the kernel says of them, and the points that were tried more than once.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "models/gaussian_process.hpp"

namespace ranktune::searchers {

/// Results by point.
class GpRepeats {
  public:
    /// A point, of which coordinates may be absent (NaN), its values in grids (Observations::grid_point), and a target.
    void add(std::span<const double> point, std::uint64_t grid_point, double target);
    /// Within points, of all that have several results: the pooled sample variance. nullopt: none has.
    [[nodiscard]] std::optional<double> variance() const;
    /// How many were added.
    [[nodiscard]] std::size_t results() const { return results_; }

  private:
    struct Group {
        std::size_t count = 0;
        double mean = 0.0;
        double squares = 0.0; ///< of distances from the mean (Welford)
    };
    std::size_t results_ = 0;
    std::map<std::pair<std::uint64_t, std::vector<double>>, Group> groups_; ///< absent coordinates as -1
};

/// Whether the noise of targets of variance 1 is worth a repeat: its deviation is at least a fifth. Of points that were
/// tried more than once, their results say it; otherwise the kernel of twenty and more, which also calls noise what it
/// cannot follow.
[[nodiscard]] bool are_noisy(const models::GpKernel& kernel, const GpRepeats& repeats);

} // namespace ranktune::searchers
