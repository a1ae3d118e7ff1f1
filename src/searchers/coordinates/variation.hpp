// SPDX-License-Identifier: Apache-2.0
#pragma once
// How evolution changes the coordinates of a configuration.

#include "ranktune/base/rng.hpp"
#include "searchers/coordinates/axes.hpp"

namespace ranktune::searchers {

/// The coordinate that stands for everything that decodes to the same value.
[[nodiscard]] double snapped(const Axis& axis, double unit);

/// A coordinate of another value. A category gets another of its values; a number moves by a normal step of standard
/// deviation `step`, reflected at the ends and doubled until the value differs. Requires an axis of several values.
[[nodiscard]] double moved(const Axis& axis, double unit, double step, base::RngStream& random);

/// Simulated binary crossover of two numbers in [0, 1] (Deb and Agrawal, Complex Systems 9, 1995, in the form with
/// bounds of Deb's NSGA-II program): one of the two children, as likely either. The larger `index`, the nearer it lies
/// to a parent.
[[nodiscard]] double crossed(double a, double b, double index, base::RngStream& random);

/// Polynomial mutation of a number in [0, 1) (Deb and Goyal, Computer Science and Informatics 26, 1996, with bounds as
/// in Deb's program). The larger `index`, the smaller the step: about 1 / (index + 1) on average.
[[nodiscard]] double mutated(double x, double index, base::RngStream& random);

} // namespace ranktune::searchers
