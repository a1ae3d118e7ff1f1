// SPDX-License-Identifier: Apache-2.0
#include "report/explain/explain.hpp"

#include "support/catch.hpp"
#include "view_by_hand.hpp"

namespace explain_test {

using namespace ranktune;
using namespace ranktune::report;
using namespace ranktune::report::testing;
using Catch::Matchers::Contains;

namespace {

std::string explained(const StudyView& view, std::uint32_t trial, bool is_run = true) {
    Style style;
    style.width = 200;
    return explanation(view, study::TrialId{trial}, "small", is_run, style);
}

} // namespace

TEST_CASE("a finished study explains who went on at each rung, and why", "[report]") {
    StudyByHand study(small_study(9));
    study.began(2);
    study.play_out(rising);
    REQUIRE(study.tuner.state().ended);
    const StudyView view = view_of(study);
    const std::uint32_t best = view.best->value();
    CHECK_THAT(explained(view, best), Contains("the best trial of the study") && Contains("it went on") &&
                                          Contains("now       over: reached the ceiling"));
    const std::string worst = explained(view, 0); // values rise with the number of the trial
    CHECK_THAT(worst, Contains("trial     #0: stopped at iteration 1 of 9, best score 0.0100 at iteration 1"));
    CHECK_THAT(worst, Contains("rung 1    0.0100, place 6 of 6; ") && Contains(": it did not"));
    CHECK_THAT(worst, Contains("attempt   1 from scratch, w"));
    CHECK_THAT(worst, Contains("now       over: not promoted"));
}

TEST_CASE("trials of a running study say why they do not train", "[report]") {
    StudyByHand study(small_study(9));
    study.began(2);
    study.train(0, 1, 0.5); // pauses; trial 2 gets its rank
    const StudyView view = view_of(study);
    CHECK_THAT(explained(view, 0), Contains("now       waits at rung 1 with 1 entry; its scheduler has not chosen it"));
    CHECK_THAT(explained(view, 1), Contains("now       trains"));
    CHECK_THAT(explained(view, 0, false), Contains("nobody runs the study; it goes on with: ranktune run small"));
}

TEST_CASE("a failed trial explains itself with its message", "[report]") {
    StudyByHand study(small_study(9));
    study.began(1);
    study.over(0, study::AttemptOutcome::failed, {"loss is NaN\nTraceback", 3});
    const std::string text = explained(view_of(study), 0);
    CHECK_THAT(text, Contains("failed: rank 3: loss is NaN") && Contains("message   rank 3: loss is NaN"));
    CHECK_THAT(text, !Contains("Traceback"));
    CHECK_THAT(text, Contains("now       over: "));
}

} // namespace explain_test
