// SPDX-License-Identifier: Apache-2.0
// Commands beside the trials: before the first, after each, after the last. Each end is recorded once, and decides
// nothing about trials.

#include <string>
#include <vector>

#include "tuner/small_core.hpp"

namespace ranktune::tuner::side_tasks_test {
namespace {

using testing::small_study;
using testing::SmallCore;
using SideKind = study::SideTask::Kind;
using SidePhase = SideWork::Phase;

constexpr study::SideTask first{SideKind::before, {}};
constexpr study::SideTask last{SideKind::after, {}};
study::SideTask after(std::uint32_t trial) { return {SideKind::after_trial, TrialId{trial}}; }

const std::string prepare = "[before]\ncommand = \"prepare\"\n";
const std::string evaluate = "[after_trial]\ncommand = \"evaluate {checkpoint}\"\n";
const std::string plot = "[after]\ncommand = \"plot\"\n";

SmallCore study_with(const std::string& tables, const std::string& study = "") {
    return SmallCore(small_study("max_iterations = 3\n" + study, tables));
}

const SideWork& work_of(const SmallCore& core, const study::SideTask& task) {
    const SideWork* work = core.state().side.find(task);
    REQUIRE(work != nullptr);
    return *work;
}

void side_ends(SmallCore& core, const study::SideTask& task, AttemptOutcome outcome = AttemptOutcome::finished,
               const std::string& message = "") {
    core.step(study::AttemptOver{unit_of(task), work_of(core, task).attempt, core.incarnation(), outcome, {message}});
}

void side_reports(SmallCore& core, const study::SideTask& task, const std::vector<study::NamedMetric>& metrics) {
    core.step(study::ReportArrived{unit_of(task), work_of(core, task).attempt, core.incarnation(), 1, 1.0, metrics});
}

/// Trains the trial to its end, and its group is told to save.
void finishes(SmallCore& core, std::uint32_t trial, double value) {
    for (Iteration i = 1; i <= 3; ++i) core.report(trial, i, value);
    core.saved(trial, 3, value);
    core.over(trial, AttemptOutcome::stopped);
}

template <class Command>
std::vector<Command> told(const SmallCore& core) {
    std::vector<Command> found;
    for (const auto& command : core.commands())
        if (const auto* each = std::get_if<Command>(&command)) found.push_back(*each);
    return found;
}

} // namespace

TEST_CASE("Numbers of side tasks are no trial's, and read back", "[tuner]") {
    for (const study::SideTask& task : {first, last, after(0), after(7), after(2'000'000'000)}) {
        CHECK(study::side_task_of(unit_of(task)) == task);
        CHECK(unit_of(task).value() >= 1U << 31U);
    }
    CHECK_FALSE(study::side_task_of(TrialId{(1U << 31U) - 1}));
    CHECK(describe(after(7)) == "after_trial 7");
    CHECK(study::unit_text(unit_of(after(7))) == "7.after");
    CHECK(study::unit_text(TrialId{7}) == "7");
}

TEST_CASE("No trial begins before the study is prepared, which happens once", "[tuner]") {
    SmallCore core = study_with(prepare);
    core.began({"n0", "n1"});
    CHECK(core.state().trials.empty());
    const auto starts = told<study::StartTrial>(core);
    REQUIRE(starts.size() == 1);
    CHECK(starts[0].trial == unit_of(first));
    CHECK(starts[0].ranks == std::vector{Rank{2}});
    // The job dies: it runs again.
    core.began({"n0", "n1"}, study::JobDeath{});
    CHECK(work_of(core, first).attempt == AttemptId{2});
    side_reports(core, first, {{"rows", 10.0}});
    side_ends(core, first);
    CHECK(core.state().trials.in(TrialPhase::running) == 2);
    CHECK(core.state().metrics.empty()); // none of the study's
    CHECK(work_of(core, first).metrics == std::vector<study::NamedMetric>{{"rows", 10.0}});
    core.began({"n0", "n1"});
    CHECK(work_of(core, first).attempt == AttemptId{2});
    CHECK(core.record<study::SideStarted>() == nullptr);
    CHECK(core.state().trials.in(TrialPhase::running) == 2);
}

TEST_CASE("A study that cannot be prepared ends before its first trial, and can be tried again", "[tuner]") {
    SmallCore core = study_with(prepare + "[failure]\nmax_failures = 1\n");
    core.began({"n0"});
    side_ends(core, first, AttemptOutcome::failed, "exit code 1");
    CHECK(work_of(core, first).attempt == AttemptId{2}); // failure.max_failures
    CHECK_FALSE(core.state().ended);
    side_ends(core, first, AttemptOutcome::failed, "exit code 1");
    REQUIRE(core.state().ended);
    CHECK(core.state().trials.empty());
    CHECK(core.state().outcome == StudyOutcome::no_success);
    CHECK(core.state().end_reason == Reason::before_failed);
    CHECK(core.state().end_message ==
          "[before] failed, so no trial has begun: exit code 1. Correct it, and the same command tries it again");
    CHECK_FALSE(is_over(core.state()));
    core.began({"n0"});
    CHECK(work_of(core, first).phase == SidePhase::running);
    side_ends(core, first);
    CHECK(core.state().trials.in(TrialPhase::running) == 1);
}

TEST_CASE("Each trial that ends saves its last state, which stays until its task is over", "[tuner]") {
    SmallCore core = study_with(evaluate);
    core.began({"n0", "n1"});
    finishes(core, 0, 0.9);
    for (Iteration i = 1; i <= 3; ++i) core.report(1, i, 0.1);
    const auto verdicts = told<study::Decide>(core);
    REQUIRE(verdicts.size() == 1);
    CHECK(verdicts[0].verdict.verb == Verb::stop); // not discard, although trial 0 leads
    core.saved(1, 3, 0.1);
    core.over(1, AttemptOutcome::stopped);
    // Trials 2 and 3 come first.
    CHECK(work_of(core, after(1)).phase == SidePhase::waiting);
    core.over(2, AttemptOutcome::failed);
    REQUIRE(work_of(core, after(0)).phase == SidePhase::running);
    CHECK(core.state().side.find(after(2)) == nullptr); // it has failed
    core.over(3, AttemptOutcome::failed);
    REQUIRE(work_of(core, after(1)).phase == SidePhase::running);
    CHECK(work_of(core, after(1)).checkpoint->path == "1/3");
    const auto starts = told<study::StartTrial>(core);
    REQUIRE(starts.size() == 1);
    CHECK(starts[0].configuration == core.trial(1).configuration);
    CHECK(std::get<CheckpointRef>(starts[0].from).path == "1/3");
    REQUIRE(core.trial(1).checkpoints.size() == 1);
    side_reports(core, after(1), {{"test_score", 0.2}, {"score", 99.0}});
    CHECK(core.state().best == TrialId{0});
    CHECK(core.trial(1).best == 0.1);
    side_ends(core, after(1));
    CHECK(core.trial(1).checkpoints.empty());
    REQUIRE(told<study::DeleteCheckpoint>(core).size() == 1);
    CHECK(core.trial(0).checkpoints.size() == 1); // the result
    CHECK_FALSE(core.state().ended);
    side_ends(core, after(0), AttemptOutcome::failed, "exit code 2");
    CHECK(core.trial(0).phase == TrialPhase::finished);
    CHECK(work_of(core, after(0)).phase == SidePhase::failed);
    CHECK(core.state().ended);
}

TEST_CASE("A task that failed keeps its checkpoint, and runs again alone when a user asks for it", "[tuner]") {
    SmallCore core = study_with(evaluate + plot + "[failure]\nmax_failures = 1\n", "num_trials = 2\n");
    const auto to_repeat = [&core] { return tasks_to_repeat(core.state(), core.core().spec()); };
    core.began({"n0", "n1"});
    finishes(core, 0, 0.9);
    finishes(core, 1, 0.1);
    side_ends(core, after(0));
    for (int attempt = 1; attempt <= 2; ++attempt) side_ends(core, after(1), AttemptOutcome::failed, "exit code 2");
    side_ends(core, last);
    REQUIRE(is_over(core.state()));
    CHECK(core.trial(1).checkpoints.size() == 1); // although trial 0 leads
    REQUIRE(to_repeat() == std::vector{unit_of(after(1))});
    core.began({"n0"}); // without the option nothing runs
    CHECK(is_over(core.state()));
    for (const bool well : {false, true}) {
        core.reopen(unit_of(after(1)));
        CHECK_FALSE(core.state().ended);
        CHECK(to_repeat().empty());
        core.began({"n0"});
        REQUIRE(work_of(core, after(1)).phase == SidePhase::running);
        CHECK(work_of(core, after(1)).checkpoint->path == "1/3");
        side_ends(core, after(1), AttemptOutcome::failed, "exit code 2"); // failure.max_failures counts anew
        REQUIRE(work_of(core, after(1)).phase == SidePhase::running);
        side_ends(core, after(1), well ? AttemptOutcome::finished : AttemptOutcome::failed);
        REQUIRE(work_of(core, last).phase == SidePhase::running); // it may read what the task reported
        side_ends(core, last);
        CHECK(core.state().outcome == StudyOutcome::ok);
        CHECK(core.trial(1).checkpoints.size() == (well ? 0 : 1));
    }
    CHECK(core.trial(0).checkpoints.size() == 1);
    CHECK(core.trial(1).attempt.id == AttemptId{1}); // it was not trained again
}

TEST_CASE("A task that is tried again waits for its trial, if that is, too", "[tuner]") {
    SmallCore core =
        study_with("[after_trial]\ncommand = \"evaluate\"\n[resources]\nhelpers = 1\n", "num_trials = 2\n");
    core.began({"n0", "n1"});
    for (const std::uint32_t trial : {0U, 1U}) {
        finishes(core, trial, 0.5);
        side_ends(core, after(trial), AttemptOutcome::failed, "exit code 2");
    }
    REQUIRE(is_over(core.state()));
    for (const TrialId unit : {TrialId{0}, TrialId{1}, unit_of(after(1))}) core.reopen(unit);
    core.began({"n0", "n1"});
    REQUIRE(core.trial(1).phase == TrialPhase::waiting);
    CHECK(work_of(core, after(1)).phase == SidePhase::waiting); // although the helper is free
    finishes(core, 0, 0.5);
    finishes(core, 1, 0.5);
    CHECK(work_of(core, after(1)).phase == SidePhase::running);
    side_ends(core, after(1));
    CHECK(is_over(core.state()));
}

TEST_CASE("What a failed task would read goes with its command", "[tuner]") {
    SmallCore core = study_with(evaluate, "num_trials = 2\n");
    core.began({"n0", "n1"});
    finishes(core, 0, 0.9);
    finishes(core, 1, 0.1);
    side_ends(core, after(0));
    side_ends(core, after(1), AttemptOutcome::failed, "exit code 2");
    REQUIRE(core.trial(1).checkpoints.size() == 1);
    study::StudySpec spec = core.core().spec();
    spec.after_trial = {};
    core.change(study::resolved_toml(spec));
    CHECK(tasks_to_repeat(core.state(), core.core().spec()).empty());
    core.began({"n0"});
    CHECK(core.trial(1).checkpoints.empty());
}

TEST_CASE("Where there is no room, what a failed task would read goes first, and none that has yet to end", "[tuner]") {
    const std::uint64_t room = GENERATE(15, 25); // a checkpoint has 10 bytes
    SmallCore core =
        study_with(evaluate + "[resources]\nhelpers = 1\n[checkpoint]\nmax_bytes = " + std::to_string(room) + "\n",
                   "num_trials = 3\n");
    core.began({"n0", "n1"});
    finishes(core, 0, 0.9);
    side_ends(core, after(0));
    finishes(core, 1, 0.1);
    REQUIRE(work_of(core, after(1)).phase == SidePhase::running);
    CHECK(core.trial(1).checkpoints.size() == 1);
    side_ends(core, after(1), AttemptOutcome::failed, "exit code 2");
    CHECK(core.trial(1).checkpoints.size() == (room == 15 ? 0 : 1));
    core.report(2, 1, 0.5);
    core.saved(2, 1, 0.5);
    CHECK(core.trial(1).checkpoints.empty());
    CHECK(tasks_to_repeat(core.state(), core.core().spec()).empty());
    CHECK(core.trial(0).checkpoints.size() == 1); // the result
    CHECK(core.trial(2).checkpoints.size() == 1);
}

TEST_CASE("A study that keeps no results keeps what a task reads until that is over", "[tuner]") {
    study::StudySpec spec = study_with(evaluate).core().spec();
    spec.checkpoint.keep = 0; // by C++ alone: a study file keeps one at least
    SmallCore core(spec);
    core.began({"n0"});
    finishes(core, 0, 0.9);
    for (std::uint32_t trial = 1; trial < 4; ++trial) core.over(trial, AttemptOutcome::failed);
    REQUIRE(work_of(core, after(0)).phase == SidePhase::running);
    CHECK(core.trial(0).checkpoints.size() == 1);
    side_ends(core, after(0));
    CHECK(core.trial(0).checkpoints.empty());
}

TEST_CASE("A task that needs a checkpoint fails where its trial has none; one that needs none runs", "[tuner]") {
    SmallCore core = study_with(evaluate, "num_trials = 1\n");
    core.began({"n0"});
    for (Iteration i = 1; i <= 3; ++i) core.report(0, i, 0.5);
    core.over(0, AttemptOutcome::stopped);
    CHECK(work_of(core, after(0)).phase == SidePhase::failed);
    CHECK(work_of(core, after(0)).failure.message ==
          "not started: the command has {checkpoint}, and the trial has none: it saved none, or its ranks were lost "
          "before they had saved its last state");
    CHECK(core.state().ended);
    SmallCore other = study_with("[after_trial]\ncommand = \"evaluate\"\n", "num_trials = 1\n");
    other.began({"n0"});
    for (Iteration i = 1; i <= 3; ++i) other.report(0, i, 0.5);
    other.over(0, AttemptOutcome::stopped);
    CHECK(work_of(other, after(0)).phase == SidePhase::running);
}

TEST_CASE("The task of a trial that was killed between its end and its last save is not started", "[tuner]") {
    const auto killed = GENERATE("the rank", "the job", "the job, after an earlier save");
    SmallCore core = study_with(evaluate, "num_trials = 1\n");
    core.began({"n0", "n1"});
    const bool has_saved = killed == std::string("the job, after an earlier save");
    for (Iteration i = 1; i <= 3; ++i) {
        core.report(0, i, 0.5);
        if (i == 1 && has_saved) core.saved(0, i, 0.5);
    }
    REQUIRE(core.trial(0).phase == TrialPhase::finished);
    CHECK(work_of(core, after(0)).phase == SidePhase::waiting); // it is about to save
    if (killed == std::string("the rank"))
        core.gone(1);
    else
        core.began({"n0", "n1"}, study::JobDeath{});
    if (has_saved) { // the best that there is
        REQUIRE(work_of(core, after(0)).phase == SidePhase::running);
        CHECK(work_of(core, after(0)).checkpoint->path == "0/1");
        side_ends(core, after(0));
    } else {
        CHECK(core.record<study::SideStarted>() == nullptr);
        CHECK_THAT(core.record<study::SideEnded>()->failure.message, Catch::StartsWith("not started: "));
        CHECK(work_of(core, after(0)).phase == SidePhase::failed);
    }
    CHECK(core.trial(0).phase == TrialPhase::finished); // its result stands
    CHECK(core.state().outcome == StudyOutcome::ok);
}

TEST_CASE("Helpers get no trials, but side tasks, at once", "[tuner]") {
    SmallCore core = study_with("[resources]\nhelpers = 1\n" + evaluate);
    core.began({"n0", "n1", "n2"});
    CHECK(core.state().placement.alive() == 2);
    CHECK(core.state().trials.in(TrialPhase::running) == 2);
    finishes(core, 0, 0.9);
    CHECK(core.state().trials.in(TrialPhase::running) == 2);
    REQUIRE(work_of(core, after(0)).phase == SidePhase::running);
    CHECK(work_of(core, after(0)).rank == Rank{3});
    finishes(core, 1, 0.8); // one at a time
    CHECK(work_of(core, after(1)).phase == SidePhase::waiting);
    side_ends(core, after(0));
    CHECK(work_of(core, after(1)).rank == Rank{3});
}

TEST_CASE("Ranks without a GPU are the first for side tasks", "[tuner]") {
    SmallCore core = study_with(prepare + "[resources]\nhelpers = 1\n");
    core.step(study::Began{Incarnation{1}, {{Rank{1}, "n0", 0}, {Rank{2}, "n0", 1}, {Rank{3}, "n0", 1}}, "", {}});
    CHECK(work_of(core, first).rank == Rank{1});
    CHECK(core.state().placement.worker(Rank{1}).helper);
}

TEST_CASE("A side task whose rank is lost goes elsewhere, and one that hangs has failed", "[tuner]") {
    SmallCore core = study_with(prepare + "[failure]\nmax_losses = 1\n");
    core.began({"n0", "n1", "n2"});
    CHECK(work_of(core, first).rank == Rank{3});
    core.gone(3);
    CHECK(work_of(core, first).rank == Rank{2});
    CHECK(work_of(core, first).losses == 1);
    core.gone(2, true, "it hangs");
    CHECK(core.state().end_reason == Reason::before_failed);
    CHECK(work_of(core, first).failure.message == "it hangs");
}

TEST_CASE("A side task ends when the study stops early, and runs again in the next start", "[tuner]") {
    SmallCore core = study_with(evaluate, "num_trials = 1\n");
    core.began({"n0"});
    finishes(core, 0, 0.5);
    core.step(study::StopRequested{"SIGTERM"});
    const auto interrupts = told<study::Interrupt>(core);
    REQUIRE(interrupts.size() == 1);
    CHECK(interrupts[0].trial == unit_of(after(0)));
    side_ends(core, after(0), AttemptOutcome::lost);
    REQUIRE(core.state().ended);
    CHECK(core.state().outcome == StudyOutcome::resumable);
    CHECK(core.trial(0).checkpoints.size() == 1);
    core.began({"n0"});
    CHECK(work_of(core, after(0)).attempt == AttemptId{2});
    CHECK(work_of(core, after(0)).losses == 0);
    side_ends(core, after(0));
    CHECK(core.state().outcome == StudyOutcome::ok);
}

TEST_CASE("A study that has reached a limit of its own does its side tasks, unless it is stopped then", "[tuner]") {
    SmallCore core = study_with(evaluate + plot + "[stop.study]\ntarget = 0.4\n");
    core.began({"n0", "n1"});
    core.report(1, 1, 0.3);
    core.saved(1, 1, 0.3);
    core.report(0, 1, 0.5);
    CHECK(core.state().drain_reason == Reason::target_reached);
    core.saved(0, 1, 0.5);
    core.over(0, AttemptOutcome::paused);
    core.over(1, AttemptOutcome::paused);
    CHECK(core.state().side.find(after(1)) == nullptr);           // the study ended it on its way
    REQUIRE(work_of(core, after(0)).phase == SidePhase::running); // the best one
    side_ends(core, after(0));
    REQUIRE(work_of(core, last).phase == SidePhase::running);
    core.step(study::DeadlineKnown{core.now() + std::chrono::seconds(60)});
    REQUIRE(core.core().timer());
    core.step_at(*core.core().timer(), study::TimerFired{});
    CHECK(core.state().drain_reason == Reason::deadline);
    side_ends(core, last, AttemptOutcome::lost);
    CHECK(core.state().outcome == StudyOutcome::resumable);
    core.began({"n0"});
    REQUIRE(work_of(core, last).phase == SidePhase::running);
    side_ends(core, last);
    CHECK(core.state().outcome == StudyOutcome::ok);
}

TEST_CASE("The last command runs when all else is over; if it fails, the next start runs it again", "[tuner]") {
    SmallCore core = study_with(evaluate + plot, "num_trials = 1\n");
    core.began({"n0"});
    finishes(core, 0, 0.5);
    CHECK(work_of(core, last).phase == SidePhase::waiting);
    side_ends(core, after(0));
    REQUIRE(work_of(core, last).phase == SidePhase::running);
    CHECK_FALSE(core.state().ended);
    side_ends(core, last, AttemptOutcome::failed, "exit code 1");
    CHECK(core.state().outcome == StudyOutcome::runtime_error);
    CHECK(core.state().end_reason == Reason::after_failed);
    CHECK_FALSE(is_over(core.state()));
    core.began({"n0"});
    CHECK(work_of(core, last).phase == SidePhase::running);
    CHECK(core.state().trials.size() == 1);
    side_ends(core, last);
    CHECK(core.state().outcome == StudyOutcome::ok);
    CHECK(is_over(core.state()));
    // With more trials there is another end.
    study::StudySpec more = core.core().spec();
    more.num_trials = 2;
    core.change(study::resolved_toml(more));
    core.began({"n0"});
    CHECK(core.state().trials.in(TrialPhase::running) == 1);
    CHECK(work_of(core, last).phase == SidePhase::waiting);
}

TEST_CASE("After a kill during the last command it follows the failed trials that are tried again, once", "[tuner]") {
    SmallCore core = study_with(plot + "[failure]\ntolerate = 0.5\n", "num_trials = 2\n");
    core.began({"n0"});
    finishes(core, 0, 0.5);
    core.over(1, AttemptOutcome::failed);
    REQUIRE(work_of(core, last).phase == SidePhase::running);
    core.reopen(TrialId{1});
    core.began({"n0"}, study::JobDeath{});
    CHECK(work_of(core, last).phase == SidePhase::waiting);
    finishes(core, 1, 0.5);
    REQUIRE(work_of(core, last).phase == SidePhase::running);
    side_ends(core, last);
    CHECK(work_of(core, last).phase == SidePhase::done);
    CHECK(core.state().outcome == StudyOutcome::ok);
}

TEST_CASE("Trials that are added while the last command runs have it run again, also if they end before it",
          "[tuner]") {
    const bool before = GENERATE(false, true);
    SmallCore core = study_with(plot, "num_trials = 1\n");
    core.began({"n0", "n1"});
    for (Iteration i = 1; i <= 3; ++i) core.report(0, i, 0.5);
    core.over(0, AttemptOutcome::stopped);
    REQUIRE(work_of(core, last).phase == SidePhase::running);
    study::Steering more;
    more.request = 1;
    more.verb = study::SteerVerb::add;
    more.points = {space::Configuration({{"x", space::Value(0.5)}})};
    core.step(study::SteerAsked{"ada", more});
    CHECK(core.state().trials.in(TrialPhase::running) == 1);
    if (!before) side_ends(core, last);
    CHECK(work_of(core, last).phase == (before ? SidePhase::running : SidePhase::waiting));
    for (Iteration i = 1; i <= 3; ++i) core.report(1, i, 0.5);
    core.over(1, AttemptOutcome::stopped);
    if (before) side_ends(core, last);
    CHECK(work_of(core, last).attempt == AttemptId{2});
    REQUIRE(work_of(core, last).phase == SidePhase::running);
    side_ends(core, last);
    CHECK(core.state().ended);
}

TEST_CASE("No side task follows a trial that users or the end of the study have ended", "[tuner]") {
    SmallCore core = study_with("[after_trial]\ncommand = \"evaluate\"\n", "num_trials = 2\n");
    core.began({"n0", "n1"});
    study::Steering cancel;
    cancel.request = 1;
    cancel.verb = study::SteerVerb::cancel;
    cancel.trial = TrialId{0};
    core.step(study::SteerAsked{"ada", cancel});
    core.over(0, AttemptOutcome::stopped);
    CHECK(core.trial(0).closed_by == Reason::cancelled);
    CHECK(core.state().side.find(after(0)) == nullptr);
}

TEST_CASE("A study file that has other side tasks later takes over those that are not over", "[tuner]") {
    SmallCore core = study_with(prepare + evaluate);
    study::StudySpec without = core.core().spec();
    without.before = without.after_trial = {};
    without.after.command = "plot";
    without.after.directory = "/";
    core.change(study::resolved_toml(without));
    CHECK(core.state().side.find(first) == nullptr);
    CHECK(core.state().side.find(last) != nullptr);
    core.began({"n0"});
    CHECK(core.state().trials.in(TrialPhase::running) == 1);
}

TEST_CASE("A side task that was cut off and has no command any more is forgotten", "[tuner]") {
    SmallCore core = study_with(prepare);
    core.began({"n0"});
    CHECK(work_of(core, first).phase == SidePhase::running);
    study::StudySpec without = core.core().spec();
    without.before = {};
    core.change(study::resolved_toml(without));
    core.began({"n0"});
    CHECK(core.state().side.find(first) == nullptr);
    CHECK(core.state().trials.in(TrialPhase::running) == 1);
}

TEST_CASE("A task that runs whenever the job dies is given up, and none runs beside a suspect", "[tuner]") {
    SmallCore core =
        study_with("[after_trial]\ncommand = \"evaluate\"\n[failure]\nmax_losses = 2\n", "num_trials = 2\n");
    core.began({"n0", "n1"});
    finishes(core, 0, 0.5);
    REQUIRE(work_of(core, after(0)).phase == SidePhase::running);
    core.began({"n0", "n1"}, study::JobDeath{});
    CHECK(core.state().trials.in(TrialPhase::running) == 1);
    CHECK(work_of(core, after(0)).attempt == AttemptId{2});
    core.began({"n0", "n1"}, study::JobDeath{}); // the second death: the trial is tried alone
    CHECK(core.state().trials.in(TrialPhase::running) == 1);
    CHECK(work_of(core, after(0)).phase == SidePhase::waiting);
    finishes(core, 1, 0.4);
    CHECK(work_of(core, after(0)).attempt == AttemptId{3});
    core.began({"n0", "n1"}, study::JobDeath{});
    CHECK(work_of(core, after(0)).phase == SidePhase::failed);
    CHECK(work_of(core, after(0)).failure.message == "the job died 3 times while it ran");
    CHECK(work_of(core, after(1)).phase == SidePhase::running);
}

TEST_CASE("A study at its limit whose last rank is lost before the last command has run goes on later", "[tuner]") {
    SmallCore core = study_with(plot + "[stop.study]\ntarget = 0.4\n");
    core.began({"n0"});
    core.report(0, 1, 0.5);
    core.saved(0, 1, 0.5);
    core.over(0, AttemptOutcome::paused);
    REQUIRE(work_of(core, last).phase == SidePhase::running);
    core.gone(1);
    REQUIRE(core.state().ended);
    CHECK(core.state().outcome == StudyOutcome::resumable);
    core.began({"n0"});
    side_ends(core, last);
    CHECK(core.state().outcome == StudyOutcome::ok);
}

TEST_CASE("Side tasks are in snapshots, and a head that takes over repeats what they are owed", "[tuner]") {
    SmallCore core = study_with(evaluate + plot + "[resources]\nhelpers = 1\n");
    core.began({"n0", "n1", "n2"});
    finishes(core, 0, 0.5);
    side_reports(core, after(0), {{"test_score", 0.25}});
    study::Bytes bytes;
    study::Encoder out(bytes);
    core.core().snapshot(out);
    Tuner again(core.core().spec());
    study::Decoder in(bytes);
    again.restore(in);
    again.check_invariants();
    CHECK(again.digest() == core.core().digest());
    const auto pending = again.pending_commands();
    CHECK(pending == core.core().pending_commands());
    CHECK(std::ranges::any_of(pending, [](const study::Command& command) {
        const auto* start = std::get_if<study::StartTrial>(&command);
        return start != nullptr && start->trial == unit_of(after(0));
    }));
}

TEST_CASE("Messages of side tasks that are over, or of an earlier attempt, are stale", "[tuner]") {
    SmallCore core = study_with(prepare);
    core.began({"n0"});
    const auto over = [&](AttemptId attempt, Incarnation incarnation) {
        core.step(study::AttemptOver{unit_of(first), attempt, incarnation, AttemptOutcome::finished, {}});
    };
    over(AttemptId{2}, core.incarnation());
    over(AttemptId{1}, Incarnation{9});
    core.step(study::AttemptOver{unit_of(after(3)), AttemptId{1}, core.incarnation(), AttemptOutcome::finished, {}});
    core.step(study::ReportArrived{unit_of(last), AttemptId{1}, core.incarnation(), 1, 1.0, {}});
    CHECK(core.state().trials.empty());
    CHECK(work_of(core, first).phase == SidePhase::running);
    over(AttemptId{1}, core.incarnation());
    CHECK(core.state().trials.size() == 1);
}

} // namespace ranktune::tuner::side_tasks_test
