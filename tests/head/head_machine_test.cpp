// SPDX-License-Identifier: Apache-2.0
#include <system_error>

#include "head/head_fixture.hpp"

namespace head_machine_test {

using namespace ranktune;
using namespace ranktune::head;
using namespace ranktune::comm;
using namespace ranktune::testing;

namespace {

base::IoError disk_full() {
    return {"cannot write", "journal/1.h5", std::make_error_code(std::errc::no_space_on_device)};
}

} // namespace

TEST_CASE("The study begins when every worker has said Hello", "[head]") {
    HeadFixture h(2);
    h.from(one, Hello{protocol_version, "0.1.0", "node1", 4}, 1s);
    h.from(one, Hello{protocol_version, "0.1.0", "node1", 4}, 1s);
    h.tick(2s);
    const auto welcome = h.out.take<Welcome>(one);
    CHECK(welcome.incarnation == Incarnation(1));
    CHECK(welcome.study == "[study]\n");
    CHECK(welcome.directory == "/study");
    CHECK(welcome.head_timeout == 60s);
    CHECK_FALSE(h.machine->began());
    CHECK(h.sink.records.empty());
    h.from(two, Hello{protocol_version, "0.1.0", "node2", 0}, 3s);
    h.out.take<Welcome>(two);
    CHECK(h.machine->began());
    h.out.check_empty(); // no records are written yet
    h.tick(3s);
    CHECK(h.tuner.state().placement.workers()[0].info == study::RankInfo{one, "node1", 4});
    CHECK(h.sink.count<study::IncarnationBegan>() == 1);
    CHECK(h.out.take<study::StartTrial>(one).trial == TrialId(0));
    CHECK(h.out.take<study::StartTrial>(two).trial == TrialId(1));
    h.out.check_empty();
}

TEST_CASE("What a worker's driver says about its GPU goes before what the launcher says", "[head]") {
    const auto told = [](study::GpuUse gpus, Hello hello) {
        study::StudySpec spec = small_study(1);
        spec.resources.gpus = gpus;
        HeadFixture h(1, spec, 0s, {}, {{}, {one, "node1", 0, 1, "s0", "2"}});
        h.from(one, hello, 1s);
        h.tick(1s);
        return h.tuner.state().placement.workers().front().info;
    };
    const Hello by_name{protocol_version, "0.1.0", "node1", 1};
    const Hello by_uuid{protocol_version, "0.1.0", "node1", 1, "GPU-5c", 2, "00ff-1"};
    using study::GpuUse;
    CHECK(told(GpuUse::granted, by_name) == study::RankInfo{one, "node1", 1, 1, "s0", "2"});
    CHECK(told(GpuUse::granted, by_uuid) == study::RankInfo{one, "node1", 1, 1002, "s0.00ff-1", "GPU-5c"});
    CHECK(told(GpuUse::none, by_uuid).device.empty()); // trials do not use it
}

TEST_CASE("The first trials wait for the job's deadline, but not for ever", "[head]") {
    HeadFixture told(1, small_study(1), 10s);
    told.join(1);
    CHECK_FALSE(told.machine->began());
    told.machine->on_deadline(at(1h), at(2s));
    CHECK(told.machine->began());
    told.tick(2s);
    CHECK(told.out.take<study::StartTrial>(one).trial == TrialId(0));
    CHECK(told.sink.count<study::DeadlineSet>() == 1);
    CHECK(told.tuner.state().pace.deadline() == at(1h));

    HeadFixture before(1, small_study(1), 10s);
    before.machine->on_deadline(at(5s), at(0s)); // too short for anything of known duration; but none is known
    before.join(1);
    CHECK(before.machine->began());
    CHECK(before.out.take<study::StartTrial>(one).trial == TrialId(0));

    HeadFixture untold(1, small_study(1), 10s);
    untold.join(1);
    untold.tick(9s);
    CHECK_FALSE(untold.machine->began());
    untold.tick(10s);
    CHECK(untold.machine->began());
    CHECK(untold.out.take<study::StartTrial>(one).trial == TrialId(0));
    CHECK(untold.sink.count<study::DeadlineSet>() == 0);
}

TEST_CASE("Missing workers are named when the time for Hello is up", "[head]") {
    HeadFixture h(6);
    h.from(two, Hello{protocol_version, "0.1.0", "node", 0}, 1s);
    h.out.take<Welcome>(two);
    for (auto now = 1s; now < 120s; ++now) {
        h.from(two, Heartbeat{}, now);
        h.tick(now);
    }
    CHECK_FALSE(h.machine->end().has_value());
    h.tick(120s);
    h.expect_leave(6, StudyOutcome::runtime_error, false);
    h.from(two, Bye{}, 121s);
    h.tick(121s);
    REQUIRE(h.machine->end().has_value());
    CHECK(h.machine->end()->outcome == StudyOutcome::runtime_error);
    CHECK_FALSE(h.machine->end()->clean);
    CHECK(h.machine->end()->message == "no answer within 120 s from ranks 1, 3-6 of 6 workers");
    CHECK(h.sink.records.empty());
}

TEST_CASE("A worker of another version ends the run with both versions named", "[head]") {
    HeadFixture h(2);
    h.from(one, Hello{protocol_version, "0.1.0", "node1", 0}, 0s);
    h.out.take<Welcome>(one);
    h.from(two, Hello{protocol_version, "0.2.0", "node2", 0}, 0s);
    h.tick(0s);
    h.expect_leave(2, StudyOutcome::usage, false);
    h.from(one, Bye{}, 1s);
    h.from(two, Bye{}, 1s);
    h.tick(1s);
    REQUIRE(h.machine->end().has_value());
    CHECK(h.machine->end()->message.find("rank 2 on node2 runs ranktune 0.2.0") != std::string::npos);
    CHECK(h.machine->end()->message.find("0.1.0") != std::string::npos);
}

TEST_CASE("A worker that gives up before the study begins ends the run with its reason", "[head]") {
    HeadFixture h(2);
    h.from(one, Hello{protocol_version, "0.1.0", "node1", 0}, 0s);
    h.out.take<Welcome>(one);
    h.from(one, Bye{"no such data file"}, 0s);
    h.tick(0s);
    CHECK(h.out.take<Leave>(two).message.find("no such data file") != std::string::npos);
    h.tick(1s);
    REQUIRE(h.machine->end().has_value());
    CHECK(h.machine->end()->outcome == StudyOutcome::runtime_error);
    h.out.check_empty();
}

TEST_CASE("Records are appended before any of their commands leaves", "[head]") {
    HeadFixture h(2);
    std::size_t told_before = 99;
    h.sink.on_append = [&] { told_before = h.out.count(one) + h.out.count(two); };
    for (const Rank rank : {one, two}) h.from(rank, Hello{protocol_version, "0.1.0", "node", 0}, 0s);
    h.tick(0s);
    CHECK(told_before == 2); // the two Welcomes
    CHECK(h.out.count(one) == 2);
    CHECK(h.out.count(two) == 2);
}

TEST_CASE("Events of one round are written by one append", "[head]") {
    HeadFixture h(2);
    h.join(2);
    const auto first = h.out.take<study::StartTrial>(one);
    const auto second = h.out.take<study::StartTrial>(two);
    const std::size_t before = h.sink.appends;
    h.report(one, first, 1s);
    h.report(two, second, 1s);
    CHECK(h.sink.appends == before);
    h.tick(1s);
    CHECK(h.sink.appends == before + 1);
    CHECK(h.sink.count<study::Reported>() == 2);
    CHECK(h.views.records == h.sink.records.size());
    CHECK(h.out.take<study::Decide>(one).verdict.reason == study::Reason::max_iterations);
    CHECK(h.out.take<study::Decide>(two).verdict.reason == study::Reason::max_iterations);
    h.tick(2s);
    CHECK(h.sink.appends == before + 1);
    h.out.check_empty();
}

TEST_CASE("When the journal cannot be written no command leaves, and the study ends as resumable", "[head]") {
    HeadFixture h(1);
    h.join(1);
    const auto start = h.out.take<study::StartTrial>(one);
    h.sink.on_append = [] { throw disk_full(); };
    h.report(one, start, 1s);
    h.tick(1s);
    const auto leave = h.out.take<Leave>(one);
    CHECK(leave.outcome == StudyOutcome::resumable);
    CHECK(leave.message.find("journal/1.h5") != std::string::npos);
    CHECK(h.sink.count<study::Reported>() == 0);
    h.from(one, HeadFixture::over_of(start, AttemptOutcome::lost), 2s);
    h.from(one, Bye{}, 2s);
    h.tick(2s);
    REQUIRE(h.machine->end().has_value());
    CHECK(h.machine->end()->outcome == StudyOutcome::resumable);
    CHECK(h.duties.results.size() == 1);
    h.out.check_empty();
}

TEST_CASE("A study runs to its end, is published, and only then do the workers leave", "[head]") {
    HeadFixture h(1);
    h.duties.ready = false;
    h.join(1);
    for (int trial = 0; trial < 2; ++trial) {
        const auto start = h.out.take<study::StartTrial>(one);
        h.report(one, start, 1s);
        h.tick(1s);
        h.out.take<study::Decide>(one);
        h.from(one, HeadFixture::over_of(start, AttemptOutcome::stopped), 2s);
        h.tick(2s);
    }
    REQUIRE(h.duties.results.size() == 1);
    CHECK(h.duties.results[0].outcome == StudyOutcome::ok);
    h.tick(3s);
    h.out.check_empty();
    CHECK(h.machine->wake_at() <= at(3100ms));
    h.duties.ready = true;
    h.tick(4s);
    h.expect_leave(1, StudyOutcome::ok, true);
    h.tick(5s);
    CHECK_FALSE(h.machine->end().has_value());
    const std::size_t ticks = h.views.ticks;
    h.from(one, Bye{}, 6s);
    h.tick(6s);
    REQUIRE(h.machine->end().has_value());
    CHECK(h.machine->end()->outcome == StudyOutcome::ok);
    CHECK(h.machine->end()->clean);
    CHECK(h.views.ticks == ticks + 1); // once more at the end
    h.tick(7s);
    CHECK(h.views.ticks == ticks + 1);
    h.out.check_empty();
}

TEST_CASE("A worker that never says Bye is not waited for for ever", "[head]") {
    HeadFixture h(2);
    h.join(2);
    h.out.drop<study::StartTrial>();
    h.machine->on_stop_at_once({"SIGINT, twice"}, at(1s));
    h.expect_leave(2, StudyOutcome::resumable, false);
    h.from(one, Bye{}, 2s);
    for (auto now = 2s; now < 41s; ++now) {
        h.from(two, Heartbeat{}, now);
        h.tick(now);
    }
    CHECK_FALSE(h.machine->end().has_value());
    h.tick(41s); // abort_grace plus 10 s
    REQUIRE(h.machine->end().has_value());
    CHECK(h.machine->end()->outcome == StudyOutcome::resumable);
    CHECK_FALSE(h.machine->end()->clean);
    CHECK(h.log.lines.back() == "silent rank=2 host=node");
}

TEST_CASE("Results that could not be stored give the study another end", "[head]") {
    HeadFixture h(1);
    h.join(1);
    h.out.drop<study::StartTrial>();
    h.duties.ready = false;
    h.from(one, Bye{"killed"}, 1s);
    h.tick(1s);
    REQUIRE(h.duties.results.size() == 1);
    h.duties.other = {{StudyOutcome::resumable, study::Reason::unsaved, "the journal is gone"}, false};
    h.duties.ready = true;
    h.tick(2s);
    REQUIRE(h.machine->end().has_value());
    CHECK(h.machine->end()->outcome == StudyOutcome::resumable);
    CHECK(h.machine->end()->reason == study::Reason::unsaved);
    CHECK(h.machine->end()->message == "the journal is gone");
    CHECK(h.machine->end()->whose == HeadEnd::Whose::head);
}

TEST_CASE("A stop request lets running trials checkpoint, and starts nothing", "[head]") {
    HeadFixture h(1);
    h.join(1);
    const auto start = h.out.take<study::StartTrial>(one);
    h.machine->on_stop_request({"SIGTERM"}, at(1s));
    h.tick(1s);
    CHECK(key_of(h.out.take<study::Interrupt>(one)) == key_of(start));
    h.from(one, HeadFixture::over_of(start, AttemptOutcome::paused), 2s);
    h.tick(2s);
    h.expect_leave(1, StudyOutcome::resumable, true);
    h.out.check_empty();
}

TEST_CASE("A stop request that comes before the study has begun is kept", "[head]") {
    HeadFixture h(1);
    h.machine->on_stop_request({"SIGTERM"}, at(0s));
    h.join(1);
    CHECK(h.tuner.state().draining);
    h.out.drop<study::StartTrial>();
    h.out.drop<study::Interrupt>();
    h.tick(1s);
    h.out.check_empty();
}

TEST_CASE("A signal that reached a worker stops the study", "[head]") {
    HeadFixture h(1);
    h.join(1);
    h.out.take<study::StartTrial>(one);
    h.from(one, StopAsked{study::Asker::sigusr1}, 1s);
    h.tick(1s);
    CHECK(h.tuner.state().drain_message.find("SIGUSR1") != std::string::npos);
    h.out.take<study::Interrupt>(one);
    h.out.check_empty();
}

TEST_CASE("A signal that reached a worker is named after the signal that the launcher received", "[head]") {
    HeadFixture h(1, small_study(1), 0s,
                  [](study::Asker signal) { return signal == study::Asker::sigusr1 ? study::Asker::sigterm : signal; });
    h.join(1);
    h.from(one, StopAsked{study::Asker::sigusr1}, 1s);
    h.tick(1s);
    CHECK(h.tuner.state().drain_message == "SIGTERM");
}

TEST_CASE("A duplicate of a report or of an end changes nothing and is counted", "[head]") {
    HeadFixture h(1);
    h.join(1);
    const auto start = h.out.take<study::StartTrial>(one);
    h.report(one, start, 1s);
    h.report(one, start, 1s);
    h.tick(1s);
    h.out.take<study::Decide>(one);
    h.out.check_empty();
    CHECK(h.sink.count<study::Reported>() == 1);
    h.from(one, HeadFixture::over_of(start, AttemptOutcome::stopped), 2s);
    h.from(one, HeadFixture::over_of(start, AttemptOutcome::stopped), 2s);
    h.tick(2s);
    CHECK(h.sink.count<study::AttemptEnded>() == 1);
    h.out.take<study::StartTrial>(one);
    h.out.check_empty();
    CHECK(h.machine->figures(at(2s)).stale_messages == 2);
}

// --- lost ranks ---

TEST_CASE("The core hears at the beginning how the previous start ended", "[head]") {
    HeadFixture first(2);
    first.join(2);
    HeadOptions options;
    options.incarnation = Incarnation(2);
    options.workers = 1;
    options.version = "0.1.0";
    options.death = study::JobDeath{};
    Sink sink;
    HeadMachine head(options, first.tuner, sink, first.out, first.duties, first.views, first.log, at(10s));
    head.on_message(one, bytes_of(Hello{protocol_version, "0.1.0", "node", 1}), at(10s));
    head.on_tick(at(10s));
    CHECK(sink.count<study::JobDied>() == 1);
    CHECK(sink.count<study::IncarnationBegan>() == 1);
    CHECK(first.tuner.state().trials[0].deaths == 1);
}

TEST_CASE("The time budget of a study fires when it is used up", "[head]") {
    study::StudySpec spec = small_study(1);
    spec.time_budget = 90s;
    HeadFixture h(1, spec);
    h.join(1);
    const auto start = h.out.take<study::StartTrial>(one);
    for (auto now = 1s; now < 90s; ++now) {
        h.from(one, Heartbeat{key_of(start), 1}, now);
        h.tick(now);
    }
    h.out.check_empty();
    CHECK(h.machine->wake_at() <= at(90s));
    h.tick(90s);
    CHECK(h.out.take<study::Interrupt>(one).verdict.verb != study::Verb::go_on);
    CHECK(h.tuner.state().drain_reason == study::Reason::study_time);
}

TEST_CASE("Released checkpoints are handed to the loop for unlinking", "[head]") {
    HeadFixture h(1);
    h.join(1);
    const auto start = h.out.take<study::StartTrial>(one);
    const auto save = [&](base::Iteration iteration) {
        h.from(one,
               study::CheckpointSaved{start.trial,
                                      start.attempt,
                                      start.incarnation,
                                      {iteration, "checkpoints/0/" + std::to_string(iteration) + "-1.1.h5", 1, 1}},
               1s);
    };
    save(1);
    save(2);
    save(3);
    CHECK(h.duties.deleted.empty()); // only after the records are written
    h.tick(1s);
    CHECK(h.duties.deleted == std::vector<std::string>{"checkpoints/0/1-1.1.h5"});
}

TEST_CASE("A journal that has failed when a checkpoint is to be deleted ends the study as resumable", "[head]") {
    HeadFixture h(1);
    h.join(1);
    const auto start = h.out.take<study::StartTrial>(one);
    h.duties.on_delete = [] { throw disk_full(); };
    for (const base::Iteration iteration : {1, 2, 3})
        h.from(one,
               study::CheckpointSaved{start.trial,
                                      start.attempt,
                                      start.incarnation,
                                      {iteration, "checkpoints/0/" + std::to_string(iteration) + "-1.1.h5", 1, 1}},
               1s);
    h.tick(1s);
    const auto leave = h.out.take<Leave>(one);
    CHECK(leave.outcome == StudyOutcome::resumable);
    CHECK(leave.message.find("the journal cannot be written") == 0);
    REQUIRE(h.duties.results.size() == 1);
    CHECK(h.duties.results.front().reason == study::Reason::unsaved);
}

TEST_CASE("A parameter that the first trial never read ends the study; later trials need not read it", "[head]") {
    const bool first = GENERATE(true, false);
    CAPTURE(first);
    HeadFixture h(1);
    h.join(1);
    const auto over = [&](const study::StartTrial& start, bool reads_all) {
        GroupOver message = HeadFixture::over_of(start, AttemptOutcome::stopped);
        if (!reads_all) message.unread = {"momentun"};
        return message;
    };
    auto start = h.out.take<study::StartTrial>(one);
    h.report(one, start, 1s);
    h.tick(1s);
    h.out.take<study::Decide>(one);
    h.from(one, over(start, !first), 2s);
    h.tick(2s);
    h.out.drop<study::Interrupt>(); // of the trial that has just ended
    if (!first) {
        start = h.out.take<study::StartTrial>(one);
        h.report(one, start, 3s);
        h.tick(3s);
        h.out.take<study::Decide>(one);
        h.from(one, over(start, false), 4s);
        h.tick(4s);
        return h.expect_leave(1, StudyOutcome::ok, true);
    }
    h.expect_leave(1, StudyOutcome::usage, true);
    REQUIRE(h.duties.results.size() == 1);
    CHECK(h.duties.results[0].reason == study::Reason::unread_parameter);
    CHECK(h.duties.results[0].message.starts_with("trial #0 never read momentun of the study file"));
}

TEST_CASE("The head counts what its ranks did with their time", "[head]") {
    HeadFixture h(2);
    h.join(2);
    const auto first = h.out.take<study::StartTrial>(one);
    h.from(one, Heartbeat{key_of(first), 0}, 1s); // no user code yet
    h.from(one, Heartbeat{key_of(first), 3}, 2s);
    h.from(two, HeadFixture::over_of(h.out.take<study::StartTrial>(two), AttemptOutcome::failed), 4s);
    h.tick(4s);
    const HeadFigures figures = h.machine->figures(at(10s));
    CHECK(figures.elapsed_s == Approx(10.0));
    CHECK(figures.training_s == Approx(8.0 + 0.5)); // the second leader reports half a second
    CHECK(figures.starting_s == Approx(2.0));
    CHECK(figures.training_s + figures.starting_s + figures.idle_s == Approx(20.0));
    h.machine->set_head_cpu(0.25);
    CHECK(h.machine->figures(at(10s)).head_cpu_s == Approx(0.25));
}

} // namespace head_machine_test
