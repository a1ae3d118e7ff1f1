// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <memory>
#include <system_error>

#include "drivers/head/head_machine.hpp"
#include "recorder.hpp"

using namespace ranktune;
using namespace ranktune::drivers;
using namespace ranktune::drivers::test;
using study::AttemptOutcome;
using study::StudyOutcome;

namespace {

const Rank one{1};
const Rank two{2};

/// Two trials of one iteration; ranks per trial as given.
study::StudySpec small_study(std::uint32_t ranks) {
    study::StudySpec spec;
    spec.name = "small";
    spec.objective = {"score", study::Mode::max};
    spec.num_trials = 2;
    spec.resources.ranks = ranks;
    spec.space = space::SearchSpace({{"lr", space::FloatRange{0.1, 1.0, false, 0.0}, {}}});
    spec.failure.tolerate = 1.0;
    return spec;
}

struct Sink final : study::RecordSink {
    void append(const std::vector<study::Record>& batch) override {
        if (on_append) on_append();
        ++appends;
        records.insert(records.end(), batch.begin(), batch.end());
    }
    template <class T>
    [[nodiscard]] std::size_t count() const {
        return static_cast<std::size_t>(std::count_if(
            records.begin(), records.end(), [](const study::Record& r) { return std::holds_alternative<T>(r); }));
    }
    std::function<void()> on_append;
    std::size_t appends = 0;
    std::vector<study::Record> records;
};

struct Duties final : HeadDuties {
    void delete_checkpoint(const study::DeleteCheckpoint& checkpoint) override { deleted.push_back(checkpoint.path); }
    void publish(const study::EndStudy& end) override { results.push_back(end); }
    bool published() override { return ready; }
    std::vector<std::string> deleted;
    std::vector<study::EndStudy> results;
    bool ready = true;
};

struct Views final : Observer {
    void on_records(const tuner::Tuner&, const std::vector<study::Record>& batch, const HeadFigures&) override {
        records += batch.size();
    }
    void on_tick(const tuner::Tuner&, const HeadFigures&) override { ++ticks; }
    std::size_t records = 0;
    std::size_t ticks = 0;
};

struct Log final : base::LogSink {
    void write(base::LogLevel, std::string_view event, const std::vector<base::LogField>& fields) override {
        lines.emplace_back(event);
        for (const auto& [key, value] : fields) lines.back() += " " + key + "=" + value;
    }
    std::vector<std::string> lines;
};

/// A head with `workers` workers: incarnation 1, heartbeats every second, silence 60 s, Hello within 120 s.
class HeadFixture {
  public:
    explicit HeadFixture(std::uint32_t workers, const study::StudySpec& spec = small_study(1)) : tuner(spec) {
        tuner::Output created;
        tuner.create("uuid", "[study]\n", "0.1.0", created);
        HeadOptions options;
        options.incarnation = Incarnation(1);
        options.workers = workers;
        options.version = "0.1.0";
        options.study = "[study]\n";
        options.study_directory = "/study";
        options.check_invariants = true;
        machine = std::make_unique<HeadMachine>(options, tuner, sink, out, duties, views, log, at(0s));
    }

    template <class T>
    void from(Rank sender, const T& message, base::Duration now) {
        machine->on_message(sender, bytes_of(message), at(now));
    }
    void tick(base::Duration now) {
        machine->on_tick(at(now));
        out.drop<Alive>();
    }
    /// All say Hello at 0 s; what the head answers is taken, but for the first commands.
    void join(std::uint32_t workers) {
        for (std::uint32_t r = 1; r <= workers; ++r) from(Rank(r), Hello{protocol_version, "0.1.0", "node", 1}, 0s);
        for (std::uint32_t r = 1; r <= workers; ++r) out.take<Welcome>(Rank(r));
        tick(0s);
    }
    /// What a leader says about the only iteration of its trial, and the end.
    void report(Rank leader, const study::StartTrial& start, base::Duration now) {
        from(leader, report_of(start), now);
    }
    static study::ReportArrived report_of(const study::StartTrial& start) {
        return {start.trial, start.attempt, start.incarnation, 1, 0.5, {{"score", 1.0}}};
    }
    static GroupOver over_of(const study::StartTrial& start, AttemptOutcome outcome) {
        return {{start.trial, start.attempt, start.incarnation, outcome, ""}, 0.0, 0.5};
    }
    void expect_leave(std::uint32_t workers, StudyOutcome outcome, bool clean) {
        for (std::uint32_t r = 1; r <= workers; ++r) {
            const auto leave = out.take<Leave>(Rank(r));
            CHECK(leave.outcome == outcome);
            CHECK(leave.clean == clean);
        }
    }

    tuner::Tuner tuner;
    Sink sink;
    Recorder out;
    Duties duties;
    Views views;
    Log log;
    std::unique_ptr<HeadMachine> machine;
};

base::IoError disk_full() {
    return {"cannot write", "journal/1.h5", std::make_error_code(std::errc::no_space_on_device)};
}

} // namespace

TEST_CASE("The study begins when every worker has said Hello", "[drivers]") {
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
    h.out.check_empty(); // nothing is written yet
    h.tick(3s);
    CHECK(h.tuner.state().workers[0].info == study::RankInfo{one, "node1", 4});
    CHECK(h.sink.count<study::IncarnationBegan>() == 1);
    CHECK(h.out.take<study::StartTrial>(one).trial == TrialId(0));
    CHECK(h.out.take<study::StartTrial>(two).trial == TrialId(1));
    h.out.check_empty();
}

TEST_CASE("Missing workers are named when the time for Hello is up", "[drivers]") {
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

TEST_CASE("A worker of another version ends the run with both versions named", "[drivers]") {
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

TEST_CASE("A worker that gives up before the study begins ends the run with its reason", "[drivers]") {
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

TEST_CASE("Records are appended before any of their commands leaves", "[drivers]") {
    HeadFixture h(2);
    std::size_t told_before = 99;
    h.sink.on_append = [&] { told_before = h.out.count(one) + h.out.count(two); };
    for (const Rank rank : {one, two}) h.from(rank, Hello{protocol_version, "0.1.0", "node", 0}, 0s);
    h.tick(0s);
    CHECK(told_before == 2); // the two Welcomes
    CHECK(h.out.count(one) == 2);
    CHECK(h.out.count(two) == 2);
}

TEST_CASE("Events of one round are written by one append", "[drivers]") {
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

TEST_CASE("When the journal cannot be written no command leaves, and the study ends as resumable", "[drivers]") {
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

TEST_CASE("A study runs to its end, is published, and only then do the workers leave", "[drivers]") {
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

TEST_CASE("A worker that never says Bye is not waited for for ever", "[drivers]") {
    HeadFixture h(2);
    h.join(2);
    h.out.drop<study::StartTrial>();
    h.machine->on_stop_at_once("SIGINT, twice", at(1s));
    h.expect_leave(2, StudyOutcome::resumable, false);
    h.from(one, Bye{}, 2s);
    for (auto now = 2s; now < 41s; ++now) {
        h.from(two, Heartbeat{}, now);
        h.tick(now);
    }
    CHECK_FALSE(h.machine->end().has_value());
    h.tick(41s); // abort_grace and 10 s
    REQUIRE(h.machine->end().has_value());
    CHECK(h.machine->end()->outcome == StudyOutcome::resumable);
    CHECK_FALSE(h.machine->end()->clean);
    CHECK(h.log.lines.back() == "silent rank=2 host=node");
}

TEST_CASE("A stop request lets running trials checkpoint, and starts nothing", "[drivers]") {
    HeadFixture h(1);
    h.join(1);
    const auto start = h.out.take<study::StartTrial>(one);
    h.machine->on_stop_request("SIGTERM", at(1s));
    h.tick(1s);
    CHECK(key_of(h.out.take<study::Interrupt>(one)) == key_of(start));
    h.from(one, HeadFixture::over_of(start, AttemptOutcome::paused), 2s);
    h.tick(2s);
    h.expect_leave(1, StudyOutcome::resumable, true);
    h.out.check_empty();
}

TEST_CASE("A stop request that comes before the study has begun is kept", "[drivers]") {
    HeadFixture h(1);
    h.machine->on_stop_request("SIGTERM", at(0s));
    h.join(1);
    CHECK(h.tuner.state().draining);
    h.out.drop<study::StartTrial>();
    h.out.drop<study::Interrupt>();
    h.tick(1s);
    h.out.check_empty();
}

TEST_CASE("A signal that reached a worker stops the study", "[drivers]") {
    HeadFixture h(1);
    h.join(1);
    h.out.take<study::StartTrial>(one);
    h.from(one, StopAsked{"SIGUSR1"}, 1s);
    h.tick(1s);
    CHECK(h.tuner.state().drain_message.find("SIGUSR1") != std::string::npos);
    h.out.take<study::Interrupt>(one);
    h.out.check_empty();
}

TEST_CASE("A duplicate of a report or of an end changes nothing and is counted", "[drivers]") {
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

TEST_CASE("A silent rank counts as gone, and its group is told to give up", "[drivers]") {
    HeadFixture h(3, small_study(2));
    h.join(3);
    const auto start = h.out.take<study::StartTrial>(one);
    CHECK(h.out.take<study::StartTrial>(two) == start);
    for (auto now = 1s; now < 60s; ++now) {
        h.from(one, Heartbeat{key_of(start), 1}, now);
        h.from(Rank(3), Heartbeat{}, now);
        h.tick(now);
    }
    h.out.check_empty();
    h.from(one, Heartbeat{key_of(start), 1}, 60s);
    h.from(Rank(3), Heartbeat{}, 60s);
    h.tick(60s);
    CHECK(h.sink.count<study::RankLost>() == 1);
    CHECK(h.out.take<study::Abandon>(one).ranks == std::vector<Rank>{one});
    h.out.check_empty();
    CHECK(h.machine->gone() == std::vector<Rank>{two});
    CHECK(h.log.lines == std::vector<std::string>{"lost rank=2 host=node trial=0 reason=no sign of life for 60 s"});
    // The leader answers, and the trial starts again on the ranks that live.
    h.from(one, HeadFixture::over_of(start, AttemptOutcome::lost), 61s);
    h.tick(61s);
    const auto again = h.out.take<study::StartTrial>(one);
    CHECK(again.attempt == Attempt(2));
    CHECK(again.ranks == std::vector<Rank>{one, Rank(3)});
    h.out.take<study::StartTrial>(Rank(3));
    h.out.check_empty();
}

TEST_CASE("A rank that was given up but lives is told to leave, once", "[drivers]") {
    HeadFixture h(2);
    h.join(2);
    h.out.drop<study::StartTrial>();
    h.machine->on_rank_gone(two, "its connection broke", at(1s));
    h.machine->on_rank_gone(two, "its connection broke", at(1s));
    h.tick(1s);
    CHECK(h.sink.count<study::RankLost>() == 1);
    h.from(two, Heartbeat{}, 2s);
    h.from(two, Heartbeat{}, 3s);
    CHECK_FALSE(h.out.take<Leave>(two).clean);
    h.tick(3s);
    CHECK(h.machine->figures(at(3s)).stale_messages == 2);
    h.out.check_empty();
}

TEST_CASE("A worker that leaves unasked counts as gone, with its reason", "[drivers]") {
    HeadFixture h(2);
    h.join(2);
    h.out.drop<study::StartTrial>();
    h.from(two, Bye{"user code did not return"}, 1s);
    h.tick(1s);
    REQUIRE(h.sink.count<study::RankLost>() == 1);
    h.out.check_empty(); // nobody to give up: the rank was alone in its trial
}

TEST_CASE("A worker that ends by the fault of its trial costs the trial a failure, not a loss", "[drivers]") {
    HeadFixture h(2);
    h.join(2);
    const auto start = h.out.take<study::StartTrial>(one);
    h.out.drop<study::StartTrial>();
    h.from(one, Bye{"no report for 5s", true}, 1s);
    h.tick(1s);
    REQUIRE(h.sink.count<study::RankLost>() == 1);
    const auto& trial = h.tuner.state().trial(start.trial);
    CHECK(trial.phase == study::TrialPhase::failed);
    CHECK(trial.losses == 0);
    CHECK(trial.failures == 1);
    CHECK(trial.message == "no report for 5s");
}

TEST_CASE("How the life before ended is told to the core with the beginning", "[drivers]") {
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

TEST_CASE("A message that cannot be read costs its sender, not the study", "[drivers]") {
    HeadFixture h(2);
    h.join(2);
    h.out.drop<study::StartTrial>();
    h.machine->on_message(two, study::Bytes{std::byte{250}}, at(1s));
    h.machine->on_message(Rank(77), bytes_of(Heartbeat{}), at(1s)); // no such rank
    h.tick(1s);
    CHECK(h.sink.count<study::RankLost>() == 1);
    CHECK(h.machine->gone() == std::vector<Rank>{two});
    CHECK_FALSE(h.machine->end().has_value());
}

TEST_CASE("Without ranks the study ends as resumable, at once", "[drivers]") {
    HeadFixture h(1);
    h.join(1);
    h.out.take<study::StartTrial>(one);
    h.machine->on_rank_gone(one, "its node died", at(1s));
    h.tick(1s);
    REQUIRE(h.machine->end().has_value());
    CHECK(h.machine->end()->outcome == StudyOutcome::resumable);
    CHECK_FALSE(h.machine->end()->clean);
    CHECK(h.duties.results.size() == 1);
    h.out.check_empty();
}

TEST_CASE("A leader that dies in the round in which its trial starts is not waited for", "[drivers]") {
    HeadFixture h(2, small_study(2));
    for (const Rank rank : {one, two}) h.from(rank, Hello{protocol_version, "0.1.0", "node", 0}, 0s);
    h.machine->on_rank_gone(one, "killed", at(0s));
    h.tick(0s);
    h.out.take<Welcome>(one);
    h.out.take<Welcome>(two);
    h.out.take<study::StartTrial>(two);
    CHECK(h.out.take<study::Abandon>(two).ranks == std::vector<Rank>{two});
    // One rank is left, and trials of two ranks.
    CHECK(h.out.take<Leave>(two).outcome == StudyOutcome::resumable);
    h.out.check_empty();
    const HeadFigures figures = h.machine->figures(at(1s));
    CHECK(figures.idle_s == Approx(1.0));
    CHECK(figures.starting_s == Approx(0.0));
}

TEST_CASE("A head that was suspended does not take that time for the workers' silence", "[drivers]") {
    HeadFixture h(2);
    h.join(2);
    h.out.drop<study::StartTrial>();
    h.tick(1s);
    h.tick(1000s);
    h.tick(1001s);
    CHECK(h.machine->gone().empty());
}

// --- time ---

TEST_CASE("A worker to which nothing is said hears that the head lives", "[drivers]") {
    HeadFixture h(2);
    h.join(2);
    h.out.drop<study::StartTrial>();
    CHECK(h.machine->wake_at() <= at(1s));
    h.machine->on_tick(at(1s));
    h.out.take<Alive>(one);
    h.out.take<Alive>(two);
    h.machine->on_tick(at(1500ms));
    h.out.check_empty();
}

TEST_CASE("The time budget of a study fires when it is used up", "[drivers]") {
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

TEST_CASE("Released checkpoints are handed to the loop for unlinking", "[drivers]") {
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
    CHECK(h.duties.deleted.empty()); // not before the records are written
    h.tick(1s);
    CHECK(h.duties.deleted == std::vector<std::string>{"checkpoints/0/1-1.1.h5"});
}

TEST_CASE("The head counts what its ranks did with their time", "[drivers]") {
    HeadFixture h(2);
    h.join(2);
    const auto first = h.out.take<study::StartTrial>(one);
    h.from(one, Heartbeat{key_of(first), 0}, 1s); // no user code yet
    h.from(one, Heartbeat{key_of(first), 3}, 2s);
    h.from(two, HeadFixture::over_of(h.out.take<study::StartTrial>(two), AttemptOutcome::failed), 4s);
    h.tick(4s);
    const HeadFigures figures = h.machine->figures(at(10s));
    CHECK(figures.elapsed_s == Approx(10.0));
    CHECK(figures.training_s == Approx(8.0 + 0.5)); // the second leader says: half a second
    CHECK(figures.starting_s == Approx(2.0));
    CHECK(figures.training_s + figures.starting_s + figures.idle_s == Approx(20.0));
    h.machine->set_head_cpu(0.25);
    CHECK(h.machine->figures(at(10s)).head_cpu_s == Approx(0.25));
}
