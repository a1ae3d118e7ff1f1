// SPDX-License-Identifier: Apache-2.0
#pragma once
// How much results with several objectives cover: tests and benchmarks of searchers compare fronts by it.

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

namespace ranktune::test {
namespace hypervolume_detail {

using Point = std::vector<double>;

/// Whether no value of `b` is larger.
inline bool covers(const Point& a, const Point& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), std::greater_equal<>());
}

/// Those that no other one covers, each once. All lie above the reference.
inline std::vector<Point> uncovered(std::vector<Point> points) {
    std::sort(points.begin(), points.end(), std::greater<>());
    std::vector<Point> kept;
    for (Point& point : points) { // none is covered by a later one, unless they are equal
        const bool covered = std::ranges::any_of(kept, [&](const Point& other) { return covers(other, point); });
        if (!covered) kept.push_back(std::move(point));
    }
    return kept;
}

inline double box(const Point& point, std::span<const double> reference) {
    double volume = 1.0;
    for (std::size_t i = 0; i < point.size(); ++i) volume *= point[i] - reference[i];
    return volume;
}

/// `points`: uncovered, largest first value first, so that the second values ascend.
inline double area(const std::vector<Point>& points, std::span<const double> reference) {
    double sum = 0.0;
    double height = reference[1];
    for (const Point& point : points) {
        sum += (point[0] - reference[0]) * (point[1] - height);
        height = point[1];
    }
    return sum;
}

/// The volume of uncovered points: what each covers that no later one does. NOLINTNEXTLINE(misc-no-recursion)
inline double volume_of(const std::vector<Point>& points, std::span<const double> reference) {
    if (points.empty()) return 0.0;
    if (points.size() == 1) return box(points.front(), reference);
    if (reference.size() == 1) return points.front()[0] - reference[0];
    if (reference.size() == 2) return area(points, reference);
    double sum = 0.0;
    for (std::size_t i = 0; i < points.size(); ++i) {
        std::vector<Point> limited(points.begin() + static_cast<std::ptrdiff_t>(i) + 1, points.end());
        for (Point& other : limited)
            for (std::size_t k = 0; k < other.size(); ++k) other[k] = std::min(other[k], points[i][k]);
        sum += box(points[i], reference) - volume_of(uncovered(std::move(limited)), reference);
    }
    return sum;
}

} // namespace hypervolume_detail

/// The volume that the points cover above `reference`: of all places that are at least as large as `reference` and at
/// most as large as some point. Points that are not above it in every value count nothing. Exact: a sweep for two
/// objectives, "WFG" for more (While et al., "A fast way of calculating exact hypervolumes", IEEE TEVC 16, 2012), whose
/// cost grows exponentially with the number of objectives.
[[nodiscard]] inline double hypervolume(std::vector<std::vector<double>> points, std::span<const double> reference) {
    std::erase_if(points, [&](const hypervolume_detail::Point& point) {
        return !std::equal(point.begin(), point.end(), reference.begin(), reference.end(), std::greater<>());
    });
    return hypervolume_detail::volume_of(hypervolume_detail::uncovered(std::move(points)), reference);
}

} // namespace ranktune::test
