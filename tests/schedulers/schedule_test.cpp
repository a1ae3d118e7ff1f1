// SPDX-License-Identifier: Apache-2.0
// Hyper-parameters that change at given iterations.
#include <string>
#include <vector>

#include "ranktune/base/error.hpp"
#include "schedulers/driver.hpp"
#include "support/catch.hpp"

namespace schedule_test {

using namespace ranktune;
using namespace ranktune::schedulers;
using base::Iteration;

namespace {

study::StudySpec scheduled(Iteration ceiling, std::vector<study::Scheduled> schedule) {
    study::StudySpec spec = spec_of(chosen("schedule"), ceiling);
    spec.num_trials = 2;
    spec.space =
        space::SearchSpace({{"lr", space::FloatRange{0.0, 1.0, false, 0.0}, {}},
                            {"decay", space::Choice{{"none", "cosine"}, false}, {}},
                            {"cycles", space::IntRange{1, 8, false, 1}, space::Condition::parse("decay == 'cosine'")}});
    spec.scheduler.schedule = std::move(schedule);
    return spec;
}

/// One trial, made and started.
struct One : testing::SchedulerDriver {
    explicit One(const study::StudySpec& spec) : SchedulerDriver(spec) {
        apply(study::TrialCreated{trial, {}, 1, 0, 0, {}, space::Configuration({{"lr", 0.5}, {"decay", "none"}})});
        started(trial);
    }
    void save(Iteration iteration) {
        study::CheckpointRef checkpoint{.iteration = iteration, .path = std::to_string(iteration)};
        checkpoint.generation = generation;
        apply(study::CheckpointCommitted{trial, base::AttemptId(1), {}, checkpoint});
    }
    /// Told to pause at this iteration, it does; its state is that of iteration `saved`.
    void pauses(Iteration iteration, std::optional<Iteration> saved) {
        const Verdict verdict = ask(trial, iteration, 0.5);
        CHECK(verdict == Verdict{Verb::pause, Reason::scheduled, static_cast<double>(iteration), 0.0});
        tell(trial, iteration, 0.5, verdict);
        if (saved) save(*saved);
        ended(trial, saved ? study::AttemptOutcome::paused : study::AttemptOutcome::lost, !saved);
    }
    /// Goes on as the scheduler wants; the state and the configuration that it goes on with.
    std::optional<Exploit> goes_on() {
        const auto promotion = next();
        REQUIRE(promotion);
        const auto exploit = scheduler().exploit_at(*promotion);
        promote(*promotion);
        if (exploit) {
            study::CheckpointRef checkpoint{.iteration = exploit->iteration, .path = "own"};
            apply(study::Exploited{
                trial, {}, promotion->from, {exploit->donor, checkpoint}, ++generation, exploit->configuration});
        }
        started(trial);
        return exploit;
    }
    TrialId trial{0};
    std::uint32_t generation = 0;
};

} // namespace

TEST_CASE("A trial saves its state at each change and goes on from it with the new values", "[schedulers][schedule]") {
    One one(scheduled(10, {{"lr", {{3, 0.25}, {7, 0.1}}}, {"decay", {{7, "cosine"}}}, {"cycles", {{7, 4}}}}));
    CHECK(one.scheduler().next_decision_point(one.trial, 0) == 3);
    CHECK(one.report(one.trial, 2, 0.5).verb == Verb::go_on);
    one.pauses(3, 3);
    CHECK(one.next()->target == 7);
    auto exploit = one.goes_on();
    REQUIRE(exploit);
    CHECK(exploit->donor == one.trial);
    CHECK(exploit->iteration == 3);
    CHECK(exploit->configuration == space::Configuration({{"lr", 0.25}, {"decay", "none"}}));
    CHECK(one.scheduler().next_decision_point(one.trial, 3) == 7);
    CHECK(one.report(one.trial, 4, 0.5).verb == Verb::go_on);
    one.pauses(7, 7);
    one.replace_by_restored();
    exploit = one.goes_on();
    REQUIRE(exploit);
    CHECK(exploit->configuration == space::Configuration({{"lr", 0.1}, {"decay", "cosine"}, {"cycles", 4}}));
    CHECK(one.scheduler().next_decision_point(one.trial, 7) == 10);
    CHECK(one.report(one.trial, 10, 0.5).verb == Verb::stop);
}

TEST_CASE("A trial that is lost at a change trains up to it again, as it was", "[schedulers][schedule]") {
    One one(scheduled(10, {{"lr", {{5, 0.25}}}}));
    one.report(one.trial, 2, 0.5);
    one.save(2);
    one.pauses(5, {});
    CHECK_FALSE(one.goes_on()); // its newest state is of iteration 2
    CHECK(one.scheduler().next_decision_point(one.trial, 2) == 5);
    CHECK(one.report(one.trial, 3, 0.5).verb == Verb::go_on);
    one.pauses(5, 5);
    CHECK(one.goes_on()->iteration == 5);
}

TEST_CASE("A program that saves nothing at a change goes on from what it has", "[schedulers][schedule]") {
    One one(scheduled(10, {{"lr", {{5, 0.25}}}}));
    one.save(4);
    one.pauses(5, 4);
    const auto exploit = one.goes_on();
    REQUIRE(exploit);
    CHECK(exploit->iteration == 4);
    CHECK(exploit->configuration.at("lr").as_double() == 0.25);
}

TEST_CASE("Reports that skip iterations change at the next one, to what holds there", "[schedulers][schedule]") {
    One one(scheduled(20, {{"lr", {{3, 0.25}, {4, 0.1}, {12, 0.05}}}}));
    one.pauses(5, 5);
    CHECK(one.goes_on()->configuration.at("lr").as_double() == 0.1);
    CHECK(one.scheduler().next_decision_point(one.trial, 5) == 12);
}

TEST_CASE("A change whose state cannot be read is undone, and made again", "[schedulers][schedule]") {
    One one(scheduled(10, {{"lr", {{5, 0.25}}}}));
    one.pauses(5, 5);
    CHECK(one.goes_on());
    one.ended(one.trial, study::AttemptOutcome::unreadable, true);
    one.apply(study::ExploitUndone{one.trial, {}, --one.generation});
    one.apply(study::CheckpointReleased{one.trial, "5", true});
    one.started(one.trial);
    CHECK(one.scheduler().next_decision_point(one.trial, 0) == 5);
    CHECK(one.report(one.trial, 4, 0.5).verb == Verb::go_on);
    one.pauses(5, 5);
    CHECK(one.goes_on()->configuration.at("lr").as_double() == 0.25);
}

} // namespace schedule_test
