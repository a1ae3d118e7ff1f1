// SPDX-License-Identifier: Apache-2.0
// Where the time of the ranks went.
#include <limits>
#include <numeric>

#include "report/explain/explain.hpp"
#include "support/catch.hpp"
#include "view_by_hand.hpp"

using namespace ranktune;
using namespace ranktune::report;
using namespace ranktune::report::testing;
using Catch::Matchers::Contains;
using std::chrono::milliseconds;

namespace {

double spent_on(const StudyView& view, Spent what) { return view.cost.spent_s[static_cast<std::size_t>(what)]; }

double sum_of(const StudyView& view) {
    return std::accumulate(view.cost.spent_s.begin(), view.cost.spent_s.end(), 0.0);
}

std::string fifo_study(const std::string& more) {
    std::string text = small_study(9, more);
    return text.replace(text.find("\"asha\""), 6, "\"fifo\"");
}

std::string explained_study(const StudyView& view, bool is_run = true) {
    Style style;
    style.width = 200;
    return study_explanation(view, "small", is_run, style);
}

} // namespace

// Each event of a study by hand comes half a second after the one before; a report of iteration k says that 0.5 k
// seconds were trained.

TEST_CASE("each rank-second of a study has one cause", "[report]") {
    StudyByHand study(fifo_study(""));
    study.began(3); // trials 0, 1 and 2, at 0.5 s
    study.wait(milliseconds(2000));
    study.report(0, 1, 0.1); // at 3.5: 0.5 s of training after 2.5 s of starting
    study.wait(milliseconds(1000));
    study.report(0, 2, 0.2); // at 5.5: 0.5 s of training, and 1.5 s between the iterations
    study.wait(milliseconds(3000));
    study.over(1, study::AttemptOutcome::failed, {"loss is NaN"}); // at 9.5: 9 s for nothing; trial 3 begins
    study.wait(milliseconds(1000));
    study.over(2, study::AttemptOutcome::lost); // at 11.5: 11 s; it begins again
    const StudyView view = view_of(study);
    CHECK(spent_on(view, Spent::starting) == Approx(2.5));
    CHECK(spent_on(view, Spent::saving) == Approx(1.5));
    CHECK(spent_on(view, Spent::failed) == Approx(9.0));
    CHECK(spent_on(view, Spent::lost) == Approx(11.0));
    CHECK(spent_on(view, Spent::training) == Approx(0.5 + 0.5 + 6.0 + 2.0)); // the last two: what trains now
    CHECK(sum_of(view) == Approx(3 * 11.0));
    const std::string text = explained_study(view);
    CHECK_THAT(text, Contains("study     small: 4 of 6 trials, 1 start"));
    CHECK_THAT(text, Contains("now       3 trials on 3 of 3 ranks; 2 not begun"));
    CHECK_THAT(text, Contains("lost attempts") && Contains("33.3 %"));
    CHECK_THAT(text, Contains("next      lost attempts: Ranks or whole jobs were lost"));
    CHECK_THAT(text, Contains("ranktune status small --filter 'state == failed'"));
}

TEST_CASE("what a program needs before its first report, beyond an iteration, is its start", "[report]") {
    std::string text = fifo_study("");
    const std::string builtin = "name = \"any\"";
    StudyByHand study(text.replace(text.find(builtin), builtin.size(), "command = \"train {args}\""));
    study.began(1);
    study.wait(milliseconds(3000));
    const auto report = [&](base::Iteration iteration, double seconds) {
        study.step(study::ReportArrived{
            base::TrialId{0}, base::AttemptId{1}, base::Incarnation{1}, iteration, seconds, {{"score", 0.1}}});
    };
    report(1, 4.0);
    CHECK(spent_on(view_of(study), Spent::training) == Approx(4.0)); // an iteration may take that long
    report(2, 4.5);
    const StudyView view = view_of(study);
    CHECK(spent_on(view, Spent::starting) == Approx(3.5));
    CHECK(spent_on(view, Spent::training) == Approx(1.0));
    CHECK(view.cost.training_s == Approx(1.0));
    CHECK(sum_of(view) == Approx(4.5));
}

TEST_CASE("what training waited for data is told apart, with what to do about it", "[report]") {
    StudyByHand study(fifo_study(""));
    study.began(1);
    study.wait(milliseconds(2000));
    const auto report = [&](base::Iteration iteration, double seconds, double waited) {
        study.step(study::ReportArrived{base::TrialId{0},
                                        base::AttemptId{1},
                                        base::Incarnation{1},
                                        iteration,
                                        seconds,
                                        {{"score", 0.1}, {"data_wait", waited}}});
    };
    report(1, 2.0, 0.5);
    study.wait(milliseconds(1500));
    report(2, 4.0, 1.0);
    report(3, 4.5, std::numeric_limits<double>::quiet_NaN());
    const StudyView view = view_of(study);
    CHECK(spent_on(view, Spent::data) == Approx(1.5));
    CHECK(spent_on(view, Spent::training) == Approx(3.0));
    CHECK(sum_of(view) == Approx(view.cost.available_s));
    CHECK_THAT(explained_study(view),
               Contains("waiting for data") && Contains("next      waiting for data: Copies on the "
                                                        "nodes (data.stage = true)"));
}

TEST_CASE("of a wait for data the cause is named, as far as reports say it", "[report]") {
    StudyByHand study(fifo_study(""));
    study.began(1);
    study.wait(milliseconds(9000));
    const auto report = [&](base::Iteration iteration, std::vector<study::NamedMetric> waited) {
        waited.push_back({"score", 0.1});
        study.step(study::ReportArrived{base::TrialId{0}, base::AttemptId{1}, base::Incarnation{1}, iteration,
                                        static_cast<double>(iteration), std::move(waited)});
        study.wait(milliseconds(500));
    };
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    constexpr double infinity = std::numeric_limits<double>::infinity();
    report(1, {{"data_wait", 0.5}, {"data_wait/disk", 0.25}, {"data_wait/decode", 0.125}});
    report(2, {{"data_wait", 0.5}, {"data_wait/disk", nan}, {"data_wait/decode", infinity}, {"data_wait/map", 0.5}});
    report(3, {{"data_wait", 4.0}, {"data_wait/disk", 2.0}, {"data_wait/decode", 1.0}, {"data_wait/map", 1.0}});
    report(4, {{"data_wait", 0.5}, {"data_wait/disk", 1.5}, {"data_wait/decode", 0.5}}); // more than the whole
    report(5, {{"data_wait/disk", 0.5}});                                                // of no whole
    report(6, {{"data_wait", 0.25}});
    const StudyView view = view_of(study);
    CHECK(spent_on(view, Spent::data) == Approx(0.125 + 0.25));
    CHECK(spent_on(view, Spent::data_disk) == Approx(0.25 + 0.5 + 0.375));
    CHECK(spent_on(view, Spent::data_decode) == Approx(0.125 + 0.25 + 0.125));
    CHECK(spent_on(view, Spent::data_map) == Approx(0.5 + 0.25));
    CHECK(sum_of(view) == Approx(view.cost.available_s));
    // Together they are the second largest loss, and checkpoints only the third.
    CHECK_THAT(explained_study(view),
               Contains("next      waiting for data: disk: Keep copies") && !Contains("Save less often"));
}

TEST_CASE("what is trained again counts against what made it necessary", "[report]") {
    StudyByHand study(fifo_study(""));
    study.began(1);
    study.wait(milliseconds(500));
    study.report(0, 1, 0.1);                    // 0.5 s of training after 1 s
    study.over(0, study::AttemptOutcome::lost); // 0.5 s later; nothing was saved
    study.wait(milliseconds(500));
    study.step(
        study::ReportArrived{base::TrialId{0}, base::AttemptId{2}, base::Incarnation{1}, 1, 1.0, {{"score", 0.1}}});
    const StudyView view = view_of(study);
    CHECK(spent_on(view, Spent::training) == Approx(0.5));
    CHECK(spent_on(view, Spent::lost) == Approx(0.5));
    CHECK(spent_on(view, Spent::again_lost) == Approx(0.5));
    CHECK(spent_on(view, Spent::starting) == Approx(1.0 + 1.0));
    CHECK(sum_of(view) == Approx(3.5));
}

TEST_CASE("side tasks count, and so do ranks that are kept for them or for losses", "[report]") {
    StudyByHand study(
        fifo_study("[resources]\nhelpers = 1\n[run]\nspares = 1\n[before]\ncommand = \"prepare\"\n"
                   "[after_trial]\ncommand = \"evaluate\"\n"));
    const auto side_ends = [&](const study::SideTask& task) {
        study.step(study::AttemptOver{
            unit_of(task), base::AttemptId{1}, base::Incarnation{1}, study::AttemptOutcome::finished, {}});
    };
    study.began(4); // one helper, one spare
    study.wait(milliseconds(1500));
    side_ends({study::SideTask::Kind::before, {}}); // at 3.0: 2.5 s on the helper
    CHECK(spent_on(view_of(study), Spent::beside) == Approx(2.5));
    CHECK(spent_on(view_of(study), Spent::idle_kept) == Approx(2.5)); // the spare
    study.wait(milliseconds(500));
    for (base::Iteration i = 1; i <= 9; ++i) study.report(0, i, 0.1);
    study.over(0, study::AttemptOutcome::stopped); // at 9.0: its task begins, on the helper
    study.wait(milliseconds(2500));
    side_ends({study::SideTask::Kind::after_trial, base::TrialId{0}}); // at 12.5
    const StudyView view = view_of(study);
    CHECK(spent_on(view, Spent::beside) == Approx(2.5 + 3.5));
    CHECK(spent_on(view, Spent::idle_kept) == Approx(2.5 + 2 * 6.0 + 3.5));
    CHECK(sum_of(view) == Approx(view.cost.available_s));
    CHECK_THAT(explained_study(view),
               Contains("side tasks") && Contains("next      idle: kept for other uses: resources.helpers"));
}

TEST_CASE("idle ranks have a cause, too", "[report]") {
    StudyByHand limited(fifo_study("").insert(std::string("[study]\n").size(), "max_concurrent = 1\n"));
    limited.began(2);
    limited.wait(milliseconds(4000));
    limited.report(0, 1, 0.1);
    CHECK(spent_on(view_of(limited), Spent::idle_limit) == Approx(5.0));
    CHECK_THAT(explained_study(view_of(limited)), Contains("next      idle: study.max_concurrent: Raise it"));

    StudyByHand stopping(fifo_study(""));
    stopping.began(2);
    stopping.stop("asked to");
    stopping.over(0, study::AttemptOutcome::paused); // 1 s after its start
    stopping.wait(milliseconds(3000));
    stopping.over(1, study::AttemptOutcome::paused); // 4 s later
    const StudyView view = view_of(stopping);
    CHECK(spent_on(view, Spent::idle_stopping) == Approx(4.0));
    CHECK(spent_on(view, Spent::saving) == Approx(1.0 + 5.0));
    CHECK_THAT(explained_study(view, false), Contains("it goes on with: ranktune run small"));
}
