// SPDX-License-Identifier: Apache-2.0
#include "searchers/coordinates/small_space.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <variant>

namespace ranktune::searchers {

using space::Parameter;

bool SmallSpace::is_small(const space::SearchSpace& space) {
    std::uint64_t size = 1;
    for (const Parameter& parameter : space.parameters()) {
        const std::uint64_t values = space::cardinality(parameter.domain).value_or(most + 1);
        if (values > most || (size *= values) > most) return false;
    }
    return true;
}

SmallSpace::SmallSpace(const space::SearchSpace& space) : space_(space) {
    const std::vector<Parameter>& parameters = space_.parameters();
    const auto is_grid = [&](std::size_t i) { return std::holds_alternative<space::Grid>(parameters[i].domain); };
    order_.resize(parameters.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::stable_partition(order_, is_grid);
    std::uint32_t size = 1;
    for (const Parameter& parameter : parameters) {
        const auto count = static_cast<std::uint32_t>(space::cardinality(parameter.domain).value_or(1));
        counts_.push_back(count);
        size *= count;
        Places& places = places_.emplace_back();
        if (!space::has_coordinate(parameter.domain)) continue;
        for (std::uint32_t i = 0; i < count; ++i)
            places.emplace_back(space::encode(parameter.domain, space::value_at(parameter.domain, i)), i);
        std::ranges::sort(places);
    }
    next_.resize(size + std::size_t{1});
    std::iota(next_.begin(), next_.end(), 0U);
    take_copies();
}

std::vector<std::uint32_t> SmallSpace::positions(std::uint64_t number) const {
    std::vector<std::uint32_t> at(counts_.size());
    for (std::size_t k = order_.size(); k-- > 0;) {
        at[order_[k]] = static_cast<std::uint32_t>(number % counts_[order_[k]]);
        number /= counts_[order_[k]];
    }
    return at;
}

/// Takes what breaks a rule, and all numbers of equal configurations but one: its absent parameters have their first
/// value, and its lists the first of equal values.
void SmallSpace::take_copies() {
    std::vector<std::vector<bool>> again(counts_.size()); // whether a value equals an earlier one of its list
    bool copies = !space_.rules().empty();
    for (std::size_t i = 0; i < counts_.size(); ++i) {
        const Parameter& parameter = space_.parameters()[i];
        copies = copies || parameter.condition.has_value();
        again[i].resize(counts_[i]);
        std::vector<space::Value> earlier;
        const bool list = std::holds_alternative<space::Choice>(parameter.domain) ||
                          std::holds_alternative<space::Grid>(parameter.domain);
        for (std::uint32_t k = 0; list && k < counts_[i]; ++k) {
            const space::Value value = space::value_at(parameter.domain, k);
            again[i][k] = std::ranges::find(earlier, value) != earlier.end();
            copies = copies || again[i][k];
            if (!again[i][k]) earlier.push_back(value);
        }
    }
    for (std::uint64_t number = 0; copies && number < size(); ++number) {
        std::vector<std::uint32_t> left = positions(number);
        bool copy = false;
        const space::Configuration configuration = space_.assemble([&](std::size_t i) {
            const std::uint32_t position = std::exchange(left[i], 0);
            copy = copy || again[i][position];
            return space::value_at(space_.parameters()[i].domain, position);
        });
        // Positions that were not read belong to absent parameters.
        if (copy || std::ranges::any_of(left, [](std::uint32_t each) { return each != 0; }) ||
            space_.broken_by(configuration) != nullptr)
            take(number);
    }
}

std::uint64_t SmallSpace::number_of(std::span<const double> coordinates, std::uint64_t grid_point) const {
    std::vector<std::uint32_t> at(counts_.size(), 0);
    std::size_t next = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
        if (!space::has_coordinate(space_.parameters()[i].domain)) continue;
        const double coordinate = coordinates[next++];
        if (std::isnan(coordinate)) continue;
        const auto place = std::ranges::lower_bound(places_[i], coordinate, {}, &Places::value_type::first);
        at[i] = place == places_[i].end() ? places_[i].back().second : place->second;
    }
    std::uint64_t number = grid_point;
    for (const std::size_t i : order_)
        if (!std::holds_alternative<space::Grid>(space_.parameters()[i].domain)) number = number * counts_[i] + at[i];
    return number;
}

space::Configuration SmallSpace::at(std::uint64_t number) const {
    const std::vector<std::uint32_t> at = positions(number);
    return space_.assemble([&](std::size_t i) { return space::value_at(space_.parameters()[i].domain, at[i]); });
}

std::uint32_t SmallSpace::first_free_from(std::uint32_t number) {
    std::uint32_t free = number;
    while (next_[free] != free) free = next_[free];
    while (next_[number] != number) number = std::exchange(next_[number], free);
    return free;
}

std::optional<std::uint64_t> SmallSpace::first_free(std::uint64_t low, std::uint64_t begin, std::uint64_t end) {
    if (const auto free = first_free_from(static_cast<std::uint32_t>(begin)); free < end) return free;
    if (const auto free = first_free_from(static_cast<std::uint32_t>(low)); free < begin) return free;
    return std::nullopt;
}

} // namespace ranktune::searchers
