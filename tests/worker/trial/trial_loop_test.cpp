// SPDX-License-Identifier: Apache-2.0
// The trial loop with a scripted body and head: no trainable, process, MPI or thread.

#include "worker/trial/trial_loop.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <new>
#include <system_error>
#include <thread>

#include "device/device.hpp"
#include "process/spawn.hpp"
#include "ranktune/ddp/group.hpp"
#include "schedulers/built_in.hpp"
#include "support/catch.hpp"
#include "worker/trial/attempt_errors.hpp"

namespace ranktune::testing::trial_loop_test {

using namespace ranktune::process;
using namespace ranktune::worker;
namespace {

using base::Iteration;
using study::AttemptOutcome;
using study::Reason;
using study::Verb;
using study::Verdict;
using Interval = study::CheckpointSpec::Interval;

/// Answers from a table and records what it is told.
class Head final : public AttemptPort {
  public:
    std::map<Iteration, Verdict> verdicts; ///< other reports: go on
    std::optional<Verdict> interrupt;      ///< for any iteration
    Iteration interrupted_after = 0;       ///< it comes after this iteration's report
    std::map<Iteration, int> silent;       ///< how often there is no answer yet
    std::function<void()> on_report = [] {};
    std::atomic<bool> abort{false};

    std::vector<RunnerReported> reports;
    std::vector<study::CheckpointRef> checkpoints;
    std::vector<std::string> missed;
    std::vector<std::string> lines;
    int blocking_waits = 0;
    int progress = 0;
    bool waiting = false;
    bool is_contested = false;
    bool waited_while_asked = false;

    void reported(RunnerReported report) override {
        waited_while_asked = waiting;
        reports.push_back(std::move(report));
        on_report();
    }
    void saved(study::CheckpointRef checkpoint) override { checkpoints.push_back(std::move(checkpoint)); }
    void unsaved(std::string why) override { missed.push_back(std::move(why)); }
    Verdict verdict_after(Iteration iteration) override {
        ++blocking_waits;
        if (abort.load()) throw ddp::Aborted("the trial was told to give up");
        return answer(iteration);
    }
    std::optional<Verdict> verdict_within(Iteration iteration, std::chrono::milliseconds) override {
        if (silent[iteration]-- > 0) return std::nullopt;
        return answer(iteration);
    }
    bool contested() const override { return is_contested; }
    void progressed() noexcept override { ++progress; }
    void waits(bool on) noexcept override { waiting = on; }
    const std::atomic<bool>& abort_flag() const override { return abort; }
    void log(base::TrialId, std::string_view line) override { lines.emplace_back(line); }

  private:
    Verdict answer(Iteration iteration) {
        if (interrupt && iteration > interrupted_after) return *interrupt;
        const auto found = verdicts.find(iteration);
        return found == verdicts.end() ? Verdict{} : found->second;
    }
};

/// Reports {score: factor * iteration} and records its calls as text.
class Body final : public TrialBody {
  public:
    explicit Body(TrialLoop& loop) : loop_(loop) {}

    Saves can_save = Saves::now;
    Iteration last = 100;                         ///< it ends on its own after so many reports
    double factor = 1.0;                          ///< of what it reports
    bool in_turns = false;                        ///< it must not block while waiting for the head
    std::optional<Word> word_of_leader;           ///< the leader's word that `tell` returns on another rank
    std::function<void(const std::string&)> hook; ///< called with each event, before anything else
    std::vector<std::string> events;

    void start(const study::CheckpointRef* checkpoint) override {
        event(checkpoint == nullptr ? "start" : "start from " + std::to_string(checkpoint->iteration));
    }
    Verb train(const Report& report) override {
        event("train");
        for (Iteration done = 0; done < last; ++done) {
            const Verb told = report({{"score", factor * static_cast<double>(loop_.iteration() + 1)}, {"time", 1.0}});
            if (told != Verb::go_on) return told;
        }
        return Verb::go_on;
    }
    Saves saves() override { return can_save; }
    std::string why_no_state() const override { return "it has none"; }
    std::optional<std::chrono::milliseconds> patience() const override {
        return in_turns ? std::optional(std::chrono::milliseconds(1)) : std::nullopt;
    }
    void idle() override { event("idle"); }
    Word tell(const Word& word, const TrialPoint&) override {
        if (!word_of_leader) return word;
        CHECK(word == Word{});
        return *word_of_leader;
    }
    void save(const TrialPoint& point) override {
        event("save " + std::to_string(point.iteration));
        loop_.checkpoints().taken(point);
    }
    void end(const Word& word, const TrialPoint& point) override {
        event("end " + std::to_string(point.iteration) + (word.save ? " with state" : " without"));
        if (word.save) loop_.checkpoints().saved({point.iteration, "path", 1, 2}, point.value);
    }
    void close(bool abandoned) override { event(abandoned ? "close, abandoned" : "close"); }

  private:
    void event(const std::string& what) {
        events.push_back(what);
        if (hook) hook(what);
    }
    TrialLoop& loop_;
};

/// One attempt on one rank.
struct Scene {
    Scene() {
        spec.objective = {"score", study::Mode::max};
        spec.scheduler = schedulers::chosen("fifo");
        spec.checkpoint.interval = Interval::none;
        spec.max_iterations = 100;
        assignment.start.between_failures = std::chrono::hours(24);
        assignment.start.seconds = 100.0;
        assignment.start.to_beat = 1000.0; // no report is the best of the study
    }
    TrialLoop make_loop() {
        return {spec, assignment, head, [this] {
                    failed = true;
                    if (fail_throws) throw ddp::Aborted("the trial was told to give up");
                }};
    }
    RunnerEnded run(const std::function<void(Body&)>& set_up = [](Body&) {}) {
        TrialLoop loop = make_loop();
        Body body(loop);
        set_up(body);
        RunnerEnded ended = loop.run(body);
        events = body.events;
        CHECK_FALSE(head.waiting);
        return ended;
    }
    study::StudySpec spec;
    Assignment assignment;
    Head head;
    bool failed = false; ///< the group was told of a failure
    bool fail_throws = false;
    std::vector<std::string> events;
};

/// A body that calls `action` at `event`.
std::function<void(Body&)> at(const std::string& event, const std::function<void()>& action) {
    return [=](Body& body) {
        body.hook = [=](const std::string& what) {
            if (what == event) action();
        };
    };
}

using Events = std::vector<std::string>;

} // namespace

TEST_CASE("a trial pauses at the verdict, with its state, value and training time", "[trial]") {
    Scene scene;
    scene.head.verdicts[3] = {Verb::pause, Reason::rung, 3.0, 9.0};
    const RunnerEnded ended = scene.run();
    CHECK(ended.outcome == AttemptOutcome::paused);
    CHECK(ended.failure.empty());
    CHECK(scene.events == Events{"start", "train", "end 3 with state", "close"});
    REQUIRE(scene.head.reports.size() == 3);
    CHECK(scene.head.reports[2].iteration == 3);
    CHECK(scene.head.reports[2].seconds >= 100.0);
    CHECK(scene.head.reports[2].metrics == std::vector<study::NamedMetric>{{"score", 3.0}, {"time", 1.0}});
    CHECK(scene.head.waited_while_asked); // waiting for the head is not hanging
    REQUIRE(scene.head.checkpoints.size() == 1);
    CHECK(scene.head.checkpoints[0].value == 3.0);
    CHECK_FALSE(scene.failed);
}

TEST_CASE("what the first iteration of a program takes longer than the others is its start", "[trial]") {
    const auto started_s = [](bool program, base::Iteration last) {
        Scene scene;
        if (program) scene.spec.trainable.program.emplace();
        return scene
            .run([last](Body& body) {
                body.last = last;
                body.hook = [](const std::string& what) {
                    if (what == "start") std::this_thread::sleep_for(std::chrono::milliseconds(200));
                };
            })
            .starting_s;
    };
    CHECK(started_s(true, 100) > 0.1); // the others take no time
    CHECK(started_s(true, 1) == 0.0);  // nothing to compare with
    CHECK(started_s(false, 100) == 0.0);
}

TEST_CASE("a trial that goes on from a checkpoint counts on from it", "[trial]") {
    Scene scene;
    scene.assignment.start.from = study::CheckpointRef{5, "path", 1, 2};
    scene.assignment.start.iteration = 5;
    scene.head.verdicts[6] = {Verb::stop, Reason::max_iterations};
    CHECK(scene.run().outcome == AttemptOutcome::stopped);
    CHECK(scene.events == Events{"start from 5", "train", "end 6 with state", "close"});
    CHECK(scene.head.reports.at(0).iteration == 6);
}

TEST_CASE("a trial is stopped with its state, or without it where nobody wants it or there is none", "[trial]") {
    Scene scene;
    scene.head.verdicts[2] = {Verb::stop, Reason::not_in_top};
    std::string how = " without";
    Saves saves = Saves::now;
    SECTION("its state is saved") { how = " with state"; }
    SECTION("it can be saved at the end only") {
        saves = Saves::at_end;
        how = " with state";
    }
    SECTION("nobody wants it") { scene.head.verdicts[2].verb = Verb::discard; }
    SECTION("it cannot be saved") { saves = Saves::never; }
    SECTION("there is none") { saves = Saves::none; }
    SECTION("there is none this time") { saves = Saves::missing; }
    CHECK(scene.run([&](Body& body) { body.can_save = saves; }).outcome == AttemptOutcome::stopped);
    CHECK(scene.events == Events{"start", "train", "end 2" + how, "close"});
}

TEST_CASE("a trial that cannot be the best ends after its last iteration without waiting for the head", "[trial]") {
    Scene scene;
    scene.spec.max_iterations = 3;
    scene.head.verdicts[3] = {Verb::stop, Reason::max_iterations};
    bool waits = true;
    SECTION("nobody wants its state") { waits = false; }
    SECTION("it is as good as the best") { scene.assignment.start.to_beat = 3.0; }
    SECTION("there is no best") { scene.assignment.start.to_beat.reset(); }
    SECTION("every trial keeps its state") { scene.spec.checkpoint.every_trial = true; }
    SECTION("the mean of its repetitions may be the best") { scene.spec.searcher.repeats = 2; }
    SECTION("there are several objectives") { scene.spec.objective.others.push_back({"time", study::Mode::min}); }
    SECTION("its scheduler may wait for others") { scene.spec.scheduler = schedulers::chosen("pbt"); }
    SECTION("reports wait for their turn") { scene.spec.deterministic = true; }
    SECTION("it was started before") { scene.assignment.start.attempt = base::AttemptId{2}; }
    CHECK(scene.run().outcome == AttemptOutcome::stopped);
    REQUIRE_FALSE(scene.head.reports.empty());
    const RunnerReported& last = scene.head.reports.back();
    CHECK(last.iteration == 3);
    CHECK(last.ends == !waits);
    CHECK(scene.head.blocking_waits == static_cast<int>(scene.head.reports.size()) - (waits ? 0 : 1));
    CHECK(scene.events.at(2) == (waits ? "end 3 with state" : "end 3 without"));
    CHECK_FALSE(scene.head.reports.front().ends);
}

TEST_CASE("a study that drains between two decision points pauses its trials at their next report", "[trial]") {
    Scene scene;
    scene.head.interrupt = {Verb::pause, Reason::draining};
    scene.head.interrupted_after = 4;
    Saves saves = Saves::now;
    std::string how = " with state";
    SECTION("with what they have") {}
    SECTION("without a state, where they have none, which is not their fault") {
        saves = GENERATE(Saves::none, Saves::missing, Saves::never);
        how = " without";
    }
    SECTION("the same where a trial gives its turn away") {
        scene.head.interrupt->reason = Reason::yielded;
        saves = Saves::none;
        how = " without";
    }
    CHECK(scene.run([&](Body& body) { body.can_save = saves; }).outcome == AttemptOutcome::paused);
    CHECK(scene.events == Events{"start", "train", "end 5" + how, "close"});
}

TEST_CASE("a scheduler that pauses a trial without a state is told what the trial lacks", "[trial]") {
    Scene scene;
    scene.spec.scheduler = schedulers::chosen("asha");
    scene.head.verdicts[1] = {Verb::pause, Reason::rung};
    const std::string text = "rank 0: it was to pause at iteration 1, but it has none and restart_paused = true";
    const auto run = [&](Saves saves) { return scene.run([&](Body& body) { body.can_save = saves; }); };
    SECTION("that never provided one") {
        const RunnerEnded ended = run(Saves::none);
        CHECK(ended.outcome == AttemptOutcome::stateless);
        CHECK(describe(ended.failure).starts_with(text));
        CHECK(scene.events == Events{"start", "train", "close"});
        CHECK(scene.failed); // the others learn that this rank is gone
    }
    SECTION("that provided one earlier: the trial has failed") {
        const RunnerEnded ended = run(Saves::missing);
        CHECK(ended.outcome == AttemptOutcome::failed);
        CHECK(describe(ended.failure).starts_with(text));
    }
    SECTION("unless paused trials begin again") {
        set_option(scene.spec.scheduler, {"restart_paused", true});
        CHECK(run(Saves::none).outcome == AttemptOutcome::paused);
        CHECK(scene.events == Events{"start", "train", "end 1 without", "close"});
    }
    SECTION("or it says that it cannot save") { CHECK(run(Saves::never).outcome == AttemptOutcome::paused); }
    SECTION("or its state may be that of another trial, for which the study ends") {
        scene.head.is_contested = true;
        CHECK(run(Saves::missing).outcome == AttemptOutcome::paused);
        CHECK(scene.events == Events{"start", "train", "end 1 without", "close"});
    }
}

TEST_CASE("a checkpoint that is due is taken when that is possible", "[trial]") {
    Scene scene;
    scene.spec.checkpoint.interval = Interval::iterations;
    scene.spec.checkpoint.iterations = 2;
    scene.head.verdicts[7] = {Verb::stop, Reason::none};
    SECTION("at once") {
        static_cast<void>(scene.run());
        CHECK(scene.events == Events{"start", "train", "save 2", "save 4", "save 6", "end 7 with state", "close"});
    }
    SECTION("not while the one before is being written: it stays due") {
        static_cast<void>(scene.run([&](Body& body) {
            scene.head.on_report = [&] {
                const Iteration done = scene.head.reports.back().iteration;
                body.can_save = done == 4 || done == 5 ? Saves::at_end : Saves::now;
            };
        }));
        CHECK(scene.events == Events{"start", "train", "save 2", "save 6", "end 7 with state", "close"});
    }
    SECTION("at the rung that the verdict names") {
        scene.spec.checkpoint = {};
        scene.spec.checkpoint.interval = Interval::none;
        scene.spec.checkpoint.at_rungs = true;
        scene.head.verdicts[3] = {Verb::go_on, Reason::in_top, 3.0, 9.0};
        static_cast<void>(scene.run());
        CHECK(scene.events == Events{"start", "train", "save 3", "end 7 with state", "close"});
    }
}

TEST_CASE("the state of a report that is the best of the study so far is saved", "[trial]") {
    Scene scene;
    scene.spec.checkpoint.interval = Interval::time;
    scene.spec.checkpoint.time = std::chrono::hours(1);
    scene.head.verdicts[5] = {Verb::discard, Reason::none};
    const auto saves = [&](const std::function<void(Body&)>& set_up = [](Body&) {}) {
        static_cast<void>(scene.run(set_up));
        Events found;
        std::ranges::copy_if(scene.events, std::back_inserter(found),
                             [](const auto& e) { return e.starts_with("save"); });
        return found;
    };
    SECTION("from the first one on that beats what others had reached") {
        scene.assignment.start.to_beat = 2.0;
        CHECK(saves() == Events{"save 3", "save 4"});
    }
    SECTION("but not where a later one is worse") {
        scene.assignment.start.to_beat.reset();
        scene.spec.objective.mode = study::Mode::min;
        CHECK(saves() == Events{"save 1"});
    }
    SECTION("also where saving has to wait for the state before, but not where that cannot be") {
        scene.assignment.start.to_beat = 2.0;
        CHECK(saves([](Body& body) { body.can_save = Saves::soon; }) == Events{"save 3", "save 4"});
        CHECK(saves([](Body& body) { body.can_save = Saves::at_end; }).empty());
    }
    SECTION("not where a constraint is violated") {
        scene.assignment.start.to_beat.reset();
        scene.spec.objective.constraints = {{"time", 0.5}};
        CHECK(saves().empty());
    }
    SECTION("not where the value is not finite, nor where the head wants none") {
        scene.assignment.start.to_beat.reset();
        CHECK(saves([](Body& body) { body.factor = std::numeric_limits<double>::quiet_NaN(); }).empty());
        scene.assignment.start.to_beat = std::numeric_limits<double>::max();
        CHECK(saves().empty());
    }
    SECTION("not where a trial saves only at its end") {
        scene.assignment.start.to_beat.reset();
        scene.spec.checkpoint.interval = Interval::none;
        CHECK(saves().empty());
    }
}

TEST_CASE("a missed checkpoint is reported each time, and logged once", "[trial]") {
    Scene scene;
    scene.spec.checkpoint.interval = Interval::iterations;
    scene.spec.checkpoint.iterations = 1;
    scene.head.verdicts[4] = {Verb::stop, Reason::none};
    TrialLoop loop = scene.make_loop();
    Body body(loop);
    body.hook = [&](const std::string& event) {
        if (event.starts_with("save")) loop.checkpoints().missed("no space left on device");
    };
    CHECK(loop.run(body).outcome == AttemptOutcome::stopped);
    CHECK(scene.head.missed == std::vector<std::string>(3, "no space left on device"));
    CHECK(scene.head.lines == std::vector<std::string>{"no checkpoint: no space left on device; training goes on",
                                                       "no checkpoint, 3 times in this attempt; the first is above"});
    CHECK(scene.head.checkpoints.size() == 1); // the last one
}

TEST_CASE("what a body throws ends the attempt, and the group hears of it", "[trial]") {
    Scene scene;
    scene.head.verdicts[2] = {Verb::pause, Reason::rung};
    scene.spec.checkpoint.interval = Interval::iterations;
    scene.spec.checkpoint.iterations = 1;
    for (const std::string event : {"start", "train", "save 1", "end 2 with state"}) {
        scene.failed = false;
        const RunnerEnded ended = scene.run(at(event, [] { throw std::runtime_error("on purpose"); }));
        CHECK(ended.outcome == AttemptOutcome::failed);
        CHECK(ended.failure == study::Failure{"on purpose", 0});
        CHECK(scene.failed);
        CHECK(scene.events.back() == "close");
        CHECK(scene.events.at(scene.events.size() - 2) == event);
    }
}

TEST_CASE("the cause of an error decides how an attempt ends", "[trial]") {
    const auto ends = [](auto error) {
        Scene scene;
        return scene.run(at("train", [&] { throw error; })).outcome;
    };
    CHECK(ends(std::bad_alloc()) == AttemptOutcome::disturbed);
    CHECK(ends(std::system_error(std::make_error_code(std::errc::io_error))) == AttemptOutcome::disturbed);
    CHECK(ends(base::IoError("cannot read", "/file", std::make_error_code(std::errc::io_error))) ==
          AttemptOutcome::disturbed);
    for (const std::errc full :
         {std::errc::no_space_on_device, std::errc::read_only_file_system, std::errc::file_too_large}) {
        CHECK(ends(std::system_error(std::make_error_code(full))) == AttemptOutcome::unsaved);
        CHECK(ends(base::IoError("cannot write", "/file", std::make_error_code(full))) == AttemptOutcome::unsaved);
    }
    CHECK(ends(DisturbedError("killed")) == AttemptOutcome::disturbed);
    CHECK(ends(device::DeviceError("it is sick", true)) == AttemptOutcome::disturbed);
    CHECK(ends(device::DeviceMemoryError("it is full")) == AttemptOutcome::oversized);
    CHECK(ends(SetUpError("no pipe")) == AttemptOutcome::unstarted);
    CHECK(ends(CheckpointError(AttemptOutcome::unsaved, "full")) == AttemptOutcome::unsaved);
    CHECK(ends(42) == AttemptOutcome::failed);
    Scene large;
    CHECK(large.run(at("train", [] { throw OversizedError("no room"); }))
              .failure.message.starts_with(
                  "the trial needs more memory than the device has: no room. Make the model or the batch smaller"));
    Scene scene;
    const RunnerEnded ended = scene.run(at("train", [] { throw ddp::PeerFailed("rank 1 failed"); }));
    CHECK(ended.outcome == AttemptOutcome::failed);
    CHECK(ended.failure.empty()); // the other rank says why
    CHECK_FALSE(scene.failed);
}

TEST_CASE("a body that ends on its own has finished", "[trial]") {
    Scene scene;
    CHECK(scene.run([](Body& body) { body.last = 3; }).outcome == AttemptOutcome::finished);
    CHECK(scene.head.reports.size() == 3);
    CHECK(scene.events == Events{"start", "train", "close"});
    CHECK(scene.head.checkpoints.empty());
}

TEST_CASE("a checkpoint that cannot be read ends the attempt before anything is trained", "[trial]") {
    for (const auto outcome : {AttemptOutcome::unreadable, AttemptOutcome::unreachable}) {
        Scene scene;
        scene.assignment.start.from = study::CheckpointRef{5, "path", 1, 2};
        scene.assignment.start.iteration = 5;
        const RunnerEnded ended =
            scene.run(at("start from 5", [outcome] { throw CheckpointError(outcome, "state.h5 is damaged"); }));
        CHECK(ended.outcome == outcome);
        CHECK(ended.failure == study::Failure{"state.h5 is damaged", 0});
        CHECK(scene.events == Events{"start from 5", "close"});
        CHECK(scene.head.reports.empty());
    }
}

TEST_CASE("an attempt that is abandoned is lost, whatever its body does", "[trial]") {
    Scene scene;
    const auto give_up = [&] { scene.head.abort = true; };
    SECTION("while the leader waits for the head") {
        scene.head.on_report = give_up;
        CHECK(scene.run().outcome == AttemptOutcome::lost);
        CHECK(scene.events == Events{"start", "train", "close, abandoned"});
    }
    SECTION("while the body trains, which then throws") {
        scene.fail_throws = true;
        const RunnerEnded ended = scene.run(at("train", [&] {
            give_up();
            throw std::runtime_error("interrupted");
        }));
        CHECK(ended.outcome == AttemptOutcome::lost);
        CHECK(ended.failure.empty());
    }
    SECTION("even if it has come to its end") {
        scene.head.verdicts[1] = {Verb::pause, Reason::rung};
        CHECK(scene.run(at("end 1 with state", give_up)).outcome == AttemptOutcome::lost);
        CHECK(scene.events.back() == "close, abandoned");
    }
}

TEST_CASE("a body that must not block is idle until the head has answered", "[trial]") {
    Scene scene;
    scene.head.silent[2] = 3;
    scene.head.verdicts[2] = {Verb::stop, Reason::none};
    CHECK(scene.run([](Body& body) { body.in_turns = true; }).outcome == AttemptOutcome::stopped);
    CHECK(scene.events == Events{"start", "train", "idle", "idle", "idle", "end 2 with state", "close"});
    CHECK(scene.head.blocking_waits == 0);
}

TEST_CASE("a rank that does not lead does not ask the head and obeys its leader", "[trial]") {
    Scene scene;
    scene.assignment.group_rank = 1;
    SECTION("it saves") {
        CHECK(scene
                  .run([](Body& body) {
                      body.word_of_leader = Word{Verb::go_on, true};
                      body.last = 2;
                  })
                  .outcome == AttemptOutcome::finished);
        CHECK(scene.events == Events{"start", "train", "save 1", "save 2", "close"});
    }
    SECTION("it ends") {
        CHECK(scene.run([](Body& body) {
                       body.word_of_leader = Word{Verb::pause, true};
                   })
                  .outcome == AttemptOutcome::paused);
        CHECK(scene.events == Events{"start", "train", "end 1 with state", "close"});
    }
    SECTION("it says which rank failed") {
        CHECK(scene.run(at("train", [] { throw std::runtime_error("no data"); })).failure ==
              study::Failure{"no data", 1});
    }
    CHECK(scene.head.reports.empty());
    CHECK(scene.head.blocking_waits == 0);
}

} // namespace ranktune::testing::trial_loop_test
