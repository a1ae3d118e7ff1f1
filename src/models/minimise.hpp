// SPDX-License-Identifier: Apache-2.0
#pragma once
// Minimising a smooth function in a box.

#include <functional>
#include <span>
#include <vector>

namespace ranktune::models {

/// The value at a point, and its gradient, which is written; both of the point's size. Must not throw.
using Differentiable = std::function<double(std::span<const double> point, std::span<double> gradient)>;

struct Minimum {
    std::vector<double> point;
    double value = 0.0;
};

/// From `start`, which lies in the box [low, high], by L-BFGS (Nocedal and Liu; the program is Luksan's, of NLopt): the
/// best point that was evaluated, after at most `evaluations` of them. Values that are not finite are avoided. Uses no
/// random numbers. With `relative` > 0 it ends when a step improves the value by less than this part.
[[nodiscard]] Minimum minimise(const Differentiable& f, std::vector<double> start, std::span<const double> low,
                               std::span<const double> high, int evaluations, double relative);

} // namespace ranktune::models
