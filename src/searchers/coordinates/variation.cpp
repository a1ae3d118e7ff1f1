// SPDX-License-Identifier: Apache-2.0
#include "searchers/coordinates/variation.hpp"

#include <algorithm>
#include <cmath>

namespace ranktune::searchers {
namespace {

/// Folds the line onto [0, 1): beyond an end the way leads back.
double reflected(double x) {
    x = std::fmod(std::abs(x), 2.0);
    return std::min(x < 1.0 ? x : 2.0 - x, below_one);
}

} // namespace

double snapped(const Axis& axis, double unit) {
    return axis.values == 0 ? unit : space::encode(axis.parameter->domain, space::decode(axis.parameter->domain, unit));
}

double moved(const Axis& axis, double unit, double step, base::RngStream& random) {
    if (axis.category) {
        const std::uint64_t other = random.below(axis.values - 1);
        const double count = static_cast<double>(axis.values);
        const auto own = static_cast<std::uint64_t>(std::min(std::floor(unit * count), count - 1.0));
        return middle(axis, other < own ? other : other + 1);
    }
    const double before = snapped(axis, unit);
    double change = step * random.normal();
    // A value can fill most of the range, and beyond an end the way leads back to the same value.
    for (int doubling = 0; doubling < 40; ++doubling, change *= 2.0) {
        const double after = reflected(before + change);
        if (snapped(axis, after) != before) return after;
    }
    return random.uniform();
}

double crossed(double a, double b, double index, base::RngStream& random) {
    const double low = std::min(a, b);
    const double high = std::max(a, b);
    const double draw = random.uniform();
    const bool lower = random.uniform() < 0.5;
    const double distance = high - low;
    if (!(distance > 1e-14)) return a;
    const double room = lower ? low : 1.0 - high; // between the child's parent and the end of the range
    const double alpha = 2.0 - std::pow(1.0 + 2.0 * room / distance, -(index + 1.0));
    const double power = 1.0 / (index + 1.0);
    const double spread =
        draw * alpha <= 1.0 ? std::pow(draw * alpha, power) : std::pow(1.0 / (2.0 - draw * alpha), power);
    const double middle_of_both = 0.5 * (low + high);
    const double child = middle_of_both + (lower ? -0.5 : 0.5) * spread * distance;
    return std::clamp(child, 0.0, below_one);
}

double mutated(double x, double index, base::RngStream& random) {
    const double draw = random.uniform();
    const double power = 1.0 / (index + 1.0);
    const bool down = draw < 0.5;
    const double room = std::pow(down ? 1.0 - x : x, index + 1.0);
    const double change = down ? std::pow(2.0 * draw + (1.0 - 2.0 * draw) * room, power) - 1.0
                               : 1.0 - std::pow(2.0 * (1.0 - draw) + 2.0 * (draw - 0.5) * room, power);
    return std::clamp(x + change, 0.0, below_one);
}

} // namespace ranktune::searchers
