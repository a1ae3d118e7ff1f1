// SPDX-License-Identifier: Apache-2.0
#pragma once
// Drives one scheduler alone, in a minimal study.

#include <utility>

#include "ranktune/study/spec.hpp"
#include "schedulers/built_in.hpp"
#include "support/catch.hpp"
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

/// Many tests of Ray's schedulers begin like this: trial a reports 0:0, 1:100, ... 9:900; trial b 0:450 ... 4:450;
/// every answer is to go on.
struct TwoTrials : Driver {
    explicit TwoTrials(study::StudySpec s, double sign = 1.0) : Driver(std::move(s)) {
        for (base::Iteration t = 0; t < 10; ++t)
            CHECK(result(a, t, sign * 100.0 * static_cast<double>(t)) == Verb::go_on);
        for (base::Iteration t = 0; t < 5; ++t) CHECK(result(b, t, sign * 450.0) == Verb::go_on);
    }
    TrialId a = add();
    TrialId b = add();
};

} // namespace ranktune::schedulers
