// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sweeps: which studies --sweep asks for, and the quartiles of what came out.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "simulate/driver.hpp"

namespace ranktune::simulate {

/// One --sweep: a key of the study file and the values to try.
struct Axis {
    std::string key;
    std::vector<std::string> values; ///< as on the command line
};
/// From `key=a,b,c`. Commas inside brackets, braces and quotes belong to a value. Throws base::UsageError.
[[nodiscard]] Axis parse_axis(const std::string& text);

/// Every combination of one value per axis; the last axis changes fastest. Without axes: one empty combination.
[[nodiscard]] std::vector<std::vector<std::string>> combinations(std::span<const Axis> axes);

/// The quartiles of a sample, with linear interpolation between its values (R's type 7).
struct Quartiles {
    double low = 0.0;
    double median = 0.0;
    double high = 0.0;
};
/// Infinity stands for "never". NaN values are left out; NaN when there is no other.
[[nodiscard]] Quartiles quartiles(std::vector<double> values);

/// One line of the table: a combination, over all seeds.
struct SweepRow {
    std::vector<std::string> values; ///< one per axis
    Quartiles best;                  ///< Figures::best
    Quartiles near_best_s;           ///< Figures::near_best_s; infinite: never
    Quartiles core_hours;
    Quartiles utilisation;
    Quartiles repeated; ///< share of the training that was lost and done again
    Quartiles jobs;
    Quartiles beyond;   ///< Extrapolation::beyond; NaN: curves are not measured
    Quartiles distance; ///< Distances::median; NaN: there is none
    std::uint32_t seeds = 0;
    std::uint32_t reached = 0; ///< seeds with a near_best_s
};
[[nodiscard]] SweepRow summarise(std::vector<std::string> values, std::span<const Figures> seeds);

} // namespace ranktune::simulate
