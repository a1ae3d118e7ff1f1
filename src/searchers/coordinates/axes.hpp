// SPDX-License-Identifier: Apache-2.0
#pragma once
// What searchers need to know of the coordinates of a space.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <variant>
#include <vector>

#include "ranktune/space/search_space.hpp"

namespace ranktune::searchers {

/// A list of at most so many values is short: all of them can be tried.
inline constexpr std::uint64_t short_list = 16;

/// One coordinate of SearchSpace::encode.
struct Axis {
    const space::Parameter* parameter = nullptr;
    std::uint64_t values = 0; ///< of a finite domain; 0: continuous
    bool category = false;    ///< a list of two and more values without an order
};

/// One for each coordinate. Points into `space`.
[[nodiscard]] inline std::vector<Axis> axes_of(const space::SearchSpace& space) {
    std::vector<Axis> axes;
    for (const space::Parameter& parameter : space.parameters()) {
        if (!space::has_coordinate(parameter.domain)) continue;
        Axis axis{&parameter, space::cardinality(parameter.domain).value_or(0), false};
        const auto* range = std::get_if<space::FloatRange>(&parameter.domain);
        if (range != nullptr && range->lower == range->upper) axis.values = 1;
        const auto* choice = std::get_if<space::Choice>(&parameter.domain);
        axis.category = choice != nullptr && !choice->ordered && axis.values > 1;
        axes.push_back(axis);
    }
    return axes;
}

/// Those of SearchSpace::encode; parameters that the configuration lacks get NaN.
[[nodiscard]] inline std::vector<double> coordinates_of(const space::SearchSpace& space,
                                                        const space::Configuration& configuration) {
    std::vector<double> unit = space.encode(configuration);
    std::size_t i = 0;
    for (const auto& parameter : space.parameters()) {
        if (!space::has_coordinate(parameter.domain)) continue;
        if (configuration.find(parameter.name) == nullptr) unit[i] = std::numeric_limits<double>::quiet_NaN();
        ++i;
    }
    return unit;
}

/// With -1 for absent parameters: NaN is not equal to itself.
[[nodiscard]] inline std::vector<double> without_nan(std::vector<double> coordinates) {
    std::ranges::replace_if(
        coordinates, [](double x) { return std::isnan(x); }, -1.0);
    return coordinates;
}

/// The configuration at `unit`, where NaN stands for absent parameters. `number` as of SearchSpace::decode.
[[nodiscard]] inline space::Configuration configuration_at(const space::SearchSpace& space, std::vector<double> unit,
                                                           std::uint64_t number) {
    std::ranges::replace_if(
        unit, [](double x) { return std::isnan(x); }, 0.5);
    return space.decode(unit, number);
}

/// The coordinate of value `index` of a finite axis: the middle of the interval that decodes to it.
[[nodiscard]] inline double middle(const Axis& axis, std::uint64_t index) {
    return space::encode(axis.parameter->domain, space::value_at(axis.parameter->domain, index));
}

/// The largest coordinate. Coordinates lie in [0, 1).
inline constexpr double below_one = 1.0 - std::numeric_limits<double>::epsilon() / 2.0;

} // namespace ranktune::searchers
