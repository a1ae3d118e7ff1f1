// SPDX-License-Identifier: Apache-2.0
#include "data/column_sums.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ranktune::data {

namespace {

/// Shift and factor of a column. `squares`: sum of the squared deviations from the mean; of `none` and `unit` mean and
/// squares do not count.
std::pair<float, float> column_scale(Scaling scaling, double count, double mean, double squares, double largest) {
    if (scaling == Scaling::none) return {0.0F, 1.0F};
    if (scaling == Scaling::unit) return {0.0F, largest > 0.0 ? static_cast<float>(1.0 / largest) : 1.0F};
    const double deviation = std::sqrt(squares / count);
    const bool constant = deviation <= 1e-7 * std::max(largest, 1e-30);
    return {static_cast<float>(mean), constant ? 1.0F : static_cast<float>(1.0 / deviation)};
}

} // namespace

void rescale(const Scale& scale, std::span<float> rows) {
    const std::size_t width = scale.shift.size();
    for (std::size_t begin = 0; begin < rows.size(); begin += width)
        for (std::size_t i = 0; i < width; ++i) rows[begin + i] = (rows[begin + i] - scale.shift[i]) * scale.factor[i];
}

void ColumnSums::add(std::span<const float> rows) {
    if (rows.empty()) return;
    ColumnSums piece(width_);
    const std::size_t count = rows.size() / width_;
    const auto each = [&](auto&& use) {
        for (std::size_t row = 0; row < count; ++row)
            for (std::size_t column = 0; column < width_; ++column)
                use(column, static_cast<double>(rows[row * width_ + column]));
    };
    const std::span<double> mean = piece.part(0);
    const std::span<double> squares = piece.part(1);
    const std::span<double> largest = piece.part(2);
    piece.numbers_[0] = static_cast<double>(count);
    each([&](std::size_t column, double value) {
        mean[column] += value;
        largest[column] = std::max(largest[column], std::abs(value));
    });
    for (double& sum : mean) sum /= static_cast<double>(count);
    each([&](std::size_t column, double value) {
        const double difference = value - mean[column];
        squares[column] += difference * difference;
    });
    merge(piece);
}

void ColumnSums::merge(const ColumnSums& later) {
    const double before = numbers_[0];
    const double more = later.numbers_[0];
    if (more == 0.0) return;
    numbers_[0] = before + more;
    for (std::size_t column = 0; column < width_; ++column) {
        const double difference = later.part(0)[column] - part(0)[column];
        part(0)[column] += difference * (more / numbers_[0]);
        part(1)[column] += later.part(1)[column] + difference * difference * (before * more / numbers_[0]);
        part(2)[column] = std::max(part(2)[column], later.part(2)[column]);
    }
}

bool ColumnSums::finite() const {
    return std::ranges::all_of(part(0), [](double mean) { return std::isfinite(mean); });
}

Scale ColumnSums::scale(Scaling scaling) const {
    Scale result;
    for (std::size_t column = 0; column < width_; ++column) {
        const auto [shift, factor] =
            column_scale(scaling, numbers_[0], part(0)[column], part(1)[column], part(2)[column]);
        result.shift.push_back(shift);
        result.factor.push_back(factor);
    }
    return result;
}

double ColumnSums::deviation(std::span<const float> factor) const {
    double total = 0.0;
    for (std::size_t column = 0; column < width_; ++column) {
        const double scaled = static_cast<double>(factor[column]);
        total += part(1)[column] * scaled * scaled;
    }
    return total;
}

} // namespace ranktune::data
