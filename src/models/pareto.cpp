// SPDX-License-Identifier: Apache-2.0
#include "models/pareto.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace ranktune::models {
namespace {

/// Whether no value of `b` is larger.
bool covers(std::span<const double> a, std::span<const double> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), std::greater_equal<>());
}

/// Before any point that it beats.
bool sorts_before(const ParetoPoint& a, const ParetoPoint& b) {
    if (a.trouble != b.trouble) return a.trouble < b.trouble;
    if (a.trouble > 0.0) return false;
    return std::ranges::lexicographical_compare(b.values, a.values);
}

/// Adds the distances of one front in one objective. `front`: positions, sorted by that objective.
void add_distances(std::span<const ParetoPoint> points, const std::vector<std::size_t>& front, std::size_t objective,
                   std::vector<double>& distances) {
    const auto value = [&](std::size_t place) { return points[front[place]].values[objective]; };
    const double range = value(front.size() - 1) - value(0);
    distances[front.front()] = distances[front.back()] = std::numeric_limits<double>::infinity();
    if (!(range > 0.0)) return;
    for (std::size_t i = 1; i + 1 < front.size(); ++i) distances[front[i]] += (value(i + 1) - value(i - 1)) / range;
}

} // namespace

bool dominates(const ParetoPoint& a, const ParetoPoint& b) {
    if (a.trouble != b.trouble) return a.trouble < b.trouble;
    return !(a.trouble > 0.0) && covers(a.values, b.values) && !std::ranges::equal(a.values, b.values);
}

std::vector<std::uint32_t> nondominated_ranks(std::span<const ParetoPoint> points) {
    std::vector<std::size_t> order(points.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return sorts_before(points[a], points[b]); });
    std::vector<std::vector<std::size_t>> fronts;
    std::vector<std::uint32_t> ranks(points.size());
    for (const std::size_t position : order) {
        // A point that is beaten in a front is beaten in all fronts before it, too.
        const auto beaten_in = [&](const std::vector<std::size_t>& front) {
            return std::any_of(front.rbegin(), front.rend(),
                               [&](std::size_t other) { return dominates(points[other], points[position]); });
        };
        const auto front = std::partition_point(fronts.begin(), fronts.end(), beaten_in);
        ranks[position] = static_cast<std::uint32_t>(front - fronts.begin());
        if (front == fronts.end())
            fronts.push_back({position});
        else
            front->push_back(position);
    }
    return ranks;
}

std::vector<double> crowding_distances(std::span<const ParetoPoint> points, std::span<const std::uint32_t> ranks) {
    std::vector<double> distances(points.size(), 0.0);
    std::vector<std::vector<std::size_t>> fronts;
    for (std::size_t i = 0; i < points.size(); ++i) {
        if (points[i].trouble > 0.0) continue;
        if (ranks[i] >= fronts.size()) fronts.resize(ranks[i] + std::size_t{1});
        fronts[ranks[i]].push_back(i);
    }
    for (std::vector<std::size_t>& front : fronts) {
        if (front.empty()) continue;
        for (std::size_t k = 0; k < points[front.front()].values.size(); ++k) {
            std::ranges::sort(front, [&](std::size_t a, std::size_t b) {
                const double x = points[a].values[k];
                const double y = points[b].values[k];
                return x != y ? x < y : a < b;
            });
            add_distances(points, front, k, distances);
        }
    }
    return distances;
}

std::vector<std::size_t> pareto_order(std::span<const ParetoPoint> points) {
    const std::vector<std::uint32_t> ranks = nondominated_ranks(points);
    const std::vector<double> distances = crowding_distances(points, ranks);
    std::vector<std::size_t> order(points.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return ranks[a] != ranks[b] ? ranks[a] < ranks[b] : distances[a] > distances[b];
    });
    return order;
}

} // namespace ranktune::models
