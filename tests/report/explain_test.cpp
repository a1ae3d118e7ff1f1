// SPDX-License-Identifier: Apache-2.0
#include "report/explain/explain.hpp"

#include <sstream>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "view_by_hand.hpp"

namespace explain_test {

using namespace ranktune;
using namespace ranktune::report;
using namespace ranktune::report::testing;
using Catch::Matchers::Contains;

namespace {

std::string explained(const StudyView& view, std::uint32_t trial, bool is_run = true, bool records = false) {
    Style style;
    style.width = 200;
    return explanation(view, study::TrialId{trial}, "small", is_run, style, records);
}

/// The only line that begins with this label; empty: there is none, or several.
std::string line_of(const std::string& text, const std::string& label) {
    std::string found;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with(label)) found = found.empty() ? line : "several lines\n";
    return found;
}

/// The numbers of the records of type R about this trial that `holds` accepts, in order.
template <class R>
std::vector<std::size_t> numbers(const StudyByHand& study, std::uint32_t trial, bool (*holds)(const R&)) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < study.records.size(); ++i)
        if (const auto* record = std::get_if<R>(&study.records[i]))
            if (record->trial.value() == trial && holds(*record)) found.push_back(i);
    return found;
}
template <class R>
bool any(const R&) {
    return true;
}

std::string named(std::vector<std::size_t> records) {
    std::string text = records.size() == 1 ? "[record " : "[records ";
    for (std::size_t i = 0; i < records.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(records[i]);
    return text + "]";
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

TEST_CASE("a trial that waits for ranks of one kind counts those alone", "[report]") {
    StudyByHand study(small_study(9));
    study.began(3);
    StudyView view = view_of(study);
    view.trials[2].phase = study::TrialPhase::waiting;
    std::erase_if(view.attempts, [](const AttemptView& attempt) { return attempt.trial.value() == 2; });
    CHECK_THAT(explained(view, 2), Contains("now       waits for 1 rank; 1 free of 3, 1 trial waits\n"));
    view.ranks_with_gpu = 1;
    view.trials[0].workers = study::WorkerKind::with_gpu;
    view.trials[1].workers = study::WorkerKind::without_gpu;
    view.trials[2].workers = study::WorkerKind::with_gpu;
    CHECK_THAT(explained(view, 2), Contains("waits for 1 rank with a GPU; 0 free of 1, 1 trial waits for such\n"));
    view.trials[2].workers = study::WorkerKind::without_gpu;
    CHECK_THAT(explained(view, 2), Contains("waits for 1 rank without a GPU; 1 free of 2, 1 trial waits for such\n"));
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

TEST_CASE("without --records no record is named", "[report]") {
    StudyByHand study(small_study(9));
    study.began(2);
    study.play_out(rising);
    CHECK_THAT(explained(view_of(study), study.tuner.state().best->value()), !Contains("record"));
}

TEST_CASE("a promoted trial names the records of its verdicts, promotions, attempts and end", "[report]") {
    StudyByHand study(small_study(9));
    study.began(2);
    study.play_out([](std::uint32_t trial, base::Iteration iteration) { return rising(9 - trial, iteration); });
    constexpr std::uint32_t trial = 0; // the best; it waits at rung 1 until there is somebody to compare it with
    REQUIRE_FALSE(numbers<study::TrialPromoted>(study, trial, any).empty());
    const auto promoted = numbers<study::TrialPromoted>(study, trial, any);
    const auto paused = numbers<study::Reported>(study, trial, [](const study::Reported& r) {
        return r.iteration == 1 && r.verdict.verb == study::Verb::pause;
    });
    const auto starts = numbers<study::TrialStarted>(study, trial, any);
    const auto ends = numbers<study::AttemptEnded>(study, trial, any);
    REQUIRE(paused.size() == 1);
    REQUIRE(starts.size() >= 2);
    const std::string text = explained(view_of(study), trial, true, true);
    INFO(text);
    CHECK_THAT(line_of(text, "rung 1 "), Contains(named({paused[0], promoted[0]})));
    CHECK_THAT(line_of(text, "attempt   1 "), Contains("paused " + named({starts[0], ends[0]})));
    CHECK_THAT(line_of(text, "attempt   2 "), Contains(named({starts[1], ends[1]})));
    CHECK_THAT(line_of(text, "now "), Contains(named(numbers<study::TrialClosed>(study, trial, any))));
    CHECK_THAT(line_of(text, "records"), Contains("ranktune replay small --until N"));
}

TEST_CASE("a trial that was stopped at the median names the report that was judged", "[report]") {
    const auto below = [](const study::Reported& r) { return r.verdict.reason == study::Reason::below_median; };
    std::string text = small_study(9);
    text.replace(text.find("asha"), 4, "median");
    StudyByHand study(text);
    study.began(2);
    study.play_out([](std::uint32_t trial, base::Iteration iteration) { return 1.0 - rising(trial, iteration); });
    std::uint32_t trial = 0;
    while (trial < 6 && numbers<study::Reported>(study, trial, below).empty()) ++trial;
    REQUIRE(trial < 6);
    const auto stopped = numbers<study::Reported>(study, trial, below);
    const std::string told = explained(view_of(study), trial, true, true);
    INFO(told);
    const auto& report = std::get<study::Reported>(study.records[stopped.front()]);
    const std::string judged = line_of(told, "at " + std::to_string(report.iteration) + " ");
    CHECK_THAT(judged, Contains("is worse than the median") && Contains(named({stopped.front()})));
}

TEST_CASE("a trial that took over a state names its verdict and the takeover", "[report][pbt]") {
    std::string text = small_study(9);
    text.replace(text.find("type = \"asha\""), 13,
                 "type = \"pbt\"\ninterval = 2\nresample_probability = 0.0\nexplore.lr = [0.5, 2.0]");
    text.replace(text.find("num_trials = 6"), 14, "num_trials = 4");
    StudyByHand study(text);
    study.began(4);
    for (std::uint32_t trial = 0; trial < 4; ++trial) study.report(trial, 1, 0.0);
    study.report(3, 2, 1.0);
    study.saved(3, 2);
    for (const std::uint32_t trial : {2U, 1U, 0U}) study.report(trial, 2, 0.1 * trial);
    const auto taken = numbers<study::Exploited>(study, 0, any);
    REQUIRE(taken.size() == 1);
    const auto judged = numbers<study::Reported>(
        study, 0, [](const study::Reported& r) { return r.verdict.reason == study::Reason::exploited; });
    const std::string told = explained(view_of(study), 0, true, true);
    INFO(told);
    CHECK_THAT(line_of(told, "took over"), Contains("#3's iteration 2, at iteration 2, lr ") && Contains(named(taken)));
    CHECK_THAT(line_of(told, "at 2"), Contains(named(judged)));
}

} // namespace explain_test
