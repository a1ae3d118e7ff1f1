// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether results are noisy: what the kernel says of them, and the points that were tried more than once.

#include <cstddef>
#include <cstdint>
#include <map>
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
    /// Squares of the distances from the mean of their point, of all targets, and of how many of them (less one for
    /// each point) they are.
    struct Scatter {
        double squares = 0.0;
        std::size_t freedom = 0;
    };
    [[nodiscard]] Scatter scatter() const;
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

/// So many results are enough for a word on noise.
inline constexpr std::size_t enough_for_noise = 20;

/// Whether the noise of targets of variance 1 is worth a repeat: its deviation is at least a fifth. Points that were
/// tried more than once say it, together with the kernel of enough results, which counts as three of them: it also
/// calls noise what it cannot follow. Where all that came again was the same, there is none.
[[nodiscard]] bool are_noisy(const models::GpKernel& kernel, const GpRepeats& repeats);

} // namespace ranktune::searchers
