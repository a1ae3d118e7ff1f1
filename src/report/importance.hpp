// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which hyper-parameters decided whether a trial was among the best.

#include <string>
#include <vector>

#include "report/study_view.hpp"

namespace ranktune::report {

/// Trials with a value below which nothing is said about importance: of fewer, the best tenth is a handful.
inline constexpr std::size_t least_trials_for_importance = 40;

struct Importance {
    std::string parameter;
    double share = 0.0; ///< of all, they add up to 1
};

/// The importance of each hyper-parameter for being among the best tenth, by PED-ANOVA (models/ped_anova.hpp), the most
/// important first; ties in the order of the study file. A trial counts by its best value, with the configuration that
/// it had then; a trial without a parameter does not count for it. Empty: fewer trials than
/// `least_trials_for_importance` have a finite value, or nothing varies.
[[nodiscard]] std::vector<Importance> importance_of(const StudyView& view);

} // namespace ranktune::report
