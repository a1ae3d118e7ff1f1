// SPDX-License-Identifier: Apache-2.0
#pragma once
// How much a hyper-parameter decides whether a trial is among the best: PED-ANOVA.

#include <cstdint>
#include <span>
#include <vector>

namespace ranktune::models {

/// Numbers have an order and distances, categories have neither.
enum class Scale : std::uint8_t { numbers, categories };

/// The Pearson divergence of the density of the top trials from that of all trials, over the cells of one
/// hyper-parameter: the importance of that parameter by PED-ANOVA (Watanabe, Bansal and Hutter, "PED-ANOVA: Efficiently
/// Quantifying Hyperparameter Importance in Arbitrary Subspaces", IJCAI 2023, equation 16), in the space that was
/// explored. Only ratios between the parameters of a study have a meaning. The same as PedAnovaImportanceEvaluator of
/// Optuna 5.0: Parzen estimators with the bandwidth of Scott's rule, one prior kernel, truncated to the cells.
///
/// `top`, `all`: how many trials fall into each cell; of the same size, at least one cell. 0 when a sample is empty.
[[nodiscard]] double pearson_divergence(std::span<const std::uint32_t> top, std::span<const std::uint32_t> all,
                                        Scale scale);

/// The trials whose loss (smaller is better, finite) is at most the loss of trial ceil(quantile x n) in their order:
/// ties may add trials. True at the positions of these. Requires 0 < quantile <= 1.
[[nodiscard]] std::vector<bool> top_share(std::span<const double> losses, double quantile);

} // namespace ranktune::models
