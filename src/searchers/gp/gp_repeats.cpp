// SPDX-License-Identifier: Apache-2.0
#include "searchers/gp/gp_repeats.hpp"

#include "searchers/coordinates/axes.hpp"

namespace ranktune::searchers {

void GpRepeats::add(std::span<const double> point, std::uint64_t grid_point, double target) {
    ++results_;
    Group& group = groups_[{grid_point, without_nan({point.begin(), point.end()})}];
    const double before = target - group.mean;
    group.mean += before / static_cast<double>(++group.count);
    group.squares += before * (target - group.mean);
}

GpRepeats::Scatter GpRepeats::scatter() const {
    Scatter all;
    for (const auto& [point, group] : groups_) {
        all.squares += group.squares;
        all.freedom += group.count - 1;
    }
    return all;
}

bool are_noisy(const models::GpKernel& kernel, const GpRepeats& repeats) {
    constexpr double worth_a_repeat = 0.04;
    constexpr double weight_of_kernel = 3.0;
    const GpRepeats::Scatter scatter = repeats.scatter();
    if (scatter.freedom > 0 && scatter.squares == 0.0) return false;
    if (repeats.results() < enough_for_noise) return false;
    const double variance =
        (scatter.squares + weight_of_kernel * kernel.noise) / (static_cast<double>(scatter.freedom) + weight_of_kernel);
    return variance >= worth_a_repeat;
}

} // namespace ranktune::searchers
