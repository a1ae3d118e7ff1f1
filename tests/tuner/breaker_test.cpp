// SPDX-License-Identifier: Apache-2.0
// Trials that fail one after the other before their first report, in studies with thousands of them.

#include <cstdint>
#include <functional>
#include <queue>
#include <string>
#include <utility>

#include "ranktune/base/digest.hpp"
#include "ranktune/study/parse.hpp"
#include "support/catch.hpp"
#include "support/known.hpp"
#include "tuner/small_core.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::tuner::breaker_test {
namespace {

std::string text_of(std::uint32_t trials, const std::string& more = {}) {
    return "[study]\nname = \"rows\"\nmetric = \"score\"\nmode = \"max\"\nseed = 1\nmax_iterations = 1\nnum_trials = " +
           std::to_string(trials) + "\n" + more + "[trainable]\nname = \"any\"\n[space]\nx = \"uniform(0, 1)\"\n";
}

study::StudySpec spec_of(const std::string& text) {
    return study::parse_study(text, "rows.toml", {},
                              ranktune::testing::known({ranktune::testing::any_trainable("any")}));
}

/// A study whose trials fail at once, or report once after some time: their first report is their last.
class Study {
  public:
    Study(std::uint32_t trials, std::uint32_t groups) : tuner(spec_of(text_of(trials))), groups_(groups) {
        Output out;
        tuner.create("uuid", study::resolved_toml(tuner.spec()), "test", out);
    }

    /// One start, to its end.
    void run(const std::function<bool(TrialId)>& fails) {
        study::Began began;
        began.incarnation = base::Incarnation{++incarnation_};
        for (std::uint32_t i = 0; i < groups_; ++i) began.workers.push_back({base::Rank{i + 1}, "n0", 0});
        coming_ = {};
        step(began);
        while (!coming_.empty()) {
            const auto [at, start] = coming_.top();
            coming_.pop();
            now_ = at;
            if (fails(start.trial)) {
                step(study::AttemptOver{
                    start.trial,
                    start.attempt,
                    start.incarnation,
                    study::AttemptOutcome::failed,
                    {"exit code 2: no such file of trial " + std::to_string(start.trial.value()), 0}});
                continue;
            }
            step(study::ReportArrived{start.trial, start.attempt, start.incarnation, 1, 1.0, {{"score", 0.5}}});
            step(study::AttemptOver{start.trial, start.attempt, start.incarnation, study::AttemptOutcome::stopped, {}});
        }
        tuner.check_invariants();
        REQUIRE(tuner.state().ended);
    }

    /// The same for each trial in every study with the same seed.
    static std::uint64_t luck(std::uint64_t seed, TrialId trial) {
        return base::digest_of(std::to_string(seed) + "/" + std::to_string(trial.value()));
    }
    static bool one_in_three(std::uint64_t seed, TrialId trial) { return luck(seed, trial) % 3 == 0; }

    Tuner tuner;

  private:
    struct Later {
        base::StudyTime at;
        study::StartTrial start;
        friend bool operator<(const Later& a, const Later& b) { return a.at > b.at; } // the earliest on top
    };

    void step(study::EventBody body) {
        Output out;
        tuner.step({now_, std::move(body)}, out);
        for (auto& command : out.commands)
            if (auto* start = std::get_if<study::StartTrial>(&command)) {
                const auto time = std::chrono::milliseconds(1 + luck(7, start->trial) % 10'000);
                coming_.push({now_ + time, std::move(*start)});
            }
    }

    std::uint32_t groups_;
    std::uint32_t incarnation_ = 0;
    base::StudyTime now_{};
    std::priority_queue<Later> coming_;
};

} // namespace

TEST_CASE("The row at which a study drains grows with its groups, and slowly with its trials", "[tuner]") {
    CHECK(failures_to_drain(spec_of(text_of(60)), 2) == 10 + 6 + 2);
    CHECK(failures_to_drain(spec_of(text_of(64)), 2) == 10 + 6 + 2);
    CHECK(failures_to_drain(spec_of(text_of(65)), 2) == 10 + 7 + 2);
    CHECK(failures_to_drain(spec_of(text_of(2000)), 4) == 10 + 11 + 4);
    CHECK(failures_to_drain(spec_of(text_of(1'000'000)), 1000) == 10 + 20 + 1000);
    CHECK(failures_to_drain(spec_of(text_of(2000, "max_concurrent = 3\n")), 8) == 10 + 11 + 3);
    CHECK(failures_to_drain(spec_of(text_of(2000, "[resources]\nranks = 4\n")), 8) == 10 + 11 + 2);
    // What a deterministic study decides does not depend on its ranks.
    const auto deterministic = spec_of(text_of(2000, "max_concurrent = 3\ndeterministic = true\n"));
    CHECK(failures_to_drain(deterministic, 1) == failures_to_drain(deterministic, 64));
    CHECK(failures_to_drain(spec_of(text_of(2000, "[failure]\nin_a_row = 100\n")), 8) == 100);
}

TEST_CASE("A study in which one configuration in three fails at once runs to its end", "[tuner]") {
    for (const std::uint32_t groups : {1U, 8U, 64U}) {
        for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U}) {
            INFO(groups << " groups, seed " << seed);
            Study study(3000, groups);
            study.run([seed](TrialId trial) { return Study::one_in_three(seed, trial); });
            const State& state = study.tuner.state();
            CHECK(state.outcome == StudyOutcome::too_many_failures);
            CHECK(state.end_reason == Reason::study_complete);
            CHECK(state.in(TrialPhase::failed) > 900);
            CHECK(state.in(TrialPhase::failed) + state.in(TrialPhase::finished) == 3000);
        }
    }
}

TEST_CASE("A study whose trials all fail from some point on loses none of them", "[tuner]") {
    for (const std::uint32_t groups : {1U, 8U, 64U}) {
        INFO(groups << " groups");
        Study study(2000, groups);
        study.run([](TrialId trial) { return trial.value() >= 100; }); // the script is gone
        const State& state = study.tuner.state();
        CHECK(state.outcome == StudyOutcome::resumable);
        CHECK(state.end_reason == Reason::failures_in_a_row);
        CHECK(
            state.end_message.find("in a row failed before their first report. They said: exit code 2: no such file") !=
            std::string::npos);
        CHECK(state.in(TrialPhase::failed) == 0);
        CHECK(state.trials.size() < 400);
        study.run([](TrialId trial) { return trial.value() >= 100; }); // still
        CHECK(state.outcome == StudyOutcome::resumable);
        CHECK(state.in(TrialPhase::failed) == 0);
        study.run([](TrialId) { return false; });
        CHECK(state.outcome == StudyOutcome::ok);
        CHECK(state.in(TrialPhase::finished) == 2000);
    }
}

TEST_CASE("A study that drains when a suggestion arrives ends then", "[tuner]") {
    // Deterministic: the failures wait for their turn, which waits for a suggestion. Then no attempt is left to end.
    testing::SmallCore core(
        testing::small_study("num_trials = 6\nmax_iterations = 1\ndeterministic = true\nmax_concurrent = 2\n",
                             "[searcher]\ntype = \"tpe\"\nn_startup_trials = 1\n[failure]\nin_a_row = 2\n"));
    core.began({"n0", "n1"});
    for (const std::uint32_t trial : {0U, 1U}) { // suggestions need a result
        core.report(trial, 1, 0.5);
        core.over(trial, AttemptOutcome::finished);
    }
    const auto answer_oldest = [&] {
        const Ticket* ticket = core.state().tickets.oldest();
        REQUIRE(ticket != nullptr);
        core.step(study::Prepared{ticket->number, (*core.core().preparation(ticket->number))().configuration, ""});
    };
    answer_oldest();
    answer_oldest();
    REQUIRE(core.state().in(TrialPhase::running) == 2);
    core.over(3, AttemptOutcome::failed, {"no such file"});
    core.over(2, AttemptOutcome::failed, {"no such file"});
    CHECK_FALSE(core.state().draining);
    CHECK(core.state().in(TrialPhase::running) == 0);
    answer_oldest();
    CHECK(core.state().draining);
    CHECK(core.state().ended);
    CHECK(core.state().end_reason == Reason::failures_in_a_row);
    CHECK(core.state().in(TrialPhase::failed) == 0);
}

} // namespace ranktune::tuner::breaker_test
