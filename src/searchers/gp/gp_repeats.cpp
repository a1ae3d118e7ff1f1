// SPDX-License-Identifier: Apache-2.0
#include "searchers/gp/gp_repeats.hpp"

#include <algorithm>
#include <cmath>

namespace ranktune::searchers {

void GpRepeats::add(std::span<const double> point, std::uint64_t grid_point, double target) {
    ++results_;
    std::vector<double> key(point.begin(), point.end());
    std::ranges::replace_if(
        key, [](double x) { return std::isnan(x); }, -1.0);
    Group& group = groups_[{grid_point, std::move(key)}];
    const double before = target - group.mean;
    group.mean += before / static_cast<double>(++group.count);
    group.squares += before * (target - group.mean);
}

std::optional<double> GpRepeats::variance() const {
    double squares = 0.0;
    std::size_t freedom = 0;
    for (const auto& [point, group] : groups_) {
        squares += group.squares;
        freedom += group.count - 1;
    }
    if (freedom == 0) return std::nullopt;
    return squares / static_cast<double>(freedom);
}

bool are_noisy(const models::GpKernel& kernel, const GpRepeats& repeats) {
    constexpr double worth_a_repeat = 0.04;
    constexpr std::size_t least_results = 20;
    if (const auto variance = repeats.variance()) return *variance >= worth_a_repeat;
    return repeats.results() >= least_results && kernel.noise >= worth_a_repeat;
}

} // namespace ranktune::searchers
