// SPDX-License-Identifier: Apache-2.0
// Ray's cases of HyperBandForBOHB (python/ray/tune/tests/test_trial_scheduler.py), with the scheduler "hyperband",
// which works with any searcher. H13 is in hyperband_test.cpp.
#include "schedulers/driver.hpp"
#include "support/catch.hpp"

namespace bohb_test {

using namespace ranktune;
using namespace ranktune::schedulers;

namespace {

study::StudySpec of_bohb(base::Iteration ceiling, std::uint32_t trials, study::Mode mode) {
    study::StudySpec spec = spec_of(chosen("hyperband"), ceiling, mode);
    spec.num_trials = trials;
    return spec;
}

} // namespace

TEST_CASE("H14: of three at the first rung the last goes on if it is best, and otherwise pauses [TrialInfoUpdate]",
          "[schedulers][hyperband]") {
    for (const study::Mode mode : {study::Mode::max, study::Mode::min}) {
        Driver d(of_bohb(3, 100, mode));
        for (int i = 0; i < 3; ++i) d.add();
        CHECK(d.result(TrialId(0), 1, 1) == Verb::pause);
        CHECK(d.result(TrialId(1), 1, 2) == Verb::pause);
        // Ray stops the worst one at once; ours waits, in case the chosen one fails.
        CHECK(d.result(TrialId(2), 1, 0) == (mode == study::Mode::max ? Verb::pause : Verb::go_on));
        const auto promotion = d.next({.can_create = true, .active = true});
        CHECK(promotion.has_value() == (mode == study::Mode::max));
        if (promotion) CHECK(promotion->trial == TrialId(1));
    }
}

TEST_CASE("H15: paused trials of a bracket that no other trial joins go on, the best first [PauseResumeChooseTrial]",
          "[schedulers][hyperband]") {
    Driver d(of_bohb(10, 3, study::Mode::min));
    for (int i = 0; i < 3; ++i) d.add();
    CHECK(d.result(TrialId(0), 5, 1) == Verb::pause);
    CHECK(d.result(TrialId(1), 1, 2) == Verb::pause);
    CHECK(d.result(TrialId(2), 5, 3) == Verb::pause);
    // Ray takes the second one, because the others are past the next rung. Ours compares all at the rung that they were
    // heading for.
    const auto promotion = d.next({.can_create = false, .active = false});
    REQUIRE(promotion);
    CHECK(promotion->trial == TrialId(0));
}

} // namespace bohb_test
