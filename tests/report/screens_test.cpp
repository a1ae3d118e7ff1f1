// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <regex>
#include <string>
#include <tuple>

#include "golden.hpp"
#include "screens_by_hand.hpp"

namespace screens_test {

using namespace ranktune;
using namespace ranktune::report;
using namespace ranktune::report::testing;

namespace {

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

bool is_ascii(const std::string& text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

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
        if (width >= 46) CHECK(contains(text, "No space left")); // the cause is never cut
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
    live.directory = "runs of/this week";
    CHECK(contains(live_table(study.tuner, live, Style{}, 3), "more: ranktune status --all 'runs of/this week'\n"));
    CHECK(contains(live_table(study.tuner, live, columns(40), 3), " 4 more\n")); // a command is never truncated
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
    CHECK(expected_iterations(study.tuner) == 29); // rehearsed; a synchronous scheduler would need 12 + 4 * 2 + 1 * 6
    study.began(4);
    CHECK(expected_iterations(study.tuner) == 29);
    // Each trial is better than all before it: more pass a rung than planned.
    study.play_out([](std::uint32_t trial, base::Iteration iteration) {
        return 0.01 * trial + 0.001 * static_cast<double>(iteration);
    });
    const auto& state = study.tuner.state();
    REQUIRE(state.ended);
    REQUIRE(state.iterations > 29);
    CHECK(expected_iterations(study.tuner) == state.iterations); // a full bar, whatever was planned
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
        const bool active = trial.attempt.live;
        const double best = std::isnan(trial.best) ? -1.0 : trial.best;
        return std::tuple(active ? 0 : 1, -best, id.value());
    };
    for (std::size_t i = 1; i < order.size(); ++i) CHECK(key(order[i - 1]) < key(order[i]));
}

TEST_CASE("the start screen says what will happen", "[report]") {
    StartInfo info = start_of(4, "lab3", "./digits");
    info.launch_line = "mpirun -n 5 --oversubscribe --bind-to none ranktune run digits.toml";
    auto spec = spec_of(digits);
    const std::string screen = start_screen(spec, info, Style{});
    CHECK(screen == golden("start", screen));
    SECTION("without a launch line, with what cannot work, and with a long path") {
        spec.num_trials = 8;
        spec.max_iterations = 27;
        set_option(spec.scheduler, {"finish_top", 0});
        info.launch_line.clear();
        info.directory = "/scratch/project_465000001/some/deep/folder/of/studies/digits";
        const std::string warned = start_screen(spec, info, Style{});
        CHECK(warned == golden("start-warning", warned));
    }
}

TEST_CASE("The screen of a resumed study says what was found and what becomes of it", "[report]") {
    StartInfo info = start_of(2, "lab3", "digits");
    studydir::OpenedStudy found = opened(half_way(), 3);
    found.journal.records = 48112;
    found.journal.cut_bytes = 312;
    found.workers_before = 4;
    found.interrupted = {{study::TrialId{33}, 5, 3}, {study::TrialId{40}, 0, 0}};
    found.changes = {{"study.num_trials", "60", "120"}, {"stop.time", "", "\"2h\""}};
    found.reopened = {study::TrialId{4}, study::TrialId{5}};
    const std::string resumed =
        resume_screen(found, "job 81234 start 2 ended at 2026-11-20T14:02:11Z: time limit", info, {});
    CHECK(resumed == golden("resume", resumed));
    studydir::OpenedStudy early = opened(StudyByHand(digits), 2);
    early.journal.records = 1;
    early.workers_before = 2;
    const std::string at_the_beginning = resume_screen(early, "start 1 was cut off without a word", info, {});
    CHECK(at_the_beginning == golden("resume-early", at_the_beginning));
}

TEST_CASE("The deadline is told in the time of day, with the last new trial where that is known", "[report]") {
    constexpr std::int64_t wall = 1'795'222'680; // 2026-11-21T00:58:00Z
    tuner::State state;
    CHECK(deadline_line(state, wall, {}).empty());
    state.now = base::StudyTime{std::chrono::seconds(100)};
    state.pace.set_deadline(state.now + std::chrono::hours(30));
    CHECK(deadline_line(state, wall, {}) == "deadline  2026-11-22T06:58Z\n");
    // An iteration takes 600 s, the start of an attempt 60 s, a checkpoint 300 s.
    tuner::Trial trial;
    state.pace.learn_from_report(trial, base::StudyTime{std::chrono::seconds(660)}, 1, 600.0, 0.0, true);
    state.pace.learn_from_checkpoint(trial, base::StudyTime{std::chrono::seconds(960)}, 1, true);
    CHECK(deadline_line(state, wall, {}) == "deadline  2026-11-22T06:58Z, last new trial about 06:42Z\n");
    state.pace.set_deadline(state.now + std::chrono::minutes(16));
    CHECK(deadline_line(state, wall, {}) == "deadline  2026-11-21T01:14Z, no time for a new trial\n");
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
    CHECK(expected_iterations(study.tuner) == 29);
    CHECK(contains(live_table(study.tuner, {}, {}), "4 of about 29 iterations \u00b7 4/12 trials started"));
}

TEST_CASE("The best trial is what a narrow terminal keeps", "[report]") {
    const StudyByHand study = half_way();
    for (std::size_t width = 23; width <= 130; ++width) {
        const std::string text = live_table(study.tuner, figures(), columns(width));
        INFO(text);
        CHECK(contains(text, "best 0.9250  #2"));
        CHECK(contains(text, "29 iterations"));
        CHECK_FALSE(contains(lines_of(text).front(), "~"));
    }
}

TEST_CASE("The screen of a resumed study tells the first line of a long message", "[report]") {
    const std::string ended =
        "start 1 ended at 2026-11-20T14:02:11Z: exit code 1\nTraceback (most recent call last):\n  File ...";
    const std::string screen = resume_screen(opened(StudyByHand(digits), 2), ended, {}, {});
    CHECK(contains(screen, "exit code 1\n"));
    CHECK_FALSE(contains(screen, "Traceback"));
}

TEST_CASE("a traceback is no paragraph of the line of a resumed study", "[report]") {
    // In one line, as in the file `outcome` of an older version.
    std::string ended =
        "start 1 ended at 2026-11-20T14:02:11Z: exit code 1: ValueError: no last lines of its standard error: "
        "Traceback (most recent call last):";
    for (int i = 0; i < 40; ++i) ended += "   File \"/home/ann/train.py\", line " + std::to_string(i) + ", in f";
    ended += " ValueError: no data";
    const std::string screen = resume_screen(opened(StudyByHand(digits), 2), ended, {}, {});
    const std::string line = screen.substr(0, screen.find("\njournal "));
    CHECK(lines_of(line).size() <= 3);
    CHECK(contains(line, "ended at 2026-11-20T14:02:11Z: exit code 1"));
    CHECK(contains(line, "ValueError: no data"));
}

TEST_CASE("the best screen names metric, configuration and weights", "[report]") {
    StudyByHand study(digits);
    CHECK(best_screen(study.tuner, "digits", Style{}) ==
          "no trial has reported a finite val_accuracy; what there is:\nranktune status digits\n");
    study.began(4);
    study.play_out(curve);
    const std::string screen = best_screen(study.tuner, "digits", Style{});
    CHECK(screen == golden("best", screen));
}

TEST_CASE("the best trial says when its weights are not those of its best value", "[report]") {
    StudyByHand longer(R"toml([study]
name = "long"
metric = "loss"
mode = "min"
num_trials = 1
max_iterations = 4
seed = 1
[trainable]
name = "any"
[space]
lr = [0.1]
)toml");
    longer.began(1);
    for (base::Iteration it = 1; it <= 3; ++it) longer.report(0, it, it == 2 ? 0.25 : 0.5);
    longer.report(0, 4, 0.375);
    longer.saved(0, 4, 0.375);
    longer.over(0, study::AttemptOutcome::finished);
    const std::string screen = best_screen(longer.tuner, "long", Style{});
    INFO(screen);
    CHECK(contains(screen, "best      #0  loss 0.2500 at iteration 2 of 4; weights of iteration 4 (0.3750)"));
    CHECK(
        contains(screen, "\nweights   long/checkpoints/0/4-1.1.h5 (iteration 4)\n          The state of iteration 2,"));
    CHECK(contains(screen, "\n          ranktune checkpoint long best\n"));
    const std::string end = end_screen(longer.tuner, {}, {9, 1, "long", "ranktune run long.toml"}, Style{});
    CHECK(contains(end, "loss 0.2500 at iteration 2 of 4; weights of iteration 4 (0.3750)"));
    CHECK(contains(live_table(longer.tuner, {}, Style{}, 10), "at it 2; weights of iteration 4 (0.3750)"));
    CHECK_FALSE(contains(end_screen(ended_well().tuner, {}, files(), Style{}), "weights of"));
}

TEST_CASE("no deadline is not spoken of where there is no job", "[report]") {
    const StudyByHand study = half_way();
    CHECK_FALSE(contains(live_table(study.tuner, figures(), Style{}), "deadline"));
    Live in_a_job = figures();
    in_a_job.deadline = "no deadline";
    CHECK(contains(lines_of(live_table(study.tuner, in_a_job, Style{})).front(), "busy \u00b7 no deadline"));
}

TEST_CASE("the total of a live view never goes back, and is called an estimate where it is one", "[report]") {
    StudyByHand study(digits);
    study.began(4);
    SteadyTotal total;
    CHECK(total.update(study.tuner) == 29);
    // Each trial is better than all before it: more pass a rung than planned.
    std::uint64_t most = 29;
    bool back = false;
    for (bool moved = true; moved && !study.tuner.state().ended;) {
        moved = false;
        for (std::uint32_t i = 0; i < study.tuner.state().trials.size() && !study.tuner.state().ended; ++i) {
            if (study.state(i).phase != study::TrialPhase::running) continue;
            moved = true;
            const base::Iteration next = study.state(i).attempt.iteration + 1;
            if (next == 5)
                study.over(i, study::AttemptOutcome::failed, {"its rest is not trained"});
            else
                study.train(i, next, 0.01 * i + 0.001 * static_cast<double>(next));
            if (study.tuner.state().ended) break;
            Live live = figures();
            live.total = total.update(study.tuner);
            CHECK(live.total >= most);
            back = back || expected_iterations(study.tuner) < most;
            most = live.total;
            CHECK(
                contains(live_table(study.tuner, live, Style{}), " of about " + std::to_string(most) + " iterations"));
        }
    }
    CHECK(most > 29);
    CHECK(back); // what it is made of does
    CHECK(contains(live_table(ended_grid(0.5).tuner, {}, {}), "3/3 iterations"));
    StudyByHand exact(grid());
    exact.began(1);
    CHECK(contains(live_table(exact.tuner, {}, {}), "0/3 iterations"));
}

TEST_CASE("in a chain of jobs the next step is the next job's", "[report]") {
    StudyByHand study(digits);
    study.began(4);
    study.stop("the job's time is nearly up", study::Reason::deadline);
    for (std::uint32_t i = 0; i < 2; ++i) study.train(i, 1, 0.5);
    REQUIRE(study.tuner.state().outcome == study::StudyOutcome::resumable);
    FilesInfo info = files();
    CHECK(contains(end_screen(study.tuner, {}, info, Style{}), "next      ranktune run digits     # goes on\n"));
    info.next_job = "1202";
    const std::string screen = end_screen(study.tuner, {}, info, Style{});
    CHECK(contains(screen,
                   "next      squeue --jobs=1202      # job 1202 goes on by itself\n"
                   "          ranktune status digits  # what there is\n"));
    CHECK_FALSE(contains(screen, "ranktune run"));
}

} // namespace screens_test
