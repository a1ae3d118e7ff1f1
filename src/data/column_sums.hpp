// SPDX-License-Identifier: Apache-2.0
#pragma once
// ColumnSums: what a Scale is made of, collected piece by piece, so that the samples need not fit into memory.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ranktune/data/dataset.hpp"

namespace ranktune::data {

/// Rows of as many columns as the scale has, in place.
void rescale(const Scale& scale, std::span<float> rows);

/// Mean, squared deviations and largest magnitude of columns. Pieces are merged with the pairwise update of Chan, Golub
/// and LeVeque (1979), "Updating formulae and a pairwise algorithm for computing sample variances": the result depends
/// on the pieces and their order, so callers cut the same pieces on any number of ranks.
class ColumnSums {
  public:
    explicit ColumnSums(std::size_t width) : width_(width), numbers_(1 + 3 * width, 0.0) {}
    /// The next rows, [n, width]. A NaN or an infinity among them makes a mean that is not finite.
    void add(std::span<const float> rows);
    /// What follows the own rows.
    void merge(const ColumnSums& later);

    [[nodiscard]] bool finite() const;
    /// A column whose deviation is a rounding error never varied: factor 1.
    [[nodiscard]] Scale scale(Scaling scaling) const;
    /// Sum over the columns of the squared deviations, each multiplied by the square of its factor.
    [[nodiscard]] double deviation(std::span<const float> factor) const;
    /// [1 + 3 * width]: count, means, squares, magnitudes. All zero: no rows. The sum of the numbers of several ranks
    /// of which one has rows is that rank's, bit by bit.
    [[nodiscard]] std::span<double> numbers() { return numbers_; }

  private:
    [[nodiscard]] std::span<double> part(std::size_t i) { return std::span(numbers_).subspan(1 + i * width_, width_); }
    [[nodiscard]] std::span<const double> part(std::size_t i) const {
        return std::span(numbers_).subspan(1 + i * width_, width_);
    }
    std::size_t width_;
    std::vector<double> numbers_;
};

} // namespace ranktune::data
