// SPDX-License-Identifier: Apache-2.0
#pragma once
// CMA-ES: a normal distribution that follows the best of its samples.

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ranktune/base/rng.hpp"

namespace ranktune::models {

/// The constants of CMA-ES for n coordinates and lambda samples (Hansen, "The CMA evolution strategy: a tutorial",
/// arXiv 1604.00772, table 1 and equations 49 to 58).
struct CmaEsConstants {
    CmaEsConstants(std::size_t coordinates, std::size_t lambda);
    /// 4 + floor(3 ln n).
    [[nodiscard]] static std::size_t usual_lambda(std::size_t coordinates);

    std::size_t lambda;          ///< samples of a generation
    std::size_t mu;              ///< samples with a positive weight
    std::vector<double> weights; ///< of the samples, the best first; those after the first mu are not positive
    double mu_eff;
    double c_1;
    double c_mu;
    double c_sigma;
    double d_sigma;
    double c_c;
    double chi_n; ///< expected length of a standard normal vector
};

/// A sample of the distribution, or a point from elsewhere, and how good it is.
struct CmaEsResult {
    std::vector<double> raw; ///< as `CmaEs::sample` gave it; of a point from elsewhere, its coordinates
    double score = 0.0;      ///< larger is better; -infinity: failed
    /// The point is no sample of the present distribution: it may not move the distribution as far (Hansen, "Injecting
    /// external solutions into CMA-ES", arXiv 1110.4181).
    bool injected = false;
};

/// CMA-ES with active covariance and with margin: where a coordinate has few values, each neighbour of the value at the
/// mean keeps a probability (Hamano et al., "CMA-ES with margin", GECCO 2022). Maximises, in the unit cube.
///
/// A sample outside the cube is drawn again, at most 10 n times, and then moved to the border, where the coordinate has
/// no limits for its values. A function of what it was told; not for several threads at a time.
class CmaEs {
  public:
    /// `mean`: n >= 1 coordinates in [0, 1]. `sigma` > 0: standard deviation of every coordinate.
    /// `limits[j]`: the borders between neighbouring values of coordinate j, ascending; empty: continuous.
    /// `lambda` >= 2.
    CmaEs(std::vector<double> mean, double sigma, std::vector<std::vector<double>> limits, std::size_t lambda);

    /// A sample of n coordinates, for `tell`. Those with limits may lie outside [0, 1].
    [[nodiscard]] std::vector<double> sample(base::RngStream& random) const;
    /// Where a sample of the present distribution is to be evaluated: n coordinates in [0, 1).
    [[nodiscard]] std::vector<double> place(std::span<const double> raw) const;
    /// The results of one generation: lambda of them, in any order; equal ones rank in the order given. Failed ones
    /// have no positive weight, and if all failed the distribution stays as it is.
    void tell(std::vector<CmaEsResult> results);

    /// Why more samples would find nothing better: the distribution or the scores no longer vary, or the numbers go
    /// beyond what doubles can express. nullptr: go on.
    [[nodiscard]] const char* exhausted() const { return exhausted_; }

    [[nodiscard]] const CmaEsConstants& constants() const { return constants_; }
    [[nodiscard]] std::size_t generation() const { return generation_; }
    [[nodiscard]] const Eigen::VectorXd& mean() const { return mean_; }
    [[nodiscard]] double sigma() const { return sigma_; }
    [[nodiscard]] const Eigen::MatrixXd& covariance() const { return covariance_; }
    /// What the margin multiplies the deviation of each coordinate by.
    [[nodiscard]] const Eigen::VectorXd& stretch() const { return stretch_; }

  private:
    [[nodiscard]] std::size_t dimensions() const { return static_cast<std::size_t>(mean_.size()); }
    void move(const Eigen::MatrixXd& steps, const std::vector<double>& weights);
    void decompose();
    void keep_margin();
    void keep_margin(std::size_t coordinate);
    void look_for_the_end(double best, double worst);

    CmaEsConstants constants_;
    std::vector<std::vector<double>> limits_;
    double first_sigma_;
    std::size_t generation_ = 0;
    Eigen::VectorXd mean_;
    double sigma_;
    Eigen::MatrixXd covariance_;
    Eigen::VectorXd path_sigma_;
    Eigen::VectorXd path_c_;
    Eigen::VectorXd stretch_;
    Eigen::MatrixXd root_;         ///< symmetric square root of the covariance
    Eigen::MatrixXd inverse_root_; ///< and its inverse
    Eigen::VectorXd deviations_;   ///< square roots of the eigenvalues, ascending
    std::vector<double> bests_;    ///< best scores of the last generations, in a ring
    const char* exhausted_ = nullptr;
};

} // namespace ranktune::models
