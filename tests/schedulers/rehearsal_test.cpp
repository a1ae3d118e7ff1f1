// SPDX-License-Identifier: Apache-2.0
// The plan of an asynchronous scheduler, tried in virtual time.
#include "schedulers/rehearsal.hpp"

#include <algorithm>
#include <functional>
#include <vector>

#include "schedulers/built_in.hpp"
#include "support/catch.hpp"

namespace rehearsal_test {

using namespace ranktune;

namespace {

study::StudySpec asha(std::uint32_t trials, const std::vector<study::OptionValue>& settings = {}) {
    study::StudySpec spec;
    spec.objective = {"loss", study::Mode::min};
    spec.num_trials = trials;
    spec.max_iterations = 27;
    spec.seed = 1;
    spec.scheduler = schedulers::chosen("asha", settings);
    return spec;
}

study::SchedulerPlan rehearsed(const study::StudySpec& spec, bool learns = false, std::uint32_t groups = 4) {
    study::SchedulerPlan plan = spec.scheduler.algorithm->plan(spec);
    schedulers::rehearse(plan, spec, groups, learns);
    return plan;
}

} // namespace

TEST_CASE("ASHA is expected to promote more trials than ranks say", "[schedulers]") {
    // 60 trials of 27 iterations: 60 + 20 * 2 + 6 * 6 + 2 * 18 by ranks. Such studies (jobs/digits) train 260 to 338.
    const study::StudySpec spec = asha(60);
    CHECK(spec.scheduler.algorithm->plan(spec).iterations == 172);
    const study::SchedulerPlan random = rehearsed(spec);
    CHECK(random.iterations > 190);
    CHECK(random.iterations < 240);
    const study::SchedulerPlan plan = rehearsed(spec, true);
    CHECK(plan.iterations > 270);
    CHECK(plan.iterations < 340);
    CHECK(plan.fewest <= 276);
    CHECK(plan.most >= 338);
    REQUIRE(plan.rungs.size() == 4);
    CHECK(plan.rungs[0].trials == 60);
    CHECK(std::ranges::is_sorted(plan.rungs, std::greater<>(), &study::SchedulerPlan::Rung::trials));
    CHECK(plan.rungs[1].trials > 20);
}

TEST_CASE("A rehearsal is a function of the study and the number of groups", "[schedulers]") {
    for (const char* variant : {"promote", "stop"}) {
        const study::StudySpec spec = asha(40, {{"variant", variant}});
        const study::SchedulerPlan one = rehearsed(spec);
        const study::SchedulerPlan other = rehearsed(spec);
        CHECK(one.iterations == other.iterations);
        CHECK(one.most == other.most);
        CHECK(rehearsed(spec, false, 1).iterations > spec.scheduler.algorithm->plan(spec).iterations);
    }
}

TEST_CASE("The surplus of a large study is a small share of it", "[schedulers]") {
    const study::StudySpec spec = asha(100'000);
    const std::uint64_t by_ranks = spec.scheduler.algorithm->plan(spec).iterations;
    const study::SchedulerPlan plan = rehearsed(spec);
    CHECK(plan.iterations > by_ranks);
    CHECK(plan.iterations < by_ranks + by_ranks / 10);
}

TEST_CASE("As many trials as asked for are finished, and no more", "[schedulers]") {
    for (const int top : {1, 2}) {
        const study::SchedulerPlan plan = rehearsed(asha(8, {{"finish_top", top}}));
        CHECK(plan.rungs.back().trials == static_cast<std::uint64_t>(top));
        CHECK(plan.iterations < 100);
    }
}

TEST_CASE("What is known beforehand is not rehearsed", "[schedulers]") {
    for (const char* name : {"fifo", "hyperband"}) {
        study::StudySpec spec = asha(30);
        spec.scheduler = schedulers::chosen(name);
        study::SchedulerPlan plan =
            spec.scheduler.algorithm->plan ? spec.scheduler.algorithm->plan(spec) : study::SchedulerPlan{};
        const std::uint64_t before = plan.iterations;
        schedulers::rehearse(plan, spec, 4, true);
        CHECK(plan.iterations == before);
        CHECK(plan.most == 0);
    }
}

} // namespace rehearsal_test
