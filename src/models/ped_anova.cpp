// SPDX-License-Identifier: Apache-2.0
#include "models/ped_anova.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ranktune::models {
namespace {

using Counts = std::span<const std::uint32_t>;

double total_of(Counts counts) {
    return static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
}

/// Distribution function of the standard normal distribution, upper or lower tail: no cancellation in either.
double normal_mass(double from, double to) {
    const auto lower = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
    return from > 0.0 ? lower(-from) - lower(-to) : lower(to) - lower(from);
}

/// Adds to `density` a normal kernel that is truncated to the cells, with the mass of each cell.
void add_kernel(std::vector<double>& density, double mean, double sd, double weight) {
    const auto edge = [&](double cell) { return (cell - mean) / sd; };
    const double all = normal_mass(edge(-0.5), edge(static_cast<double>(density.size()) - 0.5));
    for (std::size_t cell = 0; cell < density.size(); ++cell) {
        const auto at = static_cast<double>(cell);
        density[cell] += weight * normal_mass(edge(at - 0.5), edge(at + 0.5)) / all;
    }
}

/// The cell in which the trial of this number lies, in the order of the cells; the last one for a number beyond all.
double cell_of(Counts counts, std::uint64_t number, bool after) {
    std::uint64_t seen = 0;
    double last = 0.0;
    for (std::size_t cell = 0; cell < counts.size(); ++cell) {
        if (counts[cell] == 0) continue;
        seen += counts[cell];
        last = static_cast<double>(cell);
        if (after ? seen > number : seen >= number) break;
    }
    return last;
}

/// Bandwidth by Scott's rule from the weighted cells, as Optuna computes it.
double bandwidth_of(Counts counts, double total) {
    double mean = 0.0;
    for (std::size_t cell = 0; cell < counts.size(); ++cell) mean += static_cast<double>(cell) * counts[cell] / total;
    double square = 0.0;
    for (std::size_t cell = 0; cell < counts.size(); ++cell)
        square += std::pow(static_cast<double>(cell) - mean, 2.0) * counts[cell];
    const double sd = std::sqrt(square / std::max(1.0, total - 1.0));
    const auto whole = static_cast<std::uint64_t>(total);
    const double quartiles = cell_of(counts, whole * 3 / 4, true) - cell_of(counts, whole / 4, false);
    constexpr double least = 0.5 / 1.64; // 90 % of the kernel lie in its cell
    return std::max(least, 1.059 * std::min(quartiles / 1.34, sd) * std::pow(total, -0.2));
}

std::vector<double> density_of_numbers(Counts counts) {
    const double total = total_of(counts);
    const auto cells = static_cast<double>(counts.size());
    const double sd = bandwidth_of(counts, total);
    std::vector<double> density(counts.size(), 0.0);
    for (std::size_t cell = 0; cell < counts.size(); ++cell)
        if (counts[cell] > 0) add_kernel(density, static_cast<double>(cell), sd, counts[cell] / (total + 1.0));
    add_kernel(density, (cells - 1.0) / 2.0, cells, 1.0 / (total + 1.0)); // the prior
    return density;
}

/// One kernel for each category that occurs, and one prior: a category keeps most of its weight, the rest is shared.
std::vector<double> density_of_categories(Counts counts) {
    const double total = total_of(counts);
    const auto kinds = static_cast<double>(std::ranges::count_if(counts, [](std::uint32_t n) { return n > 0; }));
    const double share = 1.0 / (kinds + 1.0); // of the prior, in each kernel and for each category
    const double all = 1.0 + share * static_cast<double>(counts.size());
    std::vector<double> density(counts.size());
    for (std::size_t cell = 0; cell < counts.size(); ++cell) {
        const double own = (counts[cell] + share * total) / all;
        density[cell] = (own + 1.0 / static_cast<double>(counts.size())) / (total + 1.0);
    }
    return density;
}

} // namespace

double pearson_divergence(Counts top, Counts all, Scale scale) {
    if (total_of(top) == 0.0 || total_of(all) == 0.0) return 0.0;
    const auto density = [scale](Counts counts) {
        return scale == Scale::numbers ? density_of_numbers(counts) : density_of_categories(counts);
    };
    const std::vector<double> of_top = density(top);
    const std::vector<double> of_all = density(all);
    constexpr double least = 1e-12; // an empty cell divides nothing by zero
    double sum = 0.0;
    for (std::size_t cell = 0; cell < of_all.size(); ++cell) {
        const double base = of_all[cell] + least;
        sum += base * std::pow((of_top[cell] + least) / base - 1.0, 2.0);
    }
    return sum;
}

std::vector<bool> top_share(std::span<const double> losses, double quantile) {
    if (losses.empty()) return {};
    std::vector<double> sorted(losses.begin(), losses.end());
    const auto kept = static_cast<std::size_t>(std::ceil(quantile * static_cast<double>(losses.size())));
    const auto limit =
        sorted.begin() + static_cast<std::ptrdiff_t>(std::clamp<std::size_t>(kept, 1, sorted.size())) - 1;
    std::ranges::nth_element(sorted, limit);
    std::vector<bool> top;
    for (const double loss : losses) top.push_back(loss <= *limit);
    return top;
}

} // namespace ranktune::models
