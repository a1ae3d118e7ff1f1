// SPDX-License-Identifier: Apache-2.0
#pragma once
// The beginning of many tests of Ray's schedulers.

#include <utility>

#include "schedulers/driver.hpp"
#include "support/catch.hpp"

namespace ranktune::schedulers {

/// Trial a reports 0:0, 1:100, ... 9:900; trial b 0:450 ... 4:450; every answer is to go on.
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
