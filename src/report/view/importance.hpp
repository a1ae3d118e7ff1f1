// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which hyper-parameters decided whether a trial was among the best.

#include <optional>
#include <string>
#include <vector>

#include "report/view/study_view.hpp"

namespace ranktune::report {

/// Nothing is said about the importance of a hyper-parameter that fewer of the best tenth have: two or three points say
/// nothing. (Optuna advises the same number.)
inline constexpr std::size_t least_best_trials = 5;
/// Nothing is said at all where fewer trials have a value.
inline constexpr std::size_t least_trials_for_importance = 10 * least_best_trials;

struct Importance {
    std::string parameter;
    std::optional<double> share; ///< of all, which add up to 1; nothing: too few of the best trials have the parameter
};

/// The importance of each hyper-parameter for being among the best tenth, by PED-ANOVA (models/ped_anova.hpp), the most
/// important first, those without a share last; ties in the order of the study file. A trial counts by its best value,
/// with the configuration that it had then; a trial without a parameter does not count for it. Empty: fewer trials than
/// `least_trials_for_importance` have a finite value, or nothing varies.
[[nodiscard]] std::vector<Importance> importance_of(const StudyView& view);

} // namespace ranktune::report
