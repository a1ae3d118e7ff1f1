// SPDX-License-Identifier: Apache-2.0
#pragma once
// The settings of schedulers with ASHA's rungs, and the plan of a study with them.

#include <cstdint>

#include "ranktune/study/spec.hpp"
#include "schedulers/rungs/levels.hpp"

namespace ranktune::schedulers {

struct AshaSettings {
    bool promotes = true;
    bool ray = false; ///< rule "ray"; only if not `promotes`
    double eta = 3.0;
    double first_rung = 1.0;
    std::uint32_t brackets = 1;
    Allotment allotment = Allotment::ray;
    std::uint32_t finish_top = 1;
};

/// What to expect of the study. The name in `words` is left to the caller.
[[nodiscard]] study::SchedulerPlan plan_rungs(const study::StudySpec& spec, const AshaSettings& asha);

} // namespace ranktune::schedulers
