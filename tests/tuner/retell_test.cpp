// SPDX-License-Identifier: Apache-2.0
// The event behind records: the inverse of `Tuner::step`.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ranktune/base/rng.hpp"
#include "tuner/retell.hpp"
#include "tuner/small_core.hpp"

namespace ranktune::tuner::retell_test {
namespace {

using study::Record;
using testing::small_study;
using testing::SmallCore;

// ---- events as text

std::string text(StudyTime at) { return std::to_string(base::to_ns(at)); }
std::string text(const CheckpointRef& checkpoint) {
    return checkpoint.path + " at " + std::to_string(checkpoint.iteration) + ", " + std::to_string(checkpoint.bytes) +
           " bytes, " + std::to_string(checkpoint.digest) +
           (checkpoint.value ? ", " + std::to_string(*checkpoint.value) : "");
}
template <class Body>
std::string attempt_of(const Body& body) {
    return "#" + std::to_string(body.trial.value()) + "." + std::to_string(body.attempt.value()) + " in " +
           std::to_string(body.incarnation.value()) + ": ";
}
std::string text(const study::Began& body) {
    std::string all = "began " + std::to_string(body.incarnation.value()) + " at " + body.wall_time;
    for (const auto& worker : body.workers)
        all += " " + std::to_string(worker.rank.value()) + "@" + worker.host + "/" + std::to_string(worker.gpus);
    if (body.death) all += " after a death";
    if (body.death)
        for (const auto& note : body.death->notes)
            all += " #" + std::to_string(note.trial.value()) + "." + std::to_string(note.attempt.value()) + ": " +
                   describe(note.failure);
    return all;
}
std::string text(const study::ReportArrived& body) {
    std::string all =
        "report " + attempt_of(body) + std::to_string(body.iteration) + " after " + std::to_string(body.seconds) + " s";
    for (const auto& metric : body.metrics) all += " " + metric.name + "=" + std::to_string(metric.value);
    return all;
}
std::string text(const study::CheckpointSaved& body) { return "saved " + attempt_of(body) + text(body.checkpoint); }
std::string text(const study::AttemptOver& body) {
    return "over " + attempt_of(body) + std::string(name(body.outcome)) + " " + describe(body.failure);
}
std::string text(const study::RankGone& body) {
    return "rank " + std::to_string(body.rank.value()) + " gone: " + body.why + (body.guilty ? ", guilty" : "");
}
std::string text(const study::TimerFired&) { return "timer"; }
std::string text(const study::StopRequested& body) {
    return "stop: " + body.why + ", " + std::to_string(static_cast<int>(body.reason)) + " by " +
           std::string(name(body.by));
}
std::string text(const study::DeadlineKnown& body) { return "deadline " + (body.at ? text(*body.at) : "unknown"); }
std::string text(const study::Prepared& body) {
    return "prepared " + std::to_string(body.ticket) + ": " +
           (body.configuration ? body.configuration->text() : body.why);
}
std::string text(const study::SteerAsked& body) { return body.who + ": " + describe(body.ask); }
std::string text(const study::Event& event) {
    return text(event.now) + " " + std::visit([](const auto& body) { return text(body); }, event.body);
}

// ---- studies

/// Retells each event that leads to records, and checks that a second core that gets only the retold events does the
/// same. Returns how many.
class Retelling {
  public:
    explicit Retelling(const std::string& spec) : core(spec), again_(core.core().spec()) {
        Output created;
        again_.create("uuid", study::resolved_toml(core.core().spec()), "test", created);
        core.seen = [this](const study::Event& event, const Output& out, const State& before) {
            if (out.records.empty()) return;
            const Retold retold = retell(out.records, before);
            REQUIRE(retold.event);
            CHECK_FALSE(retold.cut_short);
            CHECK(text(*retold.event) == text(as_recorded(event, out.records)));
            Output decided;
            again_.step(*retold.event, decided);
            REQUIRE(again_.digest() == core.core().digest());
            REQUIRE(decided.records == out.records);
            ++events;
        };
    }

    SmallCore core;
    int events = 0;

  private:
    /// The event as recorded. The recorded end of a trial that was told to stop, or that lost its ranks, may differ
    /// from what its group reports; notes of attempts that were over before the death are ignored.
    static study::Event as_recorded(study::Event event, const std::vector<Record>& records) {
        if (auto* over = std::get_if<study::AttemptOver>(&event.body)) {
            const auto& ended = std::get<study::AttemptEnded>(records.front());
            over->outcome = ended.outcome;
            over->failure = ended.failure;
        } else if (auto* began = std::get_if<study::Began>(&event.body); began && began->death) {
            if (!std::holds_alternative<study::JobDied>(records.front())) began->death.reset();
        }
        return event;
    }

    Tuner again_;
};

Retold retold(const std::vector<Record>& records, const State& state) { return retell(records, state); }

} // namespace

TEST_CASE("The event behind the records of each step is retold, for every kind of event", "[tuner]") {
    Retelling study(small_study("max_iterations = 9\n", "[scheduler]\ntype = \"asha\"\n"));
    SmallCore& core = study.core;
    core.step(study::DeadlineKnown{StudyTime{std::chrono::hours(1)}});
    core.began({"n0", "n1", "n1"});
    core.step(study::ReportArrived{
        TrialId{0}, AttemptId{1}, Incarnation{1}, 1, 0.5, {{"loss", 2.0}, {"score", 0.5}, {"time", 0.1}}}); // new names
    core.step(study::CheckpointSaved{TrialId{0}, AttemptId{1}, Incarnation{1}, {1, "0/1", 4096, 0xabc, 0.5, {7, 8}}});
    core.over(0, AttemptOutcome::paused);
    core.step(study::ReportArrived{TrialId{1},
                                   AttemptId{1},
                                   Incarnation{1},
                                   1,
                                   0.5,
                                   {{"time", 0.2}, {"score", 0.4}}}); // known ones, in another order
    core.over(1, AttemptOutcome::failed, {"it broke", 0});
    core.gone(1);
    core.gone(2, true, "no report within 5 s");
    core.step(study::StopRequested{"SIGTERM", Reason::draining, Asker::sigterm});
    core.step(study::StopRequested{"ranktune stop", Reason::draining, Asker::verb}); // a person is recorded once more
    CHECK(study.events == 11);
    core.over(2, AttemptOutcome::paused);
    core.began({"n0"}, study::JobDeath{});
    core.step_at(StudyTime{std::chrono::hours(1)}, study::TimerFired{});
    CHECK(study.events == 14);
    CHECK(core.record<study::DrainBegan>()->reason == Reason::deadline);
}

TEST_CASE("A death is retold with its notes, and a stop with its cause", "[tuner]") {
    Retelling study(small_study("max_iterations = 9\ntime_budget = \"60s\"\n", "[failure]\nmax_failures = 1\n"));
    SmallCore& core = study.core;
    core.began({"n0", "n0"});
    core.began({"n0", "n0"}, study::JobDeath{{{TrialId{0}, AttemptId{1}, {"signal 11", 1}},
                                              {TrialId{1}, AttemptId{1}, {"no report within 5 s", 2}}}});
    CHECK(core.record<study::JobDied>()->notes.size() == 2);
    core.step(study::StopRequested{"x is never read", Reason::unread_parameter});
    core.over(0, AttemptOutcome::lost);
    core.over(1, AttemptOutcome::lost);
    core.began({"n0"});
    core.step_at(StudyTime{std::chrono::seconds(60)}, study::TimerFired{});
    CHECK(core.record<study::DrainBegan>()->reason == Reason::study_time);
    CHECK(study.events == 7);
}

TEST_CASE("A report that waits for its turn is retold, with new metrics before it", "[tuner]") {
    Retelling study(small_study("max_iterations = 9\ndeterministic = true\nmax_concurrent = 2\n", ""));
    study.core.began({"n0", "n0"});
    study.core.step(study::ReportArrived{TrialId{1}, AttemptId{1}, Incarnation{1}, 1, 0.5, {{"score", 0.5}}});
    CHECK(study.core.record<study::ReportHeld>() != nullptr);
    study.core.report(1, 2, 0.5);
    study.core.report(0, 1, 0.5);
    CHECK(study.events == 4);
}

TEST_CASE("An end without a report is retold as a failure", "[tuner]") {
    for (const std::string mode : {"", "deterministic = true\nmax_concurrent = 2\n"}) {
        Retelling study(small_study("max_iterations = 9\n" + mode, "[failure]\nmax_failures = 1\n"));
        study.core.began({"n0", "n0"});
        study.core.over(0, AttemptOutcome::finished);
        CHECK(study.core.record<study::AttemptEnded>()->outcome == AttemptOutcome::failed);
        CHECK(study.core.record<study::AttemptEnded>()->retry);
        study.core.over(0, AttemptOutcome::finished); // the same again
        CHECK_FALSE(study.core.record<study::AttemptEnded>()->retry);
        CHECK(study.core.trial(0).phase == TrialPhase::failed);
        CHECK(study.events == 3);
    }
}

// ---- what cannot be told

TEST_CASE("Names of metrics without their report are cut short, and so is a death without a beginning", "[tuner]") {
    const State state;
    const Record name = study::MetricDefined{MetricId{0}, "score"};
    const Record death = study::JobDied{};
    for (const auto& records :
         {std::vector<Record>{name}, {name, study::MetricDefined{MetricId{1}, "loss"}}, {death}}) {
        CHECK(retold(records, state).cut_short);
        CHECK_FALSE(retold(records, state).event);
    }
}

TEST_CASE("Records that no event begins with are retold as no event", "[tuner]") {
    const State state;
    const Record name = study::MetricDefined{MetricId{0}, "score"};
    const study::Reported of_unknown_metric{TrialId{0}, AttemptId{1}, {}, 1, 0.5, {{MetricId{1}, 0.5}}, {}};
    const std::vector<std::vector<Record>> all = {
        {study::StudyCreated{}},
        {study::TrialCreated{}},
        {study::TrialStarted{}},
        {study::CheckpointReleased{}},
        {study::TrialPromoted{}},
        {study::TrialClosed{}},
        {study::Snapshot{}},
        {study::StudyChanged{}},
        {study::TrialReopened{}},
        {study::HostRetired{}},
        {study::YieldAsked{}},
        {name, study::TrialCreated{}},             // a name, and then no report
        {study::JobDied{}, study::TrialCreated{}}, // a death, and then no beginning
        {name, of_unknown_metric},                 // a metric that has no name
    };
    for (const auto& records : all) {
        INFO("record " << records.front().index());
        CHECK_FALSE(retold(records, state).event);
        CHECK_FALSE(retold(records, state).cut_short);
    }
}

TEST_CASE("Numbers of metrics are looked up among those that were known, and those that come before the report",
          "[tuner]") {
    State state;
    state.metrics = {"loss"};
    state.incarnation = Incarnation{4};
    const study::Reported report{
        TrialId{2}, AttemptId{3}, StudyTime{Duration{5}}, 6, 0.5, {{MetricId{1}, 0.25}, {MetricId{0}, 2.0}}, {}};
    const Retold told = retold({study::MetricDefined{MetricId{1}, "score"}, report, study::TrialCreated{}}, state);
    REQUIRE(told.event);
    CHECK(text(*told.event) == "5 report #2.3 in 4: 6 after 0.500000 s score=0.250000 loss=2.000000");
}

// ---- at random

namespace {

/// Groups that train, fail and die as a seed says.
class World {
  public:
    /// On every fourth one the first host is bad.
    World(SmallCore& core, std::uint64_t seed, bool steered)
        : core_(core), random_(seed, base::Purpose::fault), bad_host_(seed % 4 == 0), steered_(steered) {}

    /// False: the study is over.
    bool step() {
        if (is_over(core_.state())) return false;
        if (core_.state().ended || core_.incarnation() == Incarnation{}) {
            begin({});
        } else if (chance(0.02)) {
            begin(study::JobDeath{});
        } else if (chance(0.02) && !groups_.empty()) {
            const auto& [trial, group] = *groups_.begin();
            begin(study::JobDeath{{{trial, group.start.attempt, {"signal 11", 1}}}});
        } else if (chance(0.02)) { // perhaps gone already
            send(study::RankGone{Rank{1 + static_cast<std::uint32_t>(random_.below(4))}, "silent", chance(0.5)});
        } else if (chance(0.01)) {
            send(study::StopRequested{"enough", Reason::draining, chance(0.5) ? Asker::verb : Asker::sigusr1});
        } else if (chance(0.03)) {
            send(study::DeadlineKnown{chance(0.5) ? std::optional(core_.now() + std::chrono::hours(1)) : std::nullopt});
        } else if (chance(0.02)) {
            send(study::TimerFired{});
        } else if (steered_ && chance(0.1)) {
            steer();
        } else if (!groups_.empty()) {
            auto at = groups_.begin();
            std::advance(at, static_cast<std::ptrdiff_t>(random_.below(groups_.size())));
            act(at->first, at->second);
        }
        return true;
    }

  private:
    struct Group {
        study::StartTrial start;
        Iteration iteration = 0;
        Iteration decision_point = 0;
        bool waits = false;               ///< for the verdict on its report
        std::optional<Verdict> interrupt; ///< to be obeyed at its next report
        std::optional<Verdict> told;
        bool abandoned = false;
    };

    bool chance(double probability) { return random_.uniform() < probability; }
    void begin(std::optional<study::JobDeath> death) {
        groups_.clear();
        core_.began({"n0", "n0", "n1", "n2"}, std::move(death));
        hear();
    }
    void send(study::EventBody body) {
        core_.step(std::move(body));
        hear();
    }
    /// A user asks for something, sensible or not.
    void steer() {
        study::Steering ask;
        ask.request = ++request_;
        ask.verb = static_cast<study::SteerVerb>(random_.below(5));
        ask.trial = TrialId{static_cast<std::uint32_t>(random_.below(core_.state().trials.size() + 1))};
        if (ask.verb == study::SteerVerb::add) ask.points.emplace_back();
        if (ask.verb == study::SteerVerb::set)
            ask.settings = {"study.num_trials=" + std::to_string(15 + random_.below(15))};
        send(study::SteerAsked{"ada@login1", std::move(ask)});
    }
    void saved(TrialId trial, const Group& group) {
        const std::string path = std::to_string(trial.value()) + "/" + std::to_string(group.iteration);
        send(study::CheckpointSaved{
            trial, group.start.attempt, group.start.incarnation, {group.iteration, path, 10, 1, 0.5}});
    }
    void act(TrialId trial, Group& group) {
        if (group.abandoned) return over(trial, AttemptOutcome::lost);
        if (bad_host_ && group.start.ranks.back() <= Rank{2} && chance(0.4))
            return over(trial, AttemptOutcome::failed, {"no GPU"});
        if (group.told && chance(0.1)) return over(trial, AttemptOutcome::failed);
        if (group.told && group.told->verb != Verb::pause) return over(trial, AttemptOutcome::stopped);
        if (group.told && chance(0.05)) return over(trial, AttemptOutcome::unsaved);
        if (group.told && group.told->reason == Reason::yielded && chance(0.2)) // has nothing to save
            return over(trial, AttemptOutcome::stopped);
        if (group.told) {
            saved(trial, group);
            return over(trial, AttemptOutcome::paused);
        }
        if (group.waits) return;
        const bool fresh = std::holds_alternative<Fresh>(group.start.from);
        if (group.iteration == 0 && chance(0.1))
            return over(trial, chance(0.5) ? AttemptOutcome::unstarted : AttemptOutcome::finished);
        if (!fresh && group.iteration == from(group) && chance(0.1))
            return over(trial, chance(0.5) ? AttemptOutcome::unreadable : AttemptOutcome::unreachable);
        constexpr AttemptOutcome ends[] = {AttemptOutcome::failed, AttemptOutcome::lost, AttemptOutcome::disturbed,
                                           AttemptOutcome::finished};
        if (chance(0.05)) return over(trial, ends[random_.below(4)]);
        report(trial, group);
    }
    void report(TrialId trial, Group& group) {
        ++group.iteration;
        group.waits = group.iteration >= group.decision_point;
        if (group.interrupt) group.told = group.interrupt;
        std::vector<study::NamedMetric> metrics = {{"score", random_.uniform()}};
        if (chance(0.2)) metrics.insert(metrics.begin(), {"m" + std::to_string(random_.below(4)), 1.0});
        const Group now = group; // the answer may change it
        send(study::ReportArrived{trial, now.start.attempt, now.start.incarnation, now.iteration,
                                  now.start.seconds + static_cast<double>(now.iteration), std::move(metrics)});
        if (chance(0.3)) saved(trial, now);
    }
    void over(TrialId trial, AttemptOutcome outcome, Failure failure = {}) {
        const study::StartTrial start = groups_.at(trial).start;
        groups_.erase(trial);
        const bool fails = outcome == AttemptOutcome::failed || outcome == AttemptOutcome::disturbed;
        if (fails && failure.empty())
            failure = {std::string("it broke in way ") + static_cast<char>('a' + random_.below(3)), trial.value() % 3};
        send(study::AttemptOver{trial, start.attempt, start.incarnation, outcome, std::move(failure)});
    }
    static Iteration from(const Group& group) {
        const auto* checkpoint = std::get_if<CheckpointRef>(&group.start.from);
        return checkpoint == nullptr ? 0 : checkpoint->iteration;
    }
    /// What the last event commanded.
    void hear() {
        for (const auto& command : core_.commands()) {
            if (const auto* start = std::get_if<study::StartTrial>(&command)) {
                Group group;
                group.start = *start;
                group.iteration = from(group);
                group.decision_point = start->decision_point;
                groups_.insert_or_assign(start->trial, group);
            } else if (const auto* decide = std::get_if<study::Decide>(&command)) {
                Group& group = groups_.at(decide->trial);
                group.waits = false;
                group.decision_point = decide->decision_point;
                if (decide->verdict.verb != Verb::go_on) group.told = decide->verdict;
            } else if (const auto* interrupt = std::get_if<study::Interrupt>(&command)) {
                Group& group = groups_.at(interrupt->trial);
                group.interrupt = interrupt->verdict;
                if (group.waits) group.told = group.interrupt;
            } else if (const auto* abandon = std::get_if<study::Abandon>(&command)) {
                const auto group = groups_.find(abandon->trial);
                if (group != groups_.end() && group->second.start.attempt == abandon->attempt)
                    group->second.abandoned = true;
            }
        }
    }

    SmallCore& core_;
    base::RngStream random_;
    bool bad_host_;
    bool steered_;
    std::uint64_t request_ = 0;
    std::map<TrialId, Group> groups_;
};

/// One of six studies, by its seed.
std::string study_of(std::uint64_t seed, const std::string& mode) {
    const std::vector<std::string> schedulers = {"[scheduler]\ntype = \"asha\"\neta = 2\n",
                                                 "[scheduler]\ntype = \"asha\"\neta = 2\nvariant = \"stop\"\n",
                                                 "[stop]\nmetric = \"score >= 0.9\"\n"};
    const std::string ranks = seed % 2 == 0 ? "1" : "2";
    const std::string budget = seed % 6 == 5 && mode.empty() ? "time_budget = \"150s\"\n" : "";
    std::string text = small_study("max_iterations = 9\n" + mode + budget,
                                   "[resources]\nranks = " + ranks + "\n" + schedulers[seed % 3] +
                                       "[checkpoint]\nmax_bytes = 30\n[failure]\nmax_failures = 1\nin_a_row = 30\n");
    return text.replace(text.find("num_trials = 4"), 14, "num_trials = 20");
}

} // namespace

TEST_CASE("Every step of random studies is retold", "[tuner]") {
    for (const std::string mode : {"", "deterministic = true\nmax_concurrent = 5\n"}) {
        for (const bool steered : {false, true}) {
            int events = 0;
            std::set<std::size_t> kinds;
            for (std::uint64_t seed = 1; seed <= 24; ++seed) {
                INFO((mode.empty() ? "asynchronous" : "deterministic")
                     << (steered ? ", steered" : "") << ", seed " << seed);
                Retelling study(study_of(seed, mode));
                World world(study.core, seed, steered);
                for (int i = 0; i < 300 && world.step(); ++i)
                    for (const auto& record : study.core.records()) kinds.insert(record.index());
                events += study.events;
            }
            CHECK(events > 3000);
            for (const Record& kind : std::vector<Record>{study::TrialPromoted{}, study::CheckpointReleased{},
                                                          study::RankLost{}, study::DrainBegan{}, study::DeadlineSet{},
                                                          study::JobDied{}, study::HostRetired{}, study::StudyEnded{}})
                CHECK(kinds.contains(kind.index()));
            CHECK(kinds.contains(Record(study::Steered{}).index()) == steered);
            for (const Record& kind : std::vector<Record>{study::ReportHeld{}, study::YieldAsked{}})
                CHECK(kinds.contains(kind.index()) == !mode.empty());
        }
    }
}

} // namespace ranktune::tuner::retell_test
