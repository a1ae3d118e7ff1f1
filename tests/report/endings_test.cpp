// SPDX-License-Identifier: Apache-2.0
// Screens and sentences at and after the end of a study.

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "golden.hpp"
#include "report/explain/endings.hpp"
#include "screens_by_hand.hpp"

namespace endings_test {

using namespace ranktune;
using namespace ranktune::report;
using namespace ranktune::report::testing;

TEST_CASE("the end screen of a study that went well", "[report]") {
    const StudyByHand study = ended_well();
    const std::string screen = end_screen(study.tuner, figures(), files(), Style{});
    CHECK(screen == golden("end-ok", screen));
    CHECK(widest(screen) <= 80);
    CHECK(screen.find("\x1b") == std::string::npos);
}

TEST_CASE("without figures the end screen says what was best, what failed and what comes next", "[report]") {
    FilesInfo brief = files();
    brief.verbose = false;
    const std::string screen = end_screen(ended_well().tuner, figures(), brief, Style{});
    for (const char* label : {"training ", "workers ", "files ", "search "}) CHECK_FALSE(contains(screen, label));
    CHECK(contains(screen, "\nbest      #0"));
    CHECK(contains(screen, "\nnext      ranktune best digits"));
    CHECK(std::ranges::count(screen, '\n') == 5);
}

TEST_CASE("failures that differ in their values alone are one group", "[report]") {
    StudyByHand study(digits);
    study.began(4);
    study.train(0, 1, 0.5);
    study.over(1, study::AttemptOutcome::failed, {"train.py: --lr=0.0123: can't have: 'adma'"});
    study.over(2, study::AttemptOutcome::failed, {"train.py: --lr=4e-05: can't have: 'sgdm'"});
    study.over(3, study::AttemptOutcome::failed, {"can't allocate 512 MiB on n3"});
    Style wide;
    wide.width = 200;
    const std::string text = failures_text(study.tuner.state(), "digits", wide);
    CHECK(contains(text, "#1 #2: train.py: --lr=0.0123: can't have: 'adma' (the others with other values)\n"));
    CHECK(contains(text, "#3: can't allocate 512 MiB on n3\n"));
}

TEST_CASE("failures with different exit codes are different groups, in the order of their first trials", "[report]") {
    StudyByHand study(digits);
    study.began(4);
    int trial = 0;
    for (const char* message : {"rank 0: exit code 75", "rank 3: exit code 1", "rank 1: exit code 75"})
        study.over(static_cast<std::uint32_t>(trial++), study::AttemptOutcome::failed, {message});
    Style wide;
    wide.width = 200;
    CHECK(contains(failures_text(study.tuner.state(), "digits", wide),
                   "#0 #2: rank 0: exit code 75 (the others with other values)\n          #1: rank 3: exit code 1\n"));
}

TEST_CASE("the end screen groups failures by their message", "[report]") {
    StudyByHand study(digits);
    study.began(4);
    study.train(0, 1, 0.5);
    study.train(1, 1, 0.6);
    for (const std::uint32_t trial : {2U, 3U, 4U, 5U}) {
        const char* message = trial == 4 ? "CUDA out of memory\nTraceback: many lines"
                                         : "loss is NaN at iteration 1, and this sentence goes on for longer than a "
                                           "terminal is wide \x1b[31m\xff";
        study.over(trial, study::AttemptOutcome::failed, {message});
    }
    study.play_out(curve);
    REQUIRE(study.tuner.state().ended);
    const std::string screen = end_screen(study.tuner, figures(), files(), Style{});
    CHECK(screen == golden("end-failures", screen));
}

TEST_CASE("A GPU that was taken out of service is named while the study runs, and at its end", "[report]") {
    StudyByHand study(small_study(3, "first_rung = 3\n"));
    study.began(4, true);
    CHECK(out_of_service_text(study.tuner.state()).empty());
    study.train(1, 1, 0.5);
    study.train(2, 1, 0.6);
    for (const std::uint32_t trial : {0U, 4U, 5U}) study.over(trial, study::AttemptOutcome::failed, {"bad memory"});
    CHECK(out_of_service_text(study.tuner.state()) == "GPU-0 of n0");
    CHECK(live_head(study.tuner, figures(), Style{}).find("\nout of service: GPU-0 of n0\n") != std::string::npos);
    study.play_out(rising);
    REQUIRE(study.tuner.state().ended);
    CHECK(end_screen(study.tuner, figures(), files(), Style{})
              .find("left out  GPU-0 of n0: trials failed there one after the other\n") != std::string::npos);
}

TEST_CASE("the end screen of a study that was asked to stop", "[report]") {
    StudyByHand study(digits);
    study.began(4);
    study.train(0, 1, 0.5);
    study.train(1, 1, 0.6);
    study.stop("interrupted (SIGINT)");
    study.train(2, 1, 0.7);
    study.train(3, 1, 0.65);
    REQUIRE(study.tuner.state().ended);
    REQUIRE(study.tuner.state().outcome == study::StudyOutcome::resumable);
    const std::string screen = end_screen(study.tuner, figures(), files(), Style{});
    CHECK(screen == golden("end-resumable", screen));
}

TEST_CASE("the end screen of a study whose first trials all failed", "[report]") {
    const StudyByHand study = early_failures();
    const std::string screen = end_screen(study.tuner, figures(), files(), Style{});
    CHECK(screen == golden("end-early-failures", screen));
}

TEST_CASE("A study that ended early says what was never made, and offers to mend it instead of more trials",
          "[report]") {
    const StudyByHand study = early_failures();
    REQUIRE(study.tuner.state().trials.size() == 9);
    const std::string screen = finished_screen(study.tuner, files(), {});
    CHECK(screen == golden("finished-early", screen));
    CHECK_FALSE(contains(screen, "num_trials"));
}

TEST_CASE("A study that has tried all that there is lacks no trial", "[report]") {
    StudyByHand study(
        "[study]\nname = \"small\"\nmetric = \"score\"\nmode = \"max\"\nmax_iterations = 1\n[trainable]\nname = "
        "\"any\"\n"
        "[searcher]\ntype = \"grid\"\nstart = [{ a = 2 }]\n"
        "[space]\na = [1, 2]\nb = { domain = [3, 4], condition = \"a == 2\" }\n");
    study.began(1);
    study.play_out(curve);
    REQUIRE(study.tuner.state().ended);
    CHECK(study.tuner.spec().num_trials == 4); // `b` of the first is drawn: it could be a point of another start
    CHECK(contains(end_screen(study.tuner, figures(), files(), Style{}), ": 3 trials, 3 ok"));
    CHECK_FALSE(contains(finished_screen(study.tuner, files(), {}), "never made"));
}

TEST_CASE("An end without a screen says once what failed, and where the logs are", "[report]") {
    CHECK(end_sentence(early_failures().tuner, files()) ==
          "the first 9 trials all failed before a report; ranktune run digits.toml --restart-errored  # when it is "
          "mended: 9 again, then 3 new\n"
          "  failed    #0 #1 #2 #3 #4 #5 and 3 more: No module named 'datasets'\n"
          "  logs      digits/logs/; of the first one: ranktune logs digits 0");
}

TEST_CASE("Of many different messages five are shown, and a command that shows the others", "[report]") {
    StudyByHand study(digits);
    study.began(4);
    study.train(0, 1, 0.5);
    // The same words with a digit at another place: other words would take the hosts out of service.
    const std::vector<std::string> words{"no", "such", "file", "in", "this", "place", "at", "any", "time", "now"};
    for (std::size_t trial = 1; trial < 10; ++trial) {
        std::string message = "train:";
        for (std::size_t i = 0; i < words.size(); ++i) message += " " + words[i] + (i == trial ? "1" : "");
        study.over(static_cast<std::uint32_t>(trial), study::AttemptOutcome::failed, {message});
    }
    study.play_out(curve);
    REQUIRE(study.tuner.state().ended);
    const std::string screen = end_screen(study.tuner, figures(), files(), Style{});
    CHECK(screen == golden("end-many-messages", screen));
}

TEST_CASE("A trial that failed is not praised as the best, nor shown where that is no help", "[report]") {
    StudyByHand study(grid());
    study.began(1);
    for (std::uint32_t trial = 0; trial < 3; ++trial) {
        study.report(trial, 1, 0.5 - 0.1 * trial);
        study.over(trial, study::AttemptOutcome::failed, {"disk quota exceeded"});
    }
    REQUIRE(study.tuner.state().outcome == study::StudyOutcome::no_success);
    const std::string end = end_screen(study.tuner, figures(), files(), {});
    CHECK(end == golden("end-best-failed", end));
    const std::string again = finished_screen(study.tuner, files(), {});
    CHECK(contains(again, "best      #2 (failed)  loss 0.3000 at iteration 1 of 1\n"));
    CHECK(contains(again, "ranktune run digits.toml --restart-errored  # when it is mended\n"));
    CHECK_FALSE(contains(again, "ranktune best"));
    CHECK_FALSE(contains(again, "num_trials"));
    const std::string best = best_screen(study.tuner, "digits", {});
    CHECK(contains(best, "weights   no checkpoint was kept\nfailed    disk quota exceeded\n"));
}

TEST_CASE("A failed trial that left its checkpoint may be looked at", "[report]") {
    StudyByHand study(grid());
    study.began(1);
    study.train(0, 1, 0.5);
    study.report(1, 1, 0.25);
    study.saved(1, 1);
    study.over(1, study::AttemptOutcome::failed, {"disk quota exceeded"});
    study.train(2, 1, 0.5);
    REQUIRE(study.tuner.state().outcome == study::StudyOutcome::too_many_failures);
    CHECK(contains(end_screen(study.tuner, figures(), files(), {}), "best      #1 (failed)  loss 0.2500"));
    CHECK(contains(finished_screen(study.tuner, files(), {}), "# the best trial, which failed\n"));
}

TEST_CASE("A study whose time is used up gets more of it where failed trials are to be tried again", "[report]") {
    StudyByHand study(grid("time_budget = \"4s\"\n"));
    study.began(1);
    study.train(0, 1, 0.5);
    study.over(1, study::AttemptOutcome::failed, {"disk quota exceeded"});
    study.wait(std::chrono::seconds(3));
    study.over(2, study::AttemptOutcome::stopped);
    REQUIRE(study.tuner.state().end_reason == study::Reason::study_time);
    const std::string screen = finished_screen(study.tuner, files(), {});
    INFO(screen);
    CHECK(contains(screen, "grid is finished (3 trials, exit 3)"));
    CHECK(contains(screen, "ranktune run digits --restart-errored study.time_budget=8s"));
    CHECK(contains(screen, "time budget of 4 s is used up; 1 of 3 trials failed"));
}

TEST_CASE("Every screen keeps to the width of a narrow terminal, but for what is to be copied", "[report]") {
    StartInfo info = start_of(4, "4 nodes, 16 GPUs", "some where/digits");
    studydir::OpenedStudy found = opened(ended_well(), 0);
    found.workers_before = 2;
    found.changes = {{"study.num_trials", "60", "120"}};
    const StudyByHand well = ended_well();
    const StudyByHand early = early_failures();
    const StudyByHand without = ended_grid(std::numeric_limits<double>::quiet_NaN());
    tuner::State hurried;
    hurried.now = base::StudyTime{std::chrono::seconds(100)};
    hurried.pace.set_deadline(hurried.now + std::chrono::minutes(16));
    const FilesInfo there{1'234, 3'140'000, "some where/digits", "ranktune run digits.toml"};
    for (const std::size_t width : {20U, 30U, 40U, 60U, 80U}) {
        const Style style = columns(width);
        std::string text = start_screen(well.tuner.spec(), info, style) + resume_screen(found, "", info, style) +
                           deadline_line(hurried, 1'795'222'680, style) +
                           best_screen(well.tuner, there.directory, style, true);
        for (const StudyByHand* study : {&well, &early, &without})
            text += end_screen(study->tuner, figures(), there, style) + finished_screen(study->tuner, there, style);
        text += best_screen(without.tuner, there.directory, style);
        CHECK(contains(text, "some where/digits"));
        for (const auto& line : lines_of(text)) {
            if (display_width(line) <= width) continue;
            INFO(width << ": " << line);
            const std::string said = line.substr(line.find_first_not_of(' ', std::min(line.size(), label_width)));
            const bool command = said.rfind("ranktune ", 0) == 0 || line.rfind("ranktune ", 0) == 0;
            const bool path = said.rfind("some where/digits", 0) == 0 && !contains(said.substr(17), " ");
            const bool message = said.rfind("No module", 0) == 0;
            CHECK((command || path || message || !contains(said, " ")));
            if (width >= 40) CHECK((command || path)); // wide enough for every word of ranktune
        }
    }
}

TEST_CASE("A study that is finished says so, and how to get more out of it", "[report]") {
    StudyByHand study = half_way();
    study.play_out([](std::uint32_t trial, base::Iteration iteration) {
        return 0.01 * trial + 0.1 * static_cast<double>(iteration);
    });
    const std::string screen = finished_screen(study.tuner, files(), {});
    CHECK(screen == golden("finished", screen));
}

TEST_CASE("Commands to type next are never cut, however narrow the terminal and long the name", "[report]") {
    StudyByHand study = half_way();
    study.play_out(curve);
    FilesInfo there = files();
    there.directory = "/scratch/project_465000001/some folder/of studies/digits";
    there.command = "ranktune run a-study-file-with-a-long-name.toml study.num_trials=12 -o '" + there.directory + "'";
    for (const std::size_t width : {20U, 40U, 80U, 120U}) {
        const std::string screen = finished_screen(study.tuner, there, columns(width));
        INFO(screen);
        const std::string directory = "'" + there.directory + "'";
        CHECK(contains(screen, "next      ranktune best " + directory));
        CHECK(contains(screen, "          ranktune run " + directory + " study.num_trials=24"));
        CHECK(contains(screen, "          ranktune run " + directory + " --restart-errored"));
        CHECK(contains(screen, "          " + there.command + " --fresh"));
        CHECK_FALSE(contains(screen, "~ "));
    }
}

TEST_CASE("What was trained again does not count towards the share of a study that was trained", "[report]") {
    std::string text = small_study(2, "[failure]\nmax_failures = 1\n");
    text.replace(text.find("asha"), 4, "fifo");
    text.replace(text.find("num_trials = 6"), 14, "num_trials = 1");
    StudyByHand study(text);
    study.began(1);
    study.report(0, 1, 0.5);
    study.over(0, study::AttemptOutcome::failed, {"broken"});
    for (const base::Iteration iteration : {1U, 2U}) study.train(0, iteration, 0.5);
    REQUIRE(study.tuner.state().ended);
    CHECK(contains(end_screen(study.tuner, figures(), files(), {}),
                   "training  2 of 2 iterations (100 %), 1 more trained again, 1.0s of an estimated"));
}

TEST_CASE("A grid that is used up is not offered more trials", "[report]") {
    const StudyByHand study = ended_grid(0.5, "num_trials = 60\n");
    REQUIRE(study.tuner.state().ended);
    CHECK_FALSE(contains(finished_screen(study.tuner, files(), {}), "num_trials"));
    const std::string screen = end_screen(study.tuner, figures(), files(), {});
    CHECK(contains(screen, "training  3 of 3 iterations (100 %)"));
    CHECK(contains(screen, "lr=0.1 layers=[]\n"));
    CHECK(contains(start_screen(study.tuner.spec(), {}, {}), "plan      3 trials (the whole grid)"));
    CHECK(contains(start_screen(spec_of(grid("num_trials = 2\n")), {}, {}), "plan      2 trials \u00b7"));
    StudyByHand part(grid("num_trials = 2\n"));
    part.began(1);
    for (std::uint32_t trial = 0; trial < 2; ++trial) part.train(trial, 1, 0.5);
    CHECK(contains(finished_screen(part.tuner, files(), {}), "study.num_trials=3"));
    CHECK(contains(finished_screen(part.tuner, files(), {}), "# 1 more"));
}

TEST_CASE("A study without a finite value says so, and offers no best trial", "[report]") {
    const StudyByHand study = ended_grid(std::numeric_limits<double>::quiet_NaN());
    REQUIRE(study.tuner.state().ended);
    const std::string end = end_screen(study.tuner, figures(), files(), {});
    CHECK(end == golden("end-no-best", end));
    CHECK_FALSE(contains(finished_screen(study.tuner, files(), {}), "ranktune best"));
}

TEST_CASE("Too many failures are told with their number, their limit and the way on", "[report]") {
    StudyByHand study(grid());
    study.began(1);
    study.train(0, 1, 0.5);
    study.saved(1, 1);
    for (const std::uint32_t trial : {1U, 2U})
        study.over(trial, study::AttemptOutcome::failed, {"CUDA out of memory\nTraceback: many lines"});
    REQUIRE(study.tuner.state().outcome == study::StudyOutcome::too_many_failures);
    const std::string screen = end_screen(study.tuner, figures(), files(), {});
    CHECK(contains(screen, "why       2 of 3 trials failed; failure.tolerate = 0.05 allows 0\n"));
    CHECK(contains(screen, "ranktune run digits --restart-errored"));
    CHECK(contains(screen, "ranktune run digits --resume-errored"));
    CHECK(end_sentence(study.tuner, files()) ==
          "2 of 3 trials failed; failure.tolerate = 0.05 allows 0; ranktune run digits --restart-errored  # 2 failed, "
          "tried again\n"
          "  failed    #1 #2: CUDA out of memory\n"
          "  logs      digits/logs/; of the first one: ranktune logs digits 1");
    FilesInfo elsewhere = files();
    elsewhere.directory = "a run of mine"; // `ranktune best 'a run of mine'` runs nothing
    CHECK(contains(end_sentence(study.tuner, elsewhere),
                   "allows 0; ranktune run 'a run of mine' --restart-errored  # 2 failed, tried again\n"));
}

TEST_CASE("Failed tasks after trials are told with what runs them again, also beside failed trials", "[report]") {
    for (const bool tolerated : {true, false}) {
        StudyByHand study(
            grid() + "[after_trial]\ncommand = \"evaluate\"\n[failure]\ntolerate = " + (tolerated ? "0.5\n" : "0\n"));
        study.began(1);
        study.train(0, 1, 0.5);
        study.over(1, study::AttemptOutcome::failed, {"CUDA out of memory"});
        study.train(2, 1, 0.5);
        for (const std::uint32_t trial : {0U, 2U})
            study.step(study::AttemptOver{study::unit_of({study::SideTask::Kind::after_trial, base::TrialId{trial}}),
                                          base::AttemptId{1},
                                          base::Incarnation{1},
                                          study::AttemptOutcome::failed,
                                          {"exit code 2"}});
        REQUIRE(study.tuner.state().ended);
        Style wide;
        wide.width = 200;
        const std::string screen = end_screen(study.tuner, figures(), files(), wide);
        const std::string command = "ranktune run digits --restart-errored ";
        CHECK(screen.find(command) == screen.rfind(command)); // once
        CHECK(contains(screen,
                       tolerated ? "# 2 failed [after_trial] and 1 trial, again\n" : "# 1 failed, tried again\n"));
        CHECK(contains(finished_screen(study.tuner, files(), wide), "# 1 failed, tried again\n"));
    }
}

TEST_CASE("Who asked for the end is told in words", "[report]") {
    const auto sentence = [](const std::string& asked) {
        StudyByHand study(digits);
        study.began(4);
        study.stop(asked);
        for (const std::uint32_t trial : {0U, 1U}) study.over(trial, study::AttemptOutcome::paused);
        REQUIRE(study.tuner.state().ended);
        return end_sentence(study.tuner, files());
    };
    const std::string on = "; ranktune run digits  # goes on";
    CHECK(sentence("ranktune stop") == "asked to stop by `ranktune stop`" + on);
    CHECK(sentence("SIGTERM") == "asked to stop by SIGTERM" + on);
    CHECK(sentence("interrupted") == "interrupted" + on);
}

TEST_CASE("A trial whose first report lacked the metric is told with that", "[report]") {
    StudyByHand study(digits);
    study.began(2);
    study.report(0, 1, {{"accuracy", 0.5}});
    study.over(0, study::AttemptOutcome::stopped);
    REQUIRE(study.tuner.state().outcome == study::StudyOutcome::usage);
    const std::string screen = end_screen(study.tuner, figures(), files(), {});
    CHECK(contains(screen, "failed    #0: the first report lacked the study's metric"));
    CHECK(contains(screen, "next      ranktune run digits.toml --fresh"));
    CHECK_FALSE(contains(screen, "ranktune best"));
}

TEST_CASE("After a parameter that nobody reads there is nothing to try again, only to begin again", "[report]") {
    StudyByHand study(digits);
    study.began(4);
    study.train(0, 1, 0.5);
    study.stop("trial #0 never looked at lr of the study file", study::Reason::unread_parameter);
    for (const std::uint32_t trial : {1U, 2U})
        if (study.state(trial).phase == study::TrialPhase::running) study.over(trial, study::AttemptOutcome::paused);
    REQUIRE(study.tuner.state().outcome == study::StudyOutcome::usage);
    for (const std::string& screen :
         {end_screen(study.tuner, figures(), files(), {}), finished_screen(study.tuner, files(), {})}) {
        CHECK(contains(screen, "ranktune run digits.toml --fresh  # when it is mended\n"));
        CHECK_FALSE(contains(screen, "errored"));
        CHECK_FALSE(contains(screen, "num_trials"));
    }
}

TEST_CASE("When nothing succeeds, the first failure is told with its place, its time and its command", "[report]") {
    StudyByHand study(R"toml([study]
name = "program"
metric = "loss"
mode = "min"
num_trials = 1
max_iterations = 9
[trainable]
command = "python3 -u train.py --epochs={iterations} {args}"
[resources]
ranks = 2
[space]
lr = [0.5]
)toml");
    study.began(4);
    study.over(0, study::AttemptOutcome::failed, {"exit code 1: No module named 'datasets'"});
    REQUIRE(study.tuner.state().outcome == study::StudyOutcome::no_success);
    const std::string screen = end_screen(study.tuner, figures(), files(), {});
    CHECK(contains(screen, "first     #0 on n0, ranks 1-2, after 0.5s\n"));
    CHECK(contains(screen, "command   python3 -u train.py --epochs=9 --lr=0.5\n"));
    CHECK(contains(screen, "ranktune run digits.toml --restart-errored"));
    CHECK(contains(screen, "ranktune logs digits 0"));
}

TEST_CASE("a study that is ended at once says what was cut off, and how it goes on", "[report]") {
    StudyByHand study(digits);
    study.began(4);
    study.train(0, 1, 0.5);
    const std::string screen = cut_short_screen(study.tuner, figures(), files(), "a second Ctrl-C", Style{});
    CHECK(contains(screen, " stopped at once, resumable, in "));
    CHECK(contains(screen, "exit 75\n"));
    CHECK(contains(screen, "why       a second Ctrl-C\n"));
    CHECK(contains(screen, "cut off   #"));
    CHECK(contains(screen, "ranktune run digits"));
    CHECK(widest(screen) <= 80);
    // The same trials when nobody runs the study.
    Live live = figures();
    CHECK(contains(live_table(study.tuner, live, Style{}), "running 2"));
    live.interrupted = true;
    const std::string table = live_table(study.tuner, live, Style{});
    CHECK(contains(table, "interrupted 2"));
    CHECK_FALSE(contains(table, "run ->"));
    CHECK_FALSE(contains(table, "running"));
}

} // namespace endings_test
