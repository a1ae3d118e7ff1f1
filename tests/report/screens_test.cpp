// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "golden.hpp"
#include "report/screens.hpp"
#include "study_by_hand.hpp"
#include "support/catch.hpp"

using namespace ranktune;
using namespace ranktune::report;
using ranktune::report::testing::golden;
using ranktune::report::testing::spec_of;
using ranktune::report::testing::StudyByHand;

namespace {

constexpr const char* digits = R"toml([study]
name = "digits"
metric = "val_accuracy"
mode = "max"
num_trials = 12
max_iterations = 9
seed = 1
[trainable]
name = "any"
[resources]
ranks = 2
[space]
lr = "loguniform(1e-4, 1.0)"
batch_size = [32, 64, 128]
hidden = [[64], [128, 64], [256, 128]]
optimizer = ["sgd", "adam"]
momentum = { domain = "uniform(0.5, 0.99)", condition = "optimizer == 'sgd'" }
constant = 3
[scheduler]
type = "asha"
)toml";

constexpr const char* one_trial = R"toml([study]
name = "one"
metric = "loss"
mode = "min"
num_trials = 3
max_iterations = 4
seed = 1
[trainable]
name = "any"
[space]
name = ["größe", "学習率の初期値はとても小さい", "naïve"]
)toml";

Live figures() {
    Live live;
    live.elapsed_s = 72.0;
    live.left_s = 45.0;
    live.busy_share = 0.99;
    live.starting_share = 0.006;
    live.idle_share = 0.004;
    return live;
}

/// Trials in most states: running, paused at several rungs, failed twice, and one with NaN.
StudyByHand half_way() {
    StudyByHand study(digits);
    study.began(4);
    study.train(0, 1, 0.75);
    study.train(1, 1, 0.5);
    study.train(2, 1, 0.8125);
    study.train(3, 1, std::numeric_limits<double>::quiet_NaN());
    for (std::uint32_t i = 0; i < study.tuner.state().trials.size(); ++i) {
        if (study.state(i).phase != study::TrialPhase::running) continue;
        if (i == 2) study.train(2, 2, 0.9);
        if (i == 2) study.train(2, 3, 0.925);
    }
    study.over(4, study::AttemptOutcome::failed, "loss is NaN at iteration 1");
    return study;
}

double curve(std::uint32_t trial, base::Iteration iteration) {
    return 0.9 - 0.01 * ((7 * trial) % 12) - 0.2 / static_cast<double>(iteration);
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

std::size_t widest(const std::string& text) {
    std::size_t width = 0;
    for (const auto& line : lines_of(text)) width = std::max(width, display_width(line));
    return width;
}

bool is_ascii(const std::string& text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

Style columns(std::size_t width) {
    Style style;
    style.width = width;
    return style;
}

FilesInfo files() { return {9, 3'140'000, "digits", "ranktune run digits.toml"}; }

/// A grid of three, each trained in one iteration.
std::string grid(const std::string& num_trials = {}) {
    return R"toml([study]
name = "grid"
metric = "loss"
mode = "min"
max_iterations = 1
)toml" + num_trials +
           R"toml([trainable]
name = "any"
[space]
lr = [0.1, 0.2, 0.3]
layers = [[]]
[searcher]
type = "grid"
)toml";
}

/// The study above, ended, with this loss everywhere.
StudyByHand ended_grid(double loss, const std::string& num_trials = {}) {
    StudyByHand study(grid(num_trials));
    study.began(1);
    for (std::uint32_t trial = 0; trial < 3; ++trial) study.train(trial, 1, loss);
    return study;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

} // namespace

TEST_CASE("the live table shows running trials first, then the best", "[report]") {
    const StudyByHand study = half_way();
    const std::string table = live_table(study.tuner, figures(), Style{});
    CHECK(table == golden("live-80", table));
    CHECK(widest(table) <= 80);
}

TEST_CASE("the live table says at once when checkpoints cannot be written, and why", "[report]") {
    const StudyByHand study = half_way();
    Live live = figures();
    live.checkpoints_missed = 3;
    live.checkpoint_error =
        "cannot write '/scratch/ann/studies/digits/checkpoints/2/3-1.1.h5.tmp': No space left on device\nmore";
    live.fallbacks = 1;
    const std::string table = live_table(study.tuner, live, Style{});
    CHECK(table == golden("live-missed", table));
    CHECK(lines_of(table).size() == lines_of(live_table(study.tuner, figures(), Style{})).size() + 2);
    for (std::size_t width = 20; width <= 130; ++width) {
        const std::string text = live_table(study.tuner, live, columns(width));
        CHECK(widest(text) <= width);
        if (width >= 46) CHECK(contains(text, "No space left")); // the cause is what is never cut
    }
    const std::string line = status_line(study.tuner, live, Style{});
    CHECK(lines_of(line).size() == 1);
    CHECK(contains(line, "3 checkpoints not written: cannot write '/scratch/ann/"));
    CHECK(contains(line, "No space left on device \u00b7 1 checkpoint damaged and given up"));
}

TEST_CASE("a narrow terminal loses hyper-parameters, never the metric", "[report]") {
    const StudyByHand study = half_way();
    const std::string table = live_table(study.tuner, figures(), columns(40));
    CHECK(table == golden("live-40", table));
    for (std::size_t width = 20; width <= 130; ++width) {
        const std::string text = live_table(study.tuner, figures(), columns(width));
        INFO(text);
        CHECK(widest(text) <= width);
        CHECK(text.find(" trial") != std::string::npos);
    }
}

TEST_CASE("a long list of trials is cut, and the rest is counted", "[report]") {
    const StudyByHand study = half_way();
    const std::size_t trials = study.tuner.state().trials.size();
    REQUIRE(trials > 4);
    Live live = figures();
    live.directory = "runs/7";
    const auto lines = lines_of(live_table(study.tuner, live, Style{}, 3));
    const auto all = lines_of(live_table(study.tuner, live, Style{}, 1000));
    CHECK(lines.size() == all.size() - trials + 3 + 1);
    CHECK(lines.back() == " " + std::to_string(trials - 3) + " more: ranktune status --all runs/7");
}

TEST_CASE("the table of a study without a trial is its head", "[report]") {
    const StudyByHand study(digits);
    const std::string table = live_table(study.tuner, Live{}, Style{});
    CHECK(table == golden("live-empty", table));
}

TEST_CASE("values that are not ASCII keep the columns in line", "[report]") {
    StudyByHand study(one_trial);
    study.began(3);
    for (std::uint32_t i = 0; i < 3; ++i) study.report(i, 1, 0.25 * (i + 1));
    Style style;
    const std::string table = live_table(study.tuner, figures(), style);
    CHECK(table == golden("live-unicode", table));
    CHECK(widest(table) <= 80);
    style.utf8 = false;
    const std::string plain = live_table(study.tuner, figures(), style);
    CHECK(is_ascii(plain));
    CHECK(is_ascii(status_line(study.tuner, figures(), style)));
    CHECK(is_ascii(end_screen(study.tuner, figures(), files(), style)));
    CHECK(is_ascii(best_screen(study.tuner, "dir-\u00e9", style)));
    CHECK(is_ascii(start_screen(study.tuner.spec(), {}, style)));
    CHECK(widest(plain) == widest(table));
}

TEST_CASE("colour marks the best and the failed trials and changes nothing else", "[report]") {
    const StudyByHand study = half_way();
    Style style;
    style.colour = true;
    const std::string table = live_table(study.tuner, figures(), style);
    for (const auto& line : lines_of(table)) {
        if (line.find("*  #") != std::string::npos) CHECK(line.rfind("\x1b[32m", 0) == 0);
        if (line.find("failed  ") != std::string::npos && line.find('#') != std::string::npos)
            CHECK(line.rfind("\x1b[31m", 0) == 0);
    }
    CHECK(table.find("\x1b[32m") != std::string::npos);
    CHECK(table.find("\x1b[31m") != std::string::npos);
    const std::string stripped = std::regex_replace(table, std::regex("\x1b\\[[0-9]*m"), "");
    CHECK(stripped == live_table(study.tuner, figures(), Style{}));
}

TEST_CASE("progress counts what is certain once that is more than the plan", "[report]") {
    StudyByHand study(digits);
    CHECK(expected_iterations(study.tuner) == 26); // 12 + 4 * 2 + 1 * 6
    study.began(4);
    CHECK(expected_iterations(study.tuner) == 26);
    // Each trial is better than all before it: more of them pass a rung than the plan has.
    study.play_out([](std::uint32_t trial, base::Iteration iteration) {
        return 0.01 * trial + 0.001 * static_cast<double>(iteration);
    });
    const auto& state = study.tuner.state();
    REQUIRE(state.ended);
    REQUIRE(state.iterations > 26);
    CHECK(expected_iterations(study.tuner) == state.iterations); // a full bar, whatever the plan was
    CHECK(live_table(study.tuner, {}, {}).find("[##############################]") != std::string::npos);
}

TEST_CASE("the status line is one line", "[report]") {
    const StudyByHand study = half_way();
    const std::string line = status_line(study.tuner, figures(), Style{});
    CHECK(line == golden("status-line", line));
    CHECK(lines_of(line).size() == 1);
}

TEST_CASE("trials are ordered by phase, then metric, then number; NaN is last", "[report]") {
    const StudyByHand study = half_way();
    const auto order = by_rank(study.tuner);
    const auto& state = study.tuner.state();
    REQUIRE(order.size() == state.trials.size());
    const auto key = [&](base::TrialId id) {
        const auto& trial = state.trial(id);
        const bool active = trial.phase == study::TrialPhase::running || trial.phase == study::TrialPhase::ending;
        const double best = std::isnan(trial.best) ? -1.0 : trial.best;
        return std::tuple(active ? 0 : 1, -best, id.value());
    };
    for (std::size_t i = 1; i < order.size(); ++i) CHECK(key(order[i - 1]) < key(order[i]));
}

TEST_CASE("the start screen says what will happen", "[report]") {
    StartInfo info;
    info.version = "ranktune 0.1.0 (a1b2c3d)";
    info.mpi = "Open MPI 4.1.4";
    info.hdf5 = "HDF5 1.10.8";
    info.launch_line = "mpirun -n 5 --oversubscribe --bind-to none ranktune run digits.toml";
    info.workers = 4;
    info.hosts = "lab3";
    info.directory = "./digits";
    auto spec = spec_of(digits);
    const std::string screen = start_screen(spec, info, Style{});
    CHECK(screen == golden("start", screen));
    SECTION("without a launch line, with what cannot work, and with a long path") {
        spec.num_trials = 8;
        spec.max_iterations = 27;
        spec.scheduler.finish_top = 0;
        info.launch_line.clear();
        info.directory = "/scratch/project_465000001/some/deep/folder/of/studies/digits";
        const std::string warned = start_screen(spec, info, Style{});
        CHECK(warned == golden("start-warning", warned));
    }
}

TEST_CASE("the end screen of a study that went well", "[report]") {
    StudyByHand study(digits);
    study.began(4);
    study.play_out(curve);
    REQUIRE(study.tuner.state().ended);
    const std::string screen = end_screen(study.tuner, figures(), files(), Style{});
    CHECK(screen == golden("end-ok", screen));
    CHECK(widest(screen) <= 80);
    CHECK(screen.find("\x1b") == std::string::npos);
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
        study.over(trial, study::AttemptOutcome::failed, message);
    }
    study.play_out(curve);
    REQUIRE(study.tuner.state().ended);
    const std::string screen = end_screen(study.tuner, figures(), files(), Style{});
    CHECK(screen == golden("end-failures", screen));
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
    StudyByHand study(digits);
    study.began(4);
    for (std::uint32_t trial = 0; trial < 12 && !study.tuner.state().ended; ++trial) {
        if (trial < study.tuner.state().trials.size() && study.state(trial).phase == study::TrialPhase::running)
            study.over(trial, study::AttemptOutcome::failed, "No module named 'datasets'");
    }
    REQUIRE(study.tuner.state().ended);
    REQUIRE(study.tuner.state().outcome == study::StudyOutcome::no_success);
    const std::string screen = end_screen(study.tuner, figures(), files(), Style{});
    CHECK(screen == golden("end-early-failures", screen));
}

TEST_CASE("The screen of a resumed study says what was found and what becomes of it", "[report]") {
    const StudyByHand study = half_way();
    StartInfo info;
    info.version = "ranktune 0.1.0 (a1b2c3d)";
    info.mpi = "Open MPI 4.1.4";
    info.hdf5 = "HDF5 1.10.8";
    info.workers = 2;
    info.hosts = "lab3";
    info.directory = "digits";
    ResumeInfo found;
    found.start = 3;
    found.ended = "job 81234 start 2 ended at 2026-11-20T14:02:11Z: time limit";
    found.records = 48112;
    found.cut_bytes = 312;
    found.workers_before = 4;
    found.running = {{study::TrialId{33}, 5, 3}, {study::TrialId{40}, 0, 0}};
    found.changes = {{"study.num_trials", "60", "120"}, {"stop.time", "", "\"2h\""}};
    found.reopened = 2;
    const std::string resumed = resume_screen(study.tuner, info, found, {});
    CHECK(resumed == golden("resume", resumed));
    ResumeInfo early;
    early.start = 2;
    early.ended = "start 1 was cut off without a word";
    early.records = 1;
    early.workers_before = 2;
    const std::string at_the_beginning = resume_screen(StudyByHand(digits).tuner, info, early, {});
    CHECK(at_the_beginning == golden("resume-early", at_the_beginning));
}

TEST_CASE("The deadline is told in the time of day, with the last new trial where that is known", "[report]") {
    constexpr std::int64_t wall = 1'795'222'680; // 2026-11-21T00:58:00Z
    tuner::State state;
    CHECK(deadline_line(state, wall).empty());
    state.now = base::StudyTime{std::chrono::seconds(100)};
    state.deadline = state.now + std::chrono::hours(30);
    CHECK(deadline_line(state, wall) == "deadline  2026-11-22T06:58Z\n");
    state.pace = 600.0; // of an iteration
    state.starting = 60.0;
    state.saving = 300.0;
    CHECK(deadline_line(state, wall) == "deadline  2026-11-22T06:58Z, last new trial about 06:42Z\n");
    state.deadline = state.now + std::chrono::minutes(16);
    CHECK(deadline_line(state, wall) == "deadline  2026-11-21T01:14Z, no time for a new trial\n");
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
        study.over(trial, study::AttemptOutcome::failed, "CUDA out of memory\nTraceback: many lines");
    REQUIRE(study.tuner.state().outcome == study::StudyOutcome::too_many_failures);
    const std::string screen = end_screen(study.tuner, figures(), files(), {});
    CHECK(contains(screen, "why       2 of 3 trials failed; failure.tolerate = 0.05 allows 0\n"));
    CHECK(contains(screen, "ranktune run digits --restart-errored"));
    CHECK(contains(screen, "ranktune run digits --resume-errored"));
    CHECK(end_sentence(study.tuner, files()) ==
          "2 of 3 trials failed; failure.tolerate = 0.05 allows 0; ranktune run digits --restart-errored  # 2 failed, "
          "tried again");
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
    study.over(0, study::AttemptOutcome::failed, "exit code 1: No module named 'datasets'");
    REQUIRE(study.tuner.state().outcome == study::StudyOutcome::no_success);
    const std::string screen = end_screen(study.tuner, figures(), files(), {});
    CHECK(contains(screen, "first     #0 on n0, ranks 1-2, after 0.5s\n"));
    CHECK(contains(screen, "command   python3 -u train.py --epochs=9 --lr=0.5\n"));
    CHECK(contains(screen, "ranktune run digits.toml --restart-errored"));
    CHECK(contains(screen, "ranktune logs digits 0"));
}

TEST_CASE("One of a kind is told in the singular", "[report]") {
    StudyByHand study(R"toml([study]
name = "one"
metric = "loss"
mode = "min"
num_trials = 1
max_iterations = 1
[trainable]
name = "any"
[space]
lr = [0.5]
)toml");
    StartInfo info;
    info.workers = 1;
    std::string text = start_screen(study.tuner.spec(), info, {});
    study.began(1);
    text += live_table(study.tuner, {}, {}) + status_line(study.tuner, {}, {});
    study.train(0, 1, 0.5);
    FilesInfo one{1, 1, "one", "ranktune run one.toml"};
    text += end_screen(study.tuner, {}, one, {}) + finished_screen(study.tuner, one, {});
    text += live_table(study.tuner, {}, {}) + status_line(study.tuner, {}, {});
    INFO(text);
    CHECK_FALSE(std::regex_search(text, std::regex("(^|[^0-9,.])1 [a-z]+s\\b")));
    CHECK(contains(text, "0/1 iteration \u00b7 1/1 trial started"));
}

TEST_CASE("A study that was stopped shows how far it is, not that it is over", "[report]") {
    StudyByHand study(digits);
    study.began(4);
    study.train(0, 1, 0.5);
    study.train(1, 1, 0.6);
    study.stop("SIGTERM");
    study.train(2, 1, 0.7);
    study.train(3, 1, 0.65);
    REQUIRE(study.tuner.state().outcome == study::StudyOutcome::resumable);
    CHECK(expected_iterations(study.tuner) == 26);
    CHECK(contains(live_table(study.tuner, {}, {}), "4/26 iterations \u00b7 4/12 trials started"));
}

TEST_CASE("The best trial is what a narrow terminal keeps", "[report]") {
    const StudyByHand study = half_way();
    for (std::size_t width = 23; width <= 130; ++width) {
        const std::string text = live_table(study.tuner, figures(), columns(width));
        INFO(text);
        CHECK(contains(text, "best 0.9250  #2"));
        CHECK(contains(text, "6/26 iterations"));
        CHECK_FALSE(contains(lines_of(text).front(), "~"));
    }
}

TEST_CASE("The screen of a resumed study tells the first line of a long message", "[report]") {
    ResumeInfo found;
    found.start = 2;
    found.ended = "start 1 ended at 2026-11-20T14:02:11Z: exit code 1\nTraceback (most recent call last):\n  File ...";
    const std::string screen = resume_screen(StudyByHand(digits).tuner, {}, found, {});
    CHECK(contains(screen, "exit code 1\n"));
    CHECK_FALSE(contains(screen, "Traceback"));
}

TEST_CASE("the best screen names metric, configuration and weights", "[report]") {
    StudyByHand study(digits);
    CHECK(best_screen(study.tuner, "digits", Style{}) ==
          "no trial has reported a finite val_accuracy; what there is: ranktune status digits\n");
    study.began(4);
    study.play_out(curve);
    const std::string screen = best_screen(study.tuner, "digits", Style{});
    CHECK(screen == golden("best", screen));
}
