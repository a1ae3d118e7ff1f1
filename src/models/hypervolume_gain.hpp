// SPDX-License-Identifier: Apache-2.0
#pragma once
// By how much a result is expected to increase the volume that a front covers; of one objective, its best value.

#include <cstddef>
#include <span>
#include <vector>

namespace ranktune::models {

/// The logarithm of the expected increase of the volume between `reference` and a front, for a result whose objectives
/// are independent normal variables; larger is better in each. Exact: the space above the reference that no point of
/// the front covers is cut into boxes, and the expected volume in a box is a product of differences of one-dimensional
/// expected improvements (Emmerich, Giannakoglou and Naujoks, IEEE TEVC 10, 2006; in logarithms as Ament et al.,
/// NeurIPS 2023). With one objective it is the expected improvement over the best value.
///
/// n points make n + 1 boxes with two objectives, O(n^(m - 1)) with m. An evaluation costs O(boxes m).
class HypervolumeGain {
  public:
    /// Points that others cover, or that are not above the reference, may be among `front`. Without `reference`, one
    /// objective, and at least one point.
    explicit HypervolumeGain(std::vector<std::vector<double>> front, std::vector<double> reference = {});

    [[nodiscard]] std::size_t objectives() const { return bounds_.size(); }
    [[nodiscard]] std::size_t boxes() const { return boxes_.size() / objectives(); }
    /// -infinity where nothing is to be gained. `deviations` > 0.
    [[nodiscard]] double log_expected(std::span<const double> means, std::span<const double> deviations) const;
    /// Also the derivatives by means and deviations.
    double log_expected(std::span<const double> means, std::span<const double> deviations, std::span<double> by_means,
                        std::span<double> by_deviations) const;

  private:
    /// The sides of a box in one objective, as places in `bounds_`; `high` == its size: without end.
    struct Side {
        std::size_t low = 0;
        std::size_t high = 0;
    };
    using Points = std::vector<std::vector<double>>;
    void cut(const Points& front, std::vector<Side>& box);
    [[nodiscard]] std::size_t place(std::size_t objective, double value) const;

    std::vector<double> reference_;
    std::vector<std::vector<double>> bounds_; ///< of each objective, ascending
    std::vector<Side> boxes_;                 ///< of each box a side for each objective, the last objective first
};

} // namespace ranktune::models
