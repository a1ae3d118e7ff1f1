// SPDX-License-Identifier: Apache-2.0
#pragma once
// Results with several objectives: which beat which, and in which order they are chosen.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ranktune::models {

/// A result. Larger values are better; all points of a call have the same number of values.
struct ParetoPoint {
    std::span<const double> values; ///< not owned; read only where `trouble` is 0
    double trouble = 0.0;           ///< 0: valid; > 0: violates constraints by so much; infinity: no result
};

/// Whether `a` beats `b`: less trouble, or, where both have none, no value worse and one better (Deb et al., "A fast
/// and elitist multiobjective genetic algorithm: NSGA-II", IEEE TEVC 6, 2002, definition 1).
[[nodiscard]] bool dominates(const ParetoPoint& a, const ParetoPoint& b);

/// For each point the number of its front: 0 if nothing beats it, 1 if only points of front 0 do, and so on. Equal
/// points share a front. Sorts once, then finds the front of each point by bisection (Zhang et al., "ENS", IEEE TEVC
/// 19, 2015): O(n log n) comparisons for two objectives and few fronts, O(n^2) at worst.
///
///   -(1,5) -(2,3) -(4,1) -(3,4) -(5,2) -(4,4) -(6,6) -(2,3) -> 0 0 0 1 1 2 3 0
[[nodiscard]] std::vector<std::uint32_t> nondominated_ranks(std::span<const ParetoPoint> points);

/// How much room a point has in its front: the sum over the objectives of the distance between its neighbours, as a
/// share of the front's range; infinity for the first and the last of an objective (Deb et al. 2002, section III B). 0
/// for points with trouble.
[[nodiscard]] std::vector<double> crowding_distances(std::span<const ParetoPoint> points,
                                                     std::span<const std::uint32_t> ranks);

/// The positions of the points, best first: by front, then the larger crowding distance, then the order given.
[[nodiscard]] std::vector<std::size_t> pareto_order(std::span<const ParetoPoint> points);

} // namespace ranktune::models
