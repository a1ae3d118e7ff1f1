// SPDX-License-Identifier: Apache-2.0
#pragma once
// Adaptive Parzen estimators over numbers and categories: the densities of the tree-structured Parzen estimator.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "models/log_sum.hpp"
#include "ranktune/base/rng.hpp"

namespace ranktune::models {

/// How a coordinate is modelled. Coordinates lie in [0, 1); NaN: the point lacks it.
struct ParzenColumn {
    /// Greater than 0: an unordered category; value k of c has the coordinate (k + 0.5) / c.
    std::uint32_t levels = 0;
    /// A number with few values: the borders of their cells, ascending from 0 to 1. Empty: a continuous number.
    std::vector<double> borders = {};
    /// The coordinate that stands for each cell.
    std::vector<double> middles = {};
};

/// A mixture of one product kernel for each point, and one for the prior (Bergstra, Bardenet, Bengio and Kegl,
/// "Algorithms for hyper-parameter optimization", NeurIPS 2011), with the rules of Optuna, but for `narrowing`:
///
/// - A number has a normal kernel, truncated to [0, 1]. Its standard deviation is the larger distance to the two
///   neighbours in this coordinate (of the outermost points: the distance to the only one; of a single point: the
///   larger one to 0 and 1), but at least 1 / min(100, 1 + narrowing x kernels) and at most 1. (In Optuna `narrowing`
///   is 1.) A number with few values has the probability of its cell, and `narrowing` 1.
/// - A category has the probability proportional to 1 + p for its own value and p for each other one, with
///   p = `prior_weight` / kernels.
/// - The prior is normal with mean 0.5 and standard deviation 1, and uniform in categories. A kernel has the prior in
///   coordinates that its point lacks; a coordinate that is not asked for is left out.
/// - Of n points, the newest 25 have weight 1. Weights of older ones fall linearly to 1 / n for the oldest. The prior
///   has `prior_weight`; without points it stands alone.
///
/// Points have keys, in the order of their age. A function of the points and their keys, whatever the order in which
/// they came. Costs: insert and erase O(points) with a small factor, settle O(changed x log points) + O(points),
/// densities O(points x columns).
class ParzenEstimator {
  public:
    /// `columns` outlives the estimator; at least one. `prior_weight` >= 0, `narrowing` > 0.
    ParzenEstimator(std::span<const ParzenColumn> columns, double prior_weight, double narrowing);

    /// Requires a new key, and a coordinate for each column.
    void insert(std::uint64_t key, std::span<const double> point);
    /// Requires a key that is there.
    void erase(std::uint64_t key);
    [[nodiscard]] std::size_t size() const { return keys_.size(); }
    /// To be called after changes, before the questions below.
    void settle();

    /// A random point. Coordinates of numbers with few values are the middle of a cell.
    [[nodiscard]] std::vector<double> draw(base::RngStream& random) const;
    /// Natural logarithms of the density at points of columns.size() coordinates each, one after the other: of
    /// continuous coordinates the density, of others the probability. `result`: one number for each point.
    void log_density(std::span<const double> points, std::span<double> result) const;

    // ---- for tests
    /// Standard deviation of the kernel of a key in a column of numbers. Requires settle().
    [[nodiscard]] double width(std::uint64_t key, std::size_t column) const;
    /// Weight of the kernel of a key, before they are divided by their sum.
    [[nodiscard]] double weight(std::uint64_t key) const;

  private:
    struct Mass { ///< of a normal kernel in each cell
        std::uint32_t id = 0;
        std::uint32_t used = 0;
    };
    /// One coordinate of all kernels, in the order of their keys.
    struct Column {
        const ParzenColumn* kind = nullptr;
        // Numbers: the points that have this coordinate, ascending; then kernels.
        std::vector<std::pair<double, std::uint64_t>> sorted;
        std::vector<std::uint64_t> changed; ///< keys whose neighbours have changed
        double least = 0.0;                 ///< smallest standard deviation at the last settle()
        std::vector<double> mean;           ///< NaN in `point` becomes the prior
        std::vector<double> width;
        std::vector<double> inverse; ///< 1 / (sqrt(2) width)
        std::vector<double> scale;   ///< logarithm of the factor before the exponential
        // Categories and numbers with few values: rows of logarithms of probabilities.
        std::vector<std::uint32_t> row;                 ///< of each kernel
        std::map<std::pair<double, double>, Mass> rows; ///< by mean and width
        std::vector<std::uint32_t> free_rows;
        std::vector<double> log_mass; ///< row after row
        // Categories.
        double same = 0.0;
        double other = 0.0;

        [[nodiscard]] bool is_category() const { return kind->levels > 0; }
        [[nodiscard]] bool has_cells() const { return !kind->borders.empty(); }
        [[nodiscard]] bool is_continuous() const { return !is_category() && !has_cells(); }
        [[nodiscard]] std::size_t cells() const { return kind->middles.size(); }
    };

    [[nodiscard]] std::size_t index(std::uint64_t key) const;
    [[nodiscard]] bool has_prior() const { return prior_weight_ > 0.0 || keys_.empty(); }
    [[nodiscard]] double prior_weight() const { return keys_.empty() ? 1.0 : prior_weight_; }
    void settle(Column& column);
    void set_width(Column& column, std::size_t kernel, double width);
    [[nodiscard]] double width_at(const Column& column, std::size_t position) const;
    [[nodiscard]] std::uint32_t take_row(Column& column, double mean, double width);
    void drop_row(Column& column, double mean, double width);
    [[nodiscard]] double draw(const Column& column, std::size_t kernel, base::RngStream& random) const;
    struct Question; ///< a point, prepared for all kernels
    void add_block(const Question& question, std::size_t begin, std::size_t size, std::span<const double> factors,
                   LogSum& sum) const;
    [[nodiscard]] Question question(std::span<const double> point) const;
    [[nodiscard]] double log_prior(const Question& question) const;

    double prior_weight_;
    double narrowing_;
    std::vector<Column> columns_;
    std::vector<std::uint64_t> keys_; ///< ascending
    std::vector<double> weights_;
    double total_ = 1.0; ///< of the weights, with the prior
};

/// Weight of point `rank` (0: the oldest) of `size`.
[[nodiscard]] double parzen_weight(std::size_t rank, std::size_t size);

/// Probability that a normal variable with this mean and standard deviation lies between two numbers. Accurate in the
/// tails.
[[nodiscard]] double normal_mass(double from, double to, double mean, double sd);

} // namespace ranktune::models
