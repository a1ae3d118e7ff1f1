// SPDX-License-Identifier: Apache-2.0
// What algorithms can ask of the core: to take over another trial's state, to wait, to prepare suggestions ahead.

#include <memory>
#include <string>
#include <vector>

#include "ranktune/base/error.hpp"
#include "ranktune/study/parse.hpp"
#include "support/catch.hpp"
#include "support/known.hpp"
#include "support/toy_algorithms.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::tuner::doors_test {
namespace {

using ranktune::testing::ToyPopulation;
using ranktune::testing::ToySlowSearcher;

constexpr const char* study_text = R"toml([study]
name = "doors"
metric = "score"
mode = "max"
num_trials = 4
seed = 1
max_iterations = 9
[trainable]
name = "any"
[space]
lr = "loguniform(0.01, 1.0)"
[failure]
max_failures = 1
)toml";

study::StudySpec spec_of(const std::string& more = {}, const std::vector<std::string>& overrides = {}) {
    return study::parse_study(study_text + more, "doors.toml", overrides,
                              ranktune::testing::known({ranktune::testing::any_trainable("any")}));
}

/// Two trials side by side, that are compared every third iteration.
class Pair {
  public:
    explicit Pair(const std::string& more = {}, const std::vector<std::string>& overrides = {})
        : tuner(std::make_unique<Tuner>(spec_of(more, overrides), std::make_unique<ToyPopulation>(2, 3, 9), nullptr)) {
        tuner->create("uuid", study::resolved_toml(tuner->spec()), "test", out);
        step(study::Began{base::Incarnation{1}, {{base::Rank{1}, "n0"}, {base::Rank{2}, "n1"}}, "", {}});
    }
    void step(study::EventBody body) {
        out = {};
        tuner->step({base::StudyTime{now_ += std::chrono::seconds(1)}, std::move(body)}, out);
        tuner->check_invariants();
        records.insert(records.end(), out.records.begin(), out.records.end());
    }
    void report(std::uint32_t trial, base::Iteration iteration, double value) {
        step(study::ReportArrived{TrialId{trial},
                                  attempt(trial),
                                  base::Incarnation{1},
                                  iteration,
                                  static_cast<double>(iteration),
                                  {{"score", value}}});
    }
    void saved(std::uint32_t trial, base::Iteration iteration, std::uint32_t generation = 0) {
        CheckpointRef checkpoint{iteration, path(trial, iteration), 10, 1};
        checkpoint.generation = generation;
        step(study::CheckpointSaved{TrialId{trial}, attempt(trial), base::Incarnation{1}, checkpoint});
    }
    void over(std::uint32_t trial, AttemptOutcome outcome) {
        step(study::AttemptOver{TrialId{trial}, attempt(trial), base::Incarnation{1}, outcome, {}});
    }
    [[nodiscard]] const Trial& trial(std::uint32_t id) const { return tuner->state().trials[TrialId{id}]; }
    [[nodiscard]] AttemptId attempt(std::uint32_t id) const { return trial(id).attempt.id; }
    [[nodiscard]] std::string path(std::uint32_t id, base::Iteration iteration) const {
        return "checkpoints/" + std::to_string(id) + "/" + std::to_string(iteration) + "-" +
               std::to_string(attempt(id).value()) + ".1.h5";
    }
    template <class T>
    [[nodiscard]] std::vector<T> sent() const {
        std::vector<T> found;
        for (const auto& command : out.commands)
            if (const auto* one = std::get_if<T>(&command)) found.push_back(*one);
        return found;
    }
    template <class T>
    [[nodiscard]] std::size_t recorded() const {
        return static_cast<std::size_t>(
            std::ranges::count_if(records, [](const auto& r) { return std::holds_alternative<T>(r); }));
    }
    /// #1 has saved at the first comparison, and #0 is worse there.
    void exploit() {
        report(1, 3, 0.9);
        saved(1, 3);
        saved(0, 2);
        report(0, 3, 0.1);
    }

    std::unique_ptr<Tuner> tuner;
    Output out;
    std::vector<study::Record> records;

  private:
    base::Duration now_{};
};

} // namespace

TEST_CASE("A trial takes over the state and the configuration of another one", "[tuner]") {
    Pair pair;
    const auto own = pair.trial(0).configuration;
    pair.exploit();
    REQUIRE(pair.out.records.size() == 2); // in one frame of the journal
    const auto verdict = std::get<study::Reported>(pair.out.records[0]).verdict;
    CHECK(verdict.verb == Verb::exploit);
    CHECK(study::describe(verdict.reason, verdict.a, verdict.b) == "takes over the state of #1 at iteration 3");
    const auto exploited = std::get<study::Exploited>(pair.out.records[1]);
    CHECK(exploited.donor.trial == TrialId{1});
    CHECK(exploited.donor.checkpoint.path == pair.path(1, 3));
    REQUIRE(pair.sent<study::Decide>().size() == 1);
    CHECK(pair.sent<study::Decide>()[0].verdict.verb == Verb::discard); // its own state is not needed

    CHECK(pair.trial(0).generation() == 1);
    CHECK(configuration_at(pair.trial(0), 3) == own);
    CHECK(configuration_at(pair.trial(0), 4) == exploited.configuration);
    CHECK(best_configuration(pair.trial(0)) == own);

    pair.over(0, AttemptOutcome::stopped);
    REQUIRE(pair.sent<study::StartTrial>().size() == 1);
    const auto start = pair.sent<study::StartTrial>()[0];
    CHECK(std::get<Donor>(start.from) == exploited.donor);
    CHECK(start.holders == pair.trial(1).attempt.ranks); // who trains on, and has it in memory
    CHECK(start.iteration == 3);
    CHECK(start.generation == 1);
    CHECK(start.configuration == exploited.configuration);
}

TEST_CASE("Nobody asks dead ranks for a donor's state", "[tuner]") {
    Pair pair;
    pair.exploit();
    pair.step(study::RankGone{pair.trial(1).attempt.ranks.front(), "it is gone"});
    pair.over(0, AttemptOutcome::stopped);
    REQUIRE(pair.sent<study::StartTrial>().size() == 1);
    const auto start = pair.sent<study::StartTrial>()[0];
    REQUIRE(std::holds_alternative<Donor>(start.from));
    CHECK(start.holders.empty());
}

TEST_CASE("A trial that exploits keeps its ranks, though lower ones are free", "[tuner]") {
    Pair pair({}, {"study.num_trials=2"});
    pair.report(0, 3, 0.9);
    pair.saved(0, 3);
    pair.report(1, 3, 0.1);
    REQUIRE(pair.trial(1).generation() == 1);
    pair.report(0, 9, 1.0);
    pair.over(0, AttemptOutcome::stopped);
    bool lost = false;
    SECTION("they are free") {}
    SECTION("they are gone") {
        pair.step(study::RankGone{base::Rank{2}, "silent", false});
        lost = true;
    }
    if (!lost) pair.over(1, AttemptOutcome::stopped);
    const auto starts = pair.sent<study::StartTrial>();
    REQUIRE(starts.size() == 1);
    CHECK(starts[0].trial == TrialId{1});
    CHECK(starts[0].ranks == std::vector{base::Rank{lost ? 1U : 2U}});
}

TEST_CASE("A donor's checkpoint is kept until the other trial has two of its own", "[tuner]") {
    Pair pair;
    pair.exploit();
    pair.over(0, AttemptOutcome::stopped);
    for (base::Iteration i = 4; i <= 8; ++i) {
        pair.report(1, i, 0.9 + 0.01 * static_cast<double>(i));
        pair.saved(1, i);
    }
    const auto has = [&](const std::string& path) {
        const auto& all = pair.trial(1).checkpoints;
        return std::ranges::find(all, path, &CheckpointRef::path) != all.end();
    };
    CHECK(has(pair.path(1, 3)));
    CHECK_FALSE(has(pair.path(1, 4)));
    pair.report(0, 4, 0.95);
    pair.saved(0, 4, 0); // begun before the takeover: not needed
    CHECK(has(pair.path(1, 3)));
    CHECK(std::holds_alternative<Donor>(start_of(pair.trial(0)).from));
    pair.report(0, 5, 0.96);
    pair.saved(0, 5, 1);
    CHECK(std::get<CheckpointRef>(start_of(pair.trial(0)).from).iteration == 5);
    CHECK(has(pair.path(1, 3))); // in case that one is damaged
    pair.report(0, 7, 0.97);
    pair.saved(0, 7, 1);
    CHECK_FALSE(has(pair.path(1, 3)));
}

TEST_CASE("An unreadable state is not taken over, and states and configurations are never mixed", "[tuner]") {
    Pair pair;
    const auto own = pair.trial(0).configuration;
    pair.exploit();
    pair.over(0, AttemptOutcome::stopped);
    pair.over(0, AttemptOutcome::unreadable);
    CHECK(pair.recorded<study::ExploitUndone>() == 1);
    CHECK(pair.trial(0).configuration == own);
    CHECK(pair.trial(0).generation() == 0);
    REQUIRE(pair.sent<study::StartTrial>().size() == 1);
    const auto start = pair.sent<study::StartTrial>()[0];
    CHECK(std::get<CheckpointRef>(start.from).iteration == 2); // its own
    CHECK(start.iteration == 2);
    CHECK(start.configuration == own);
}

TEST_CASE("A trial that was told to exploit does so however its attempt ends", "[tuner]") {
    for (const auto outcome : {AttemptOutcome::paused, AttemptOutcome::stopped}) {
        INFO(study::name(outcome));
        Pair pair;
        pair.exploit();
        pair.over(0, outcome);
        CHECK(pair.trial(0).phase == TrialPhase::running);
        CHECK(pair.sent<study::StartTrial>().size() == 1);
    }
    Pair lost;
    lost.exploit();
    lost.step(study::RankGone{lost.trial(0).attempt.ranks.front(), "killed"});
    CHECK(lost.trial(0).phase == TrialPhase::waiting);
    CHECK(lost.trial(0).generation() == 1);
    Pair failed;
    failed.exploit();
    failed.over(0, AttemptOutcome::failed);
    CHECK(failed.trial(0).phase == TrialPhase::running);
    CHECK(failed.trial(0).failures == 0); // only ranks came back
}

TEST_CASE("Without a checkpoint of its donor a trial goes on as it is", "[tuner]") {
    /// Wants a checkpoint that no trial has saved.
    class Dreamer final : public schedulers::Scheduler {
      public:
        [[nodiscard]] std::string_view name() const override { return "dreamer"; }
        [[nodiscard]] Verdict decide(const schedulers::Report& report, bool) const override {
            return {report.iteration < 9 ? Verb::exploit : Verb::stop, Reason::none, 0.0, 0.0};
        }
        [[nodiscard]] schedulers::Exploit exploit(const schedulers::Report& report) const override {
            return {TrialId{report.iteration == 1 ? 1U : 99U}, 5, {}};
        }
        [[nodiscard]] schedulers::Work next(const schedulers::Pool& pool) const override {
            return pool.can_create ? schedulers::Work(schedulers::Create{}) : schedulers::NothingLeft{};
        }
        [[nodiscard]] Iteration next_decision_point(TrialId, Iteration current) const override { return current + 1; }
        void apply(const study::Record&) override {}
        void snapshot(study::Encoder&) const override {}
        void restore(study::Decoder&) override {}
        [[nodiscard]] bool pauses() const override { return false; }
    };
    Pair pair;
    pair.tuner = std::make_unique<Tuner>(spec_of(), std::make_unique<Dreamer>(), nullptr);
    Output out;
    pair.tuner->create("uuid", study::resolved_toml(pair.tuner->spec()), "test", out);
    pair.step(study::Began{base::Incarnation{1}, {{base::Rank{1}, "n0"}, {base::Rank{2}, "n1"}}, "", {}});
    for (const base::Iteration iteration : {1U, 2U}) {
        pair.report(0, iteration, 0.5);
        const auto verdict = std::get<study::Reported>(pair.out.records.back()).verdict;
        CHECK(verdict.verb == Verb::go_on);
        CHECK(verdict.reason == Reason::no_donor);
        CHECK(pair.trial(0).phase == TrialPhase::running);
    }
    CHECK(pair.recorded<study::Exploited>() == 0);
}

TEST_CASE("Combinations that cannot work are refused", "[tuner]") {
    const auto make = [](const std::string& more, bool saves) {
        auto trainable = ranktune::testing::any_trainable("any");
        trainable.can_checkpoint = saves;
        return Tuner(study::parse_study(study_text + more, "doors.toml", {}, ranktune::testing::known({trainable})),
                     std::make_unique<ToyPopulation>(2, 3, 9), nullptr)
            .spec()
            .name;
    };
    CHECK(make("", true) == "doors");
    CHECK_THROWS_AS(make("", false), base::UsageError);
}

TEST_CASE("While a scheduler waits for running trials, ranks stay idle", "[tuner]") {
    Pair pair;
    CHECK(pair.tuner->state().trials.size() == 2);
    CHECK(pair.trial(0).bracket == 1);
    CHECK(pair.trial(0).decision_point == 3); // its first target
    pair.over(0, AttemptOutcome::failed);
    pair.over(0, AttemptOutcome::failed); // the same again: it is over, and another one is made
    CHECK(pair.tuner->state().trials.size() == 3);
}

TEST_CASE("The table of observations has what took effect, and the view of a ticket does not grow", "[tuner]") {
    auto spec = spec_of();
    auto tuner = std::make_unique<Tuner>(spec, nullptr, std::make_unique<ToySlowSearcher>(spec.space, 3));
    Output out;
    tuner->create("uuid", study::resolved_toml(spec), "test", out);
    const base::StudyTime now{};
    tuner->step({now, study::Began{base::Incarnation{1}, {{base::Rank{1}, "n0"}}, "", {}}}, out);
    CHECK(tuner->state().trials[0].origin == study::Origin{study::Origin::Kind::stopgap, 0, 0});
    REQUIRE(tuner->state().tickets.open().size() == 1);
    const std::uint64_t seen = tuner->state().tickets.open()[0].seen;
    for (base::Iteration i = 1; i <= 9; ++i)
        tuner->step(
            {now, study::ReportArrived{TrialId{0}, AttemptId{1}, base::Incarnation{1}, i, 1.0, {{"score", 0.5}}}}, out);
    const auto& table = tuner->state().observations;
    CHECK(table.size() == 11);
    CHECK(table[0].kind == searchers::Observation::Kind::asked);
    CHECK(table[9].iteration == 9);
    CHECK(table[9].score.rank() == 0.5);
    CHECK(table.point(table[9].point) == spec.space.encode(tuner->state().trials[0].configuration));
    CHECK(table.first(seen).size() == seen);

    REQUIRE(tuner->preparation(0));
    CHECK_FALSE(tuner->preparation(1));
    const auto suggestion = (*tuner->preparation(0))().configuration;
    tuner->step({now, study::Prepared{0, suggestion, ""}}, out);
    CHECK_FALSE(tuner->preparation(0)); // answered
    const std::uint64_t stale = out.stale;
    tuner->step({now, study::Prepared{0, suggestion, ""}}, out);
    tuner->step({now, study::Prepared{7, suggestion, ""}}, out);
    CHECK(out.stale == stale + 2);
    tuner->step({now, study::AttemptOver{TrialId{0}, AttemptId{1}, base::Incarnation{1}, AttemptOutcome::stopped, {}}},
                out);
    CHECK(tuner->state().trials[1].origin == study::Origin{study::Origin::Kind::ticket, 0, 0});
    CHECK(tuner->state().trials[1].configuration == suggestion);
    CHECK(table[10].kind == searchers::Observation::Kind::over);

    study::Bytes bytes;
    study::Encoder encoder(bytes);
    tuner->snapshot(encoder);
    Tuner again(spec, nullptr, std::make_unique<ToySlowSearcher>(spec.space, 3));
    study::Decoder decoder(bytes);
    again.restore(decoder);
    CHECK(again.digest() == tuner->digest());
    REQUIRE(again.preparation(1));
    CHECK((*again.preparation(1))() == (*tuner->preparation(1))());
}

} // namespace ranktune::tuner::doors_test
