// SPDX-License-Identifier: Apache-2.0
#pragma once
// Explore: the configuration of a trial that has taken over the state of another one.

#include <vector>

#include "ranktune/base/rng.hpp"
#include "ranktune/space/configuration.hpp"
#include "ranktune/space/search_space.hpp"
#include "ranktune/study/algorithm.hpp"

namespace ranktune::schedulers {

/// Another value of the domain. Never leaves it. With factors (Jaderberg et al. 2017, section 4.1): floats are
/// multiplied by one of them and clipped to the bounds; values with a quantum and integers are rounded, and move by one
/// step at least; an ordered choice goes to the neighbour on the side of the factor. What a factor cannot move (zero,
/// or an entry that has no order) and everything without factors is drawn from the domain.
///
///   randint(1, 100), factor 1.2:  10 -> 12, 2 -> 3, 99 -> 99        uniform(0, 1):  0.9 -> 1 (just below)
[[nodiscard]] space::Value explored(const space::Domain& domain, const space::Value& value,
                                    const std::vector<double>& factors, base::RngStream& random);

/// `donor`'s configuration, in which those of `rules` have changed: each by its factors, or with probability
/// `resample` drawn anew. Parameters whose condition comes true are drawn, others that lose theirs are absent. The
/// value of `kept` (may be empty) is that of `own`.
[[nodiscard]] space::Configuration explored(const space::SearchSpace& space, const space::Configuration& donor,
                                            const std::vector<study::Explored>& rules, double resample,
                                            const std::string& kept, const space::Configuration& own,
                                            base::RngStream& random);

} // namespace ranktune::schedulers
