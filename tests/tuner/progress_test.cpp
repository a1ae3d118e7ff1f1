// SPDX-License-Identifier: Apache-2.0
// What counts as progress of a start, for requeues, `supervise` and the line `progress` of the file `outcome`.

#include "report/study_by_hand.hpp"
#include "support/catch.hpp"

namespace ranktune::tuner {
namespace {

using report::testing::small_study;
using report::testing::StudyByHand;
using study::AttemptOutcome;

} // namespace

TEST_CASE("progress is an iteration that is new, or a trial that is over, failed ones too", "[tuner]") {
    StudyByHand study(small_study(9, "variant = \"stop\"\n[failure]\nmax_failures = 1\n"));
    const auto progress = [&study] { return progress_of(study.tuner.state()); };
    study.began(2);
    CHECK(progress() == 0);
    study.report(0, 1, 0.5);
    CHECK(progress() == 1);
    study.saved(0, 1); // of an iteration that was reported before
    CHECK(progress() == 1);
    study.report(1, 1, 0.6);
    study.report(1, 2, 0.6);
    CHECK(progress() == 3);
    study.over(1, AttemptOutcome::failed, {"no file"}); // it is tried again, from the beginning
    CHECK(study.state(1).phase == TrialPhase::running);
    study.report(1, 1, 0.6);
    study.report(1, 2, 0.6);
    CHECK(progress() == 3);
    study.over(1, AttemptOutcome::failed, {"no file"}); // the same at the same place: over
    CHECK(study.state(1).phase == TrialPhase::failed);
    CHECK(progress() == 4);
    study.over(2, AttemptOutcome::failed, {"it hung"}); // without a single report, and tried again
    study.over(2, AttemptOutcome::failed, {"it hung"});
    CHECK(study.state(2).phase == TrialPhase::failed);
    CHECK(progress() == 5);
}

} // namespace ranktune::tuner
