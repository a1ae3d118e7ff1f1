// SPDX-License-Identifier: Apache-2.0
#pragma once
// Drives one scheduler alone, in a study that is as small as can be.

#include <utility>

#include "ranktune/study/spec.hpp"
#include "schedulers/built_in.hpp"
#include "testing/scheduler_driver.hpp"

namespace ranktune::schedulers {

using Driver = testing::SchedulerDriver;
using base::TrialId;
using study::Reason;
using study::Verb;
using study::Verdict;

inline study::StudySpec spec_of(study::SchedulerSpec scheduler, base::Iteration max_iterations,
                                study::Mode mode = study::Mode::max) {
    study::StudySpec spec;
    spec.objective = {"quality", mode};
    spec.max_iterations = max_iterations;
    spec.seed = 1;
    spec.scheduler = std::move(scheduler);
    return spec;
}

} // namespace ranktune::schedulers
