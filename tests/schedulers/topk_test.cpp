// SPDX-License-Identifier: Apache-2.0
// The baseline: every trial a little, the best few to the end.
#include <vector>

#include "schedulers/driver.hpp"
#include "support/catch.hpp"
#include "testing/scheduler_world.hpp"

namespace topk_test {

using namespace ranktune;
using namespace ranktune::schedulers;
using base::Iteration;

namespace {

study::StudySpec topk(std::uint32_t trials, std::vector<study::OptionValue> settings = {}, Iteration ceiling = 10) {
    study::StudySpec spec = spec_of(chosen("topk", settings), ceiling);
    spec.num_trials = trials;
    return spec;
}

/// The trials that `next` promotes, one after the other.
std::vector<std::uint32_t> promote_all(Driver& d) {
    std::vector<std::uint32_t> went;
    while (const auto promotion = d.next({.can_create = false, .active = true})) {
        went.push_back(promotion->trial.value());
        d.promote(*promotion);
    }
    return went;
}

using Numbers = std::vector<std::uint32_t>;

} // namespace

TEST_CASE("topk: all trials are trained a little, and the best one to the end", "[schedulers][topk]") {
    Driver d(topk(4));
    CHECK(std::get<Create>(d.work({.can_create = true})) == Create{0, 1});
    for (int i = 0; i < 4; ++i) d.add();
    for (const std::uint32_t i : {0U, 1U, 2U}) CHECK(d.report(TrialId(i), 1, i == 1 ? 5.0 : 1.0).verb == Verb::pause);
    CHECK(std::holds_alternative<Wait>(d.work({.can_create = false, .active = true}))); // for #3
    CHECK(d.report(TrialId(3), 1, 4.0).verb == Verb::pause);
    CHECK(d.next() == Promotion{TrialId(1), 1, 10, Reason::promoted});
    CHECK(promote_all(d) == Numbers{1});
    for (Iteration t = 2; t < 10; ++t) CHECK(d.report(TrialId(1), t, 0.0).verb == Verb::go_on);
    CHECK(d.report(TrialId(1), 10, 0.0).reason == Reason::max_iterations);
    d.ended(TrialId(1), study::AttemptOutcome::finished);
    d.close(TrialId(1), study::TrialPhase::finished, Reason::max_iterations);
    CHECK(std::holds_alternative<NothingLeft>(d.work({})));
}

TEST_CASE("topk: the best that comes last goes on without a pause", "[schedulers][topk]") {
    Driver d(topk(3, {{"first", 2}}));
    for (int i = 0; i < 3; ++i) d.add();
    CHECK(d.report(TrialId(0), 1, 9.0).reason == Reason::below_rung);
    CHECK(d.report(TrialId(0), 2, 1.0).verb == Verb::pause);
    CHECK(d.report(TrialId(1), 2, 2.0).verb == Verb::pause);
    const Verdict verdict = d.report(TrialId(2), 2, 3.0);
    CHECK(verdict.verb == Verb::go_on);
    CHECK(verdict.reason == Reason::in_top);
    CHECK(promote_all(d).empty());
}

TEST_CASE("topk: a top trial that fails lets the next one in, one that ends does not", "[schedulers][topk]") {
    Driver d(topk(5, {{"k", 2}}));
    for (int i = 0; i < 5; ++i) d.add();
    for (std::uint32_t i = 0; i < 5; ++i) d.report(TrialId(i), 1, 10.0 - i, true);
    CHECK(promote_all(d) == Numbers{0, 1});
    CHECK_FALSE(d.scheduler().out_of_reach(TrialId(4))); // its checkpoint stays
    d.fail(TrialId(0));
    CHECK(promote_all(d) == Numbers{2});
    d.complete(TrialId(1), 5, 1.0); // its trainable ends
    CHECK(promote_all(d).empty());
    d.fail(TrialId(2));
    CHECK(promote_all(d) == Numbers{3});
    // The failed one is tried again: then there are three.
    d.apply(study::TrialReopened{TrialId(0), {}, false});
    d.fail(TrialId(3));
    CHECK(promote_all(d).empty());
    d.fail(TrialId(0));
    CHECK(promote_all(d) == Numbers{4});
    d.fail(TrialId(4));
    CHECK(std::holds_alternative<NothingLeft>(d.work({})));
}

TEST_CASE("topk: with k trials or fewer all go on; failures count for nothing", "[schedulers][topk]") {
    Driver d(topk(3, {{"k", 5}}));
    for (int i = 0; i < 3; ++i) d.add();
    d.fail(TrialId(1));
    CHECK(d.report(TrialId(0), 1, std::nan("")).verb == Verb::pause);
    CHECK(d.report(TrialId(2), 1, 0.0).verb == Verb::go_on);
    CHECK(promote_all(d) == Numbers{0});
}

TEST_CASE("topk: a study that is extended trains the best of the new trials, too", "[schedulers][topk]") {
    Driver d(topk(2));
    d.add();
    d.add();
    d.report(TrialId(0), 1, 2.0, true);
    d.report(TrialId(1), 1, 1.0, true);
    CHECK(promote_all(d) == Numbers{0});
    CHECK(std::get<Create>(d.work({.can_create = true})) == Create{1, 1});
}

TEST_CASE("topk: the plan is what is trained", "[schedulers][topk]") {
    const auto plan_of = [](const study::StudySpec& spec) { return spec.scheduler.algorithm->plan(spec); };
    CHECK(plan_of(topk(40)).words == "the best one after 1 iteration");
    CHECK(plan_of(topk(40, {{"k", 3}, {"first", 2}})).words == "the best 3 after 2 iterations");
    CHECK(plan_of(topk(3, {{"k", 3}})).warning ==
          "k = 3 of 3 trials: every trial is trained to the end; raise study.num_trials, or lower scheduler.k");
    for (const std::uint32_t trials : {40U, 5U, 2U, 1U}) {
        for (const int k : {1, 3}) {
            INFO(trials << " trials, k " << k);
            const study::StudySpec spec = topk(trials, {{"k", k}, {"first", 2}});
            testing::WorldOptions options;
            options.trials = trials;
            options.by_turn = true; // never contended
            options.loss = options.failure = options.stopper = options.drain = options.restart = 0.0;
            testing::World world(spec, options);
            world.run();
            CHECK(world.iterations() == plan_of(spec).iterations);
            CHECK(world.reached_ceiling() == plan_of(spec).rungs.back().trials);
        }
    }
}

TEST_CASE("topk: k trials get to the end, whoever fails, while enough are left", "[schedulers][topk]") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        INFO("seed " << seed);
        testing::WorldOptions options;
        options.seed = seed;
        options.trials = 60;
        options.stopper = options.drain = 0.0;
        options.failure = 0.05;
        testing::World world(topk(60, {{"k", 4}}), options);
        world.run();
        std::size_t finished = 0;
        std::size_t failed = 0;
        for (const study::Record& record : world.records()) {
            const auto* closed = std::get_if<study::TrialClosed>(&record);
            if (closed == nullptr) continue;
            if (closed->reason == Reason::max_iterations) ++finished;
            if (closed->phase == study::TrialPhase::failed) ++failed;
        }
        CHECK(finished == 4);
        CHECK(failed > 0);
    }
}

} // namespace topk_test
