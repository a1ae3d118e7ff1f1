// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "report/explain/plan.hpp"
#include "report/screens/screens.hpp"
#include "study_by_hand.hpp"
#include "support/catch.hpp"

namespace plan_test {

using namespace ranktune;
using namespace ranktune::report;
using ranktune::report::testing::spec_of;

namespace {

study::StudySpec study_of(std::uint32_t trials, std::uint32_t iterations, const std::string& scheduler,
                          const std::string& rest = {}) {
    return spec_of(
        "[study]\nname = \"s\"\nmetric = \"score\"\nmode = \"max\"\nseed = 1\nnum_trials = " + std::to_string(trials) +
        "\nmax_iterations = " + std::to_string(iterations) +
        "\n[trainable]\nname = \"any\"\n[space]\nlr = \"uniform(0.0, 1.0)\"\n[scheduler]\n" + scheduler + "\n" + rest);
}

using Certainty = study::SchedulerPlan::Certainty;

study::SchedulerPlan plan_of(const study::StudySpec& spec) { return plan(spec).scheduler; }

using Rungs = std::vector<std::pair<base::Iteration, std::uint64_t>>;

Rungs rungs_of(const study::SchedulerPlan& plan) {
    Rungs rungs;
    for (const auto& rung : plan.rungs) rungs.emplace_back(rung.iteration, rung.trials);
    return rungs;
}

} // namespace

TEST_CASE("ASHA that promotes thins out by eta at each rung", "[report]") {
    const auto expected = plan_of(study_of(60, 27, "type = \"asha\""));
    CHECK(rungs_of(expected) == Rungs{{1, 60}, {3, 20}, {9, 6}, {27, 2}});
    // 60 * 1 + 20 * 2 + 6 * 6 + 2 * 18
    CHECK(expected.iterations == 172);
    CHECK(plan(study_of(60, 27, "type = \"asha\"")).full == 1620);
    CHECK(expected.certainty == Certainty::estimate);
    CHECK(expected.warning.empty());
}

TEST_CASE("the checkpoints of paused trials are bounded by what can still be promoted", "[report]") {
    // Rungs 1, 3, 9 get 60, 20, 6 trials; at most 20 of a rung can go on, with two checkpoints each.
    CHECK(plan_of(study_of(60, 27, "type = \"asha\"")).paused_checkpoints == 2 * (20 + 20 + 6));
    CHECK(plan(study_of(60, 27, "type = \"asha\"")).running_checkpoints == 3);
    CHECK(plan_of(study_of(60, 27, "type = \"asha\"\nvariant = \"stop\"")).paused_checkpoints == 0);
    CHECK(plan_of(study_of(60, 27, "type = \"median\"\nhard_stop = false")).paused_checkpoints == 120);
    CHECK(plan_of(study_of(60, 27, "type = \"fifo\"")).paused_checkpoints == 0);
}

TEST_CASE("ASHA that stops lets the best so far pass, however few there are", "[report]") {
    const auto expected = plan_of(study_of(12, 27, "type = \"asha\"\nvariant = \"stop\""));
    CHECK(rungs_of(expected) == Rungs{{1, 12}, {3, 4}, {9, 1}, {27, 1}});
    CHECK(expected.iterations == 12 + 4 * 2 + 1 * 6 + 1 * 18);
    CHECK(expected.warning.empty());
}

TEST_CASE("each bracket thins out the trials that are drawn into it", "[report]") {
    const auto expected = plan_of(study_of(60, 27, "type = \"asha\"\nbrackets = 3\nfinish_top = 0"));
    REQUIRE(expected.rungs.size() == 4);
    // A trial enters at the first rung of its bracket: 1, 3 or 9.
    CHECK(expected.rungs[0].iteration == 1);
    CHECK(expected.rungs[0].trials < 60);
    CHECK(expected.rungs[3].iteration == 27);
    CHECK(expected.rungs[1].trials > expected.rungs[0].trials / 3);
    const auto single = plan_of(study_of(60, 27, "type = \"asha\"\nfinish_top = 0"));
    CHECK(expected.iterations > single.iterations);
    CHECK(expected.iterations < 60 * 27);
}

TEST_CASE("a study does what was planned, also with brackets and finish_top", "[report]") {
    // Earlier trials are better, so no promoted trial is overtaken later.
    const auto by_number = [](std::uint32_t trial, base::Iteration) { return -static_cast<double>(trial); };
    for (const std::uint32_t trials : {8U, 40U, 60U}) {
        for (const std::string scheduler :
             {"brackets = 1\nfinish_top = 1", "brackets = 1\nfinish_top = 7", "brackets = 3\nfinish_top = 5",
              "brackets = 3\nfinish_top = 0", "brackets = 2\nfinish_top = 30", "brackets = 3\nfinish_top = 1"}) {
            INFO(trials << " trials, " << scheduler);
            const study::StudySpec spec = study_of(trials, 27, "type = \"asha\"\n" + scheduler);
            ranktune::report::testing::StudyByHand study(study::resolved_toml(spec));
            study.began(1);
            study.play_out(by_number);
            REQUIRE(study.tuner.state().ended);
            std::uint64_t at_the_top = 0;
            for (const auto& trial : study.tuner.state().trials) at_the_top += trial.iteration == 27 ? 1 : 0;
            const auto planned = plan_of(spec);
            CHECK(planned.rungs.back().trials == at_the_top);
            CHECK(planned.iterations == study.tuner.state().iterations);
        }
    }
}

TEST_CASE("without early stopping every trial trains to the end", "[report]") {
    const auto expected = plan_of(study_of(10, 5, "type = \"fifo\""));
    CHECK(rungs_of(expected) == Rungs{{5, 10}});
    CHECK(expected.iterations == 50);
    CHECK(expected.certainty == Certainty::exact);
}

TEST_CASE("a plan says at most only where no study can train more", "[report]") {
    const std::string stop = "[stop]\nmetric = \"score >= 0.99\"";
    CHECK(plan_of(study_of(10, 5, "type = \"median\"")).certainty == Certainty::at_most);
    CHECK(plan_of(study_of(10, 5, "type = \"median\"")).iterations == 50);
    CHECK(plan_of(study_of(10, 5, "type = \"fifo\"", stop)).certainty == Certainty::at_most);
    CHECK(plan_of(study_of(10, 5, "type = \"fifo\"")).certainty == Certainty::exact);
    // If trials get better and better, each is promoted before better ones overtake it: more than the best third train
    // on.
    for (const std::string variant : {"promote", "stop"}) {
        INFO(variant);
        const auto spec = study_of(30, 9, "type = \"asha\"\nvariant = \"" + variant + "\"", stop);
        ranktune::report::testing::StudyByHand study(study::resolved_toml(spec));
        study.began(1);
        study.play_out([](std::uint32_t trial, base::Iteration) { return 0.01 * trial; });
        REQUIRE(study.tuner.state().ended);
        CHECK(study.tuner.state().iterations > plan_of(spec).iterations);
        CHECK(plan_of(spec).certainty == Certainty::estimate);
        CHECK(start_screen(spec, {}, {}).find("          about ") != std::string::npos);
    }
}

TEST_CASE("a study in which no trial can reach the top is warned of", "[report]") {
    const auto short_of = plan_of(study_of(8, 27, "type = \"asha\"\nfinish_top = 0"));
    CHECK(rungs_of(short_of) == Rungs{{1, 8}, {3, 2}, {9, 0}, {27, 0}});
    CHECK(short_of.warning ==
          "no trial can reach 27 iterations: of 8 trials, one in 3 goes on at each of 3 rungs; raise "
          "study.num_trials or scheduler.first_rung, or set scheduler.finish_top = 1");
    // Where trials of several brackets begin higher up, there are fewer rungs above them.
    const std::string brackets = "type = \"asha\"\nfinish_top = 0\nbrackets = 2";
    std::set<std::string> told;
    for (const std::uint32_t trials : {1U, 2U, 4U}) {
        for (std::uint64_t seed = 0; seed < 8; ++seed) {
            auto spec = study_of(trials, 9, brackets);
            spec.seed = seed;
            const auto expected = plan_of(spec);
            const bool lowest = expected.rungs[0].trials > 0;
            const bool both = lowest && expected.rungs[0].trials < trials;
            if (expected.warning.empty()) continue;
            const std::string said = both     ? "at each of 1 to 2 rungs, by bracket"
                                     : lowest ? "at each of 2 rungs"
                                              : "at 1 rung";
            CHECK(expected.warning.find(std::to_string(trials) + (trials == 1 ? " trial" : " trials") +
                                        ", one in 3 goes on " + said + "; ") != std::string::npos);
            told.insert(said);
        }
    }
    CHECK(told.size() == 3);
    // finish_top = 1, the default, takes the best one there.
    const auto finished = plan_of(study_of(8, 27, "type = \"asha\""));
    CHECK(rungs_of(finished) == Rungs{{1, 8}, {3, 2}, {9, 1}, {27, 1}});
    CHECK(finished.warning.empty());
}

TEST_CASE("the scheduler in words", "[report]") {
    CHECK(plan_of(study_of(8, 27, "type = \"asha\"")).words == "ASHA promote");
    CHECK(plan_of(study_of(8, 27, "type = \"asha\"\nvariant = \"stop\"")).words == "ASHA stop");
    CHECK(plan_of(study_of(8, 27, "type = \"median\"")).words == "median stopping");
    CHECK(plan_of(study_of(8, 27, "type = \"fifo\"")).words == "every trial to the end");
}

} // namespace plan_test
