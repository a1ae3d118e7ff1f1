// SPDX-License-Identifier: Apache-2.0
#include "report/view/study_view.hpp"

#include "journal_by_hand.hpp"
#include "report/page/page_data.hpp"
#include "support/catch.hpp"
#include "view_by_hand.hpp"

namespace study_view_test {

using namespace ranktune;
using namespace ranktune::report;
using namespace ranktune::report::testing;

TEST_CASE("rungs of a view have the counts that the live table shows", "[report]") {
    StudyByHand study(small_study(27));
    study.began(2);
    study.play_out(rising);
    REQUIRE(study.tuner.state().ended);
    const StudyView view = view_of(study);
    const auto counted = study.tuner.scheduler().rungs();
    REQUIRE(view.rungs.size() == counted.size());
    for (std::size_t i = 0; i < counted.size(); ++i) {
        CHECK(view.rungs[i].iteration == counted[i].iteration);
        CHECK(view.rungs[i].entries.size() == counted[i].entries);
        if (i + 1 < counted.size()) CHECK(view.rungs[i].went_on() == counted[i].promoted);
    }
    const auto& first = view.rungs.front().entries;
    CHECK(first.front().value == rising(5, 1)); // best first
    CHECK(first.front().went_on);
    CHECK_FALSE(first.back().went_on);
}

TEST_CASE("the best value so far ends with the best of the state, and never gets worse", "[report]") {
    StudyByHand study(small_study(9));
    study.began(2);
    study.play_out(rising);
    const StudyView view = view_of(study);
    REQUIRE(!view.best_steps.empty());
    const auto& state = study.tuner.state();
    CHECK(view.best == state.best);
    CHECK(view.best_steps.back().trial == *state.best);
    CHECK(view.best_steps.back().value == state.trial(*state.best).best);
    CHECK(view.best_steps.back().iterations <= state.iterations);
    for (std::size_t i = 1; i < view.best_steps.size(); ++i) {
        CHECK(view.best_steps[i].value > view.best_steps[i - 1].value);
        CHECK(view.best_steps[i].at_s >= view.best_steps[i - 1].at_s);
        CHECK(view.best_steps[i].iterations > view.best_steps[i - 1].iterations);
    }
}

TEST_CASE("attempts end where their ranks are free again, and cost what they held", "[report]") {
    StudyByHand study(small_study(3));
    study.began(2);         // 0.5 s: trials 0 and 1 start
    study.train(0, 1, 0.5); // 1.0 s report, 1.5 s saved, 2.0 s over
    const StudyView view = view_of(study);
    REQUIRE(view.attempts.size() >= 3);
    const AttemptView& first = view.attempts[0];
    CHECK(first.trial.value() == 0);
    CHECK(first.begin_s == 0.5);
    CHECK(first.end_s == 2.0);
    CHECK(first.outcome == study::AttemptOutcome::paused);
    CHECK(view.attempts[1].runs);
    CHECK(view.attempts[1].end_s == 2.0); // as of the newest record
    CHECK(view.now_s == 2.0);
    CHECK(view.as_of == "2026-11-20T14:02:13Z"); // began at 14:02:11, 0.5 s of study time
    CHECK(view.cost.available_s == 2 * 1.5);
    CHECK(view.cost.held_s == Approx(1.5 + 1.5));
    CHECK(view.cost.utilisation() == Approx(1.0));
    CHECK(view.cost.gpu_s == 0.0);
    REQUIRE(view.hosts.size() == 2);
    CHECK(view.hosts[0].name == "n0");
    CHECK(view.hosts[0].ranks == 1);
}

TEST_CASE("GPUs cost what the workers cost that have them", "[report]") {
    StudyByHand study(small_study(3));
    study.began(2, true);
    study.train(0, 1, 0.5);
    const StudyView view = view_of(study);
    CHECK(view.cost.gpu_s == 2 * 1.5);
    CHECK(view.hosts.at(1).gpus == 1);
}

TEST_CASE("of an iteration that was trained again the curve has the newest value", "[report]") {
    StudyByHand study(small_study(27, "brackets = 1\nfirst_rung = 9\n"));
    study.began(1);
    study.report(0, 1, 0.1);
    study.report(0, 2, 0.2);
    study.over(0, study::AttemptOutcome::lost);
    REQUIRE(study.state(0).phase == study::TrialPhase::running); // the second attempt, from scratch
    study.report(0, 1, 0.3);
    const StudyView view = view_of(study);
    const auto& curve = view.trials.at(0).curve;
    // The core drops reports of iterations that it has: whatever it accepts, iterations of a curve ascend.
    REQUIRE(!curve.empty());
    for (std::size_t i = 1; i < curve.size(); ++i) CHECK(curve[i].iteration > curve[i - 1].iteration);
    CHECK(view.attempts.size() == 2);
    CHECK(view.attempts[0].outcome == study::AttemptOutcome::lost);
}

TEST_CASE("a view read from the journal is the view of its records", "[report]") {
    StudyByHand study(small_study(9));
    study.began(2);
    study.play_out(rising);
    const TemporaryDirectory directory;
    write_journal(directory.path(), study.records);
    History history;
    const LoadedStudy loaded = load_study(storage::posix_file_system(), directory.path(), &history);
    const PageStudy from_file{study_view(loaded, history), "d", "ended"};
    const PageStudy from_records{view_of(study), "d", "ended"};
    CHECK(page_data({&from_file, 1}, "now") == page_data({&from_records, 1}, "now"));
}

TEST_CASE("the view of a study without a report has no best trial and no rungs", "[report]") {
    StudyByHand study(small_study(9));
    study.began(2);
    const StudyView view = view_of(study);
    CHECK_FALSE(view.best);
    CHECK(view.again.empty());
    CHECK(view.rungs.empty());
    CHECK(view.best_steps.empty());
    CHECK(view.trials.size() == 2);
    CHECK_FALSE(view.ended);
}

} // namespace study_view_test
