// SPDX-License-Identifier: Apache-2.0
#include "models/cmaes.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

namespace ranktune::models {
namespace {

using Eigen::Index;

constexpr double largest_unit = 1.0 - 0x1p-53;

Eigen::Map<const Eigen::VectorXd> vector_of(std::span<const double> values) {
    return {values.data(), static_cast<Index>(values.size())};
}

double sum_of_squares(std::span<const double> values) {
    return std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
}

/// Probability that a standard normal variable is at most x.
double gaussian_below(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

/// In how many deviations from the mean a normal variable lies with probability 1 - 2 p: the square root of the
/// quantile of the chi-square distribution with one degree of freedom. Requires 0 < p < 1/2.
double deviations_beyond(double p) { return -base::inverse_normal(p); }

} // namespace

std::size_t CmaEsConstants::usual_lambda(std::size_t coordinates) {
    return 4 + static_cast<std::size_t>(3.0 * std::log(static_cast<double>(coordinates)));
}

CmaEsConstants::CmaEsConstants(std::size_t coordinates, std::size_t samples) : lambda(samples), mu(samples / 2) {
    const auto n = static_cast<double>(coordinates);
    for (std::size_t i = 0; i < lambda; ++i)
        weights.push_back(std::log((static_cast<double>(lambda) + 1.0) / 2.0) - std::log(static_cast<double>(i + 1)));
    const auto good = std::span(weights).first(mu);
    const auto bad = std::span(weights).subspan(mu);
    const double good_sum = std::accumulate(good.begin(), good.end(), 0.0);
    const double bad_sum = std::accumulate(bad.begin(), bad.end(), 0.0);
    mu_eff = good_sum * good_sum / sum_of_squares(good);
    const double bad_mu_eff = bad_sum * bad_sum / sum_of_squares(bad);

    c_sigma = (mu_eff + 2.0) / (n + mu_eff + 5.0);
    d_sigma = 1.0 + 2.0 * std::max(0.0, std::sqrt((mu_eff - 1.0) / (n + 1.0)) - 1.0) + c_sigma;
    c_c = (4.0 + mu_eff / n) / (n + 4.0 + 2.0 * mu_eff / n);
    c_1 = 2.0 / ((n + 1.3) * (n + 1.3) + mu_eff);
    // As in the authors' programs, slightly below 1 - c_1, so that a little of the old matrix stays.
    c_mu = std::min(1.0 - c_1 - 1e-8, 2.0 * (mu_eff - 2.0 + 1.0 / mu_eff) / ((n + 2.0) * (n + 2.0) + mu_eff));
    chi_n = std::sqrt(n) * (1.0 - 1.0 / (4.0 * n) + 1.0 / (21.0 * n * n));

    const double bad_total =
        std::min({1.0 + c_1 / c_mu, 1.0 + 2.0 * bad_mu_eff / (mu_eff + 2.0), (1.0 - c_1 - c_mu) / (n * c_mu)});
    for (double& weight : weights) weight *= weight >= 0.0 ? 1.0 / good_sum : bad_total / -bad_sum;
}

CmaEs::CmaEs(std::vector<double> mean, double sigma, std::vector<std::vector<double>> limits, std::size_t lambda)
    : constants_(mean.size(), lambda),
      limits_(std::move(limits)),
      first_sigma_(sigma),
      mean_(vector_of(mean)),
      sigma_(sigma),
      covariance_(Eigen::MatrixXd::Identity(mean_.size(), mean_.size())),
      path_sigma_(Eigen::VectorXd::Zero(mean_.size())),
      path_c_(Eigen::VectorXd::Zero(mean_.size())),
      stretch_(Eigen::VectorXd::Ones(mean_.size())),
      root_(covariance_),
      inverse_root_(covariance_),
      deviations_(Eigen::VectorXd::Ones(mean_.size())) {
    assert(!mean.empty() && limits_.size() == mean.size() && lambda >= 2);
}

std::vector<double> CmaEs::sample(base::RngStream& random) const {
    const std::size_t n = dimensions();
    Eigen::VectorXd normal(mean_.size());
    std::vector<double> raw(n);
    for (std::size_t attempt = 0; attempt <= 10 * n; ++attempt) {
        for (double& each : normal) each = random.normal();
        // The symmetric root, not B D: it depends continuously on the covariance, so a last bit changes little.
        Eigen::Map<Eigen::VectorXd>(raw.data(), mean_.size()) = mean_ + sigma_ * (root_ * normal);
        bool inside = true;
        for (std::size_t j = 0; j < n; ++j) inside = inside && (!limits_[j].empty() || (raw[j] >= 0.0 && raw[j] < 1.0));
        if (inside) return raw;
    }
    for (std::size_t j = 0; j < n; ++j)
        if (limits_[j].empty()) raw[j] = std::clamp(raw[j], 0.0, largest_unit);
    return raw;
}

std::vector<double> CmaEs::place(std::span<const double> raw) const {
    std::vector<double> unit(raw.begin(), raw.end());
    for (std::size_t j = 0; j < unit.size(); ++j) {
        const auto at = static_cast<Index>(j);
        unit[j] = std::clamp(mean_[at] + stretch_[at] * (unit[j] - mean_[at]), 0.0, largest_unit);
    }
    return unit;
}

void CmaEs::tell(std::vector<CmaEsResult> results) {
    assert(results.size() == constants_.lambda);
    std::ranges::stable_sort(results, std::ranges::greater{}, &CmaEsResult::score);
    const auto finite = static_cast<std::size_t>(
        std::ranges::count_if(results, [](const auto& each) { return std::isfinite(each.score); }));
    if (finite == 0) return;
    std::vector<double> weights = constants_.weights;
    if (finite < constants_.mu) {
        double sum = 0.0;
        for (std::size_t i = 0; i < constants_.mu; ++i) sum += i < finite ? weights[i] : 0.0;
        for (std::size_t i = 0; i < constants_.mu; ++i) weights[i] = i < finite ? weights[i] / sum : 0.0;
    }
    const auto n = static_cast<double>(dimensions());
    const double farthest = std::sqrt(n) + 2.0 * n / (n + 2.0);
    Eigen::MatrixXd steps(mean_.size(), static_cast<Index>(results.size()));
    for (std::size_t i = 0; i < results.size(); ++i) {
        auto step = steps.col(static_cast<Index>(i));
        step = (vector_of(results[i].raw) - mean_) / sigma_;
        if (!results[i].injected) continue;
        const double length = (inverse_root_ * step).norm();
        if (length > farthest) step *= farthest / length;
    }
    move(steps, weights);
    decompose();
    keep_margin();
    look_for_the_end(results.front().score, results[finite - 1].score);
}

void CmaEs::move(const Eigen::MatrixXd& steps, const std::vector<double>& weights) {
    const CmaEsConstants& c = constants_;
    const auto n = static_cast<double>(dimensions());
    const auto w = vector_of(weights);
    const auto mu = static_cast<Index>(c.mu);
    const Eigen::VectorXd mean_step = steps.leftCols(mu) * w.head(mu);
    ++generation_;
    mean_ += sigma_ * mean_step;
    path_sigma_ = (1.0 - c.c_sigma) * path_sigma_ +
                  std::sqrt(c.c_sigma * (2.0 - c.c_sigma) * c.mu_eff) * (inverse_root_ * mean_step);
    const double length = path_sigma_.norm();
    const double settled = std::sqrt(1.0 - std::pow(1.0 - c.c_sigma, 2.0 * (static_cast<double>(generation_) + 1.0)));
    const bool slow = length / settled < (1.4 + 2.0 / (n + 1.0)) * c.chi_n;
    path_c_ = (1.0 - c.c_c) * path_c_;
    if (slow) path_c_ += std::sqrt(c.c_c * (2.0 - c.c_c) * c.mu_eff) * mean_step;

    Eigen::VectorXd effective = w;
    for (Index i = 0; i < effective.size(); ++i)
        if (effective[i] < 0.0) effective[i] *= n / ((inverse_root_ * steps.col(i)).squaredNorm() + 1e-8);
    const double lost = slow ? 0.0 : c.c_c * (2.0 - c.c_c);
    covariance_ = (1.0 + c.c_1 * lost - c.c_1 - c.c_mu * w.sum()) * covariance_ +
                  c.c_1 * path_c_ * path_c_.transpose() + c.c_mu * (steps * effective.asDiagonal() * steps.transpose());
    sigma_ = std::min(sigma_ * std::exp(c.c_sigma / c.d_sigma * (length / c.chi_n - 1.0)), 1e32);
}

void CmaEs::decompose() {
    covariance_ = 0.5 * (covariance_ + covariance_.transpose().eval());
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(covariance_);
    if (solver.info() != Eigen::Success) {
        exhausted_ = "the covariance is not finite";
        return;
    }
    const Eigen::MatrixXd& vectors = solver.eigenvectors();
    // Negative weights can make the matrix indefinite, by rounding.
    const Eigen::VectorXd values =
        solver.eigenvalues().unaryExpr([](double value) { return value < 0.0 ? 1e-8 : value; });
    deviations_ = values.cwiseSqrt();
    if (solver.eigenvalues().minCoeff() < 0.0) covariance_ = vectors * values.asDiagonal() * vectors.transpose();
    root_ = vectors * deviations_.asDiagonal() * vectors.transpose();
    inverse_root_ = vectors * deviations_.cwiseInverse().asDiagonal() * vectors.transpose();
}

void CmaEs::keep_margin() {
    for (std::size_t j = 0; j < limits_.size(); ++j)
        if (!limits_[j].empty()) keep_margin(j);
}

/// Hamano et al. 2022, section 4: the mean of an outermost value moves, of another one mean and stretch.
void CmaEs::keep_margin(std::size_t coordinate) {
    const auto j = static_cast<Index>(coordinate);
    const std::vector<double>& limits = limits_[coordinate];
    const double margin = 1.0 / static_cast<double>(dimensions() * constants_.lambda);
    const double deviation = sigma_ * std::sqrt(covariance_(j, j));
    double& mean = mean_[j];
    const auto above = std::ranges::lower_bound(limits, mean);
    const double upper = above == limits.end() ? limits.back() : *above;
    const double lower = above == limits.begin() ? limits.front() : *(above - 1);
    double below_lower = gaussian_below((lower - mean) / (stretch_[j] * deviation));
    double above_upper = gaussian_below((mean - upper) / (stretch_[j] * deviation));
    if (std::max(below_lower, above_upper) > 0.5 || lower == upper) {
        if (std::min(below_lower, above_upper) >= margin) return;
        const double distance = stretch_[j] * deviation * deviations_beyond(margin);
        mean = mean > upper ? upper + distance : upper - distance;
        return;
    }
    const double between = 1.0 - below_lower - above_upper;
    below_lower = std::max(below_lower, margin / 2.0);
    above_upper = std::max(above_upper, margin / 2.0);
    const double excess = 1.0 - below_lower - above_upper - between;
    const double shared = below_lower + between + above_upper - 3.0 * margin / 2.0;
    const auto corrected = [&](double p) {
        return std::clamp(p + excess * (p - margin / 2.0) / shared, 1e-10, 0.5 - 1e-10);
    };
    const double low = deviations_beyond(corrected(below_lower));
    const double high = deviations_beyond(corrected(above_upper));
    stretch_[j] = (upper - lower) / ((low + high) * deviation);
    mean = (lower * high + upper * low) / (low + high);
}

/// The criteria of Hansen's tutorial, appendix B.3, with the limits of the program pycma.
void CmaEs::look_for_the_end(double best, double worst) {
    const std::size_t n = dimensions();
    const std::size_t remembered = 10 + (30 * n + constants_.lambda - 1) / constants_.lambda;
    if (bests_.size() < remembered) {
        bests_.push_back(best);
    } else {
        bests_[generation_ % remembered] = best;
        const auto [low, high] = std::ranges::minmax(bests_);
        if (high - low < 1e-12 && best - worst < 1e-12) exhausted_ = "the scores are equal";
    }
    const double largest = sigma_ * deviations_.maxCoeff();
    if (!std::isfinite(largest) || !mean_.allFinite()) exhausted_ = "the distribution is not finite";
    if (largest > 1e4 * first_sigma_) exhausted_ = "the distribution grows without limit";
    const double condition = deviations_.maxCoeff() / deviations_.minCoeff();
    if (!(condition * condition <= 1e14)) exhausted_ = "the covariance is nearly singular";
    bool still = true;
    for (Index j = 0; j < mean_.size(); ++j)
        still = still && sigma_ * std::max(std::sqrt(covariance_(j, j)), std::abs(path_c_[j])) < 1e-12 * first_sigma_;
    if (still) exhausted_ = "the samples are equal";
}

} // namespace ranktune::models
