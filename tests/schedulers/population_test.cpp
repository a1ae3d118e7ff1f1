// SPDX-License-Identifier: Apache-2.0
// Population-based training: the cases of Ray Tune's own tests (test_trial_scheduler_pbt.py and
// test_trial_scheduler.py, named in brackets), and ours. Where we differ on purpose, the test says why.
#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ranktune/base/error.hpp"
#include "schedulers/members.hpp"
#include "support/catch.hpp"

namespace population_test {

using namespace ranktune;
using namespace ranktune::schedulers;

namespace {

/// Ray's set-up: 5 trials, interval 10, all at t = 10 with scores 0, 50, 100, 150, 200 and a checkpoint each. Nobody
/// exploits anybody there: the worst come first, when there is nothing better yet.
struct Five : Members {
    explicit Five(Settings settings = {}) : Members(population_of(5, 1000, with_interval(std::move(settings)))) {
        for (std::uint32_t i = 0; i < 5; ++i) {
            CHECK(report(i, 10, 50.0 * i).verb == Verb::go_on);
            save(i, 10);
        }
    }
    static Settings with_interval(Settings settings) {
        settings.push_back({"interval", 10});
        settings.push_back({"compare", "latest"});
        return settings;
    }
};

} // namespace

TEST_CASE("P1: the most promising members publish their state [CheckpointsMostPromising]", "[schedulers][pbt]") {
    Five five;
    CHECK(five.report(0, 15, 200).reason == Reason::below_rung); // no ready point: nothing is compared
    CHECK(five.report(0, 20, 200).reason == Reason::published);
    CHECK(five.report(1, 30, 201).reason == Reason::published);
    CHECK(five.report(4, 30, 199).reason == Reason::kept); // third of five, and the groups are of two
    CHECK(five.exploits.empty());
}

TEST_CASE("P2: a member of the lower group takes over from the upper group [PerturbsLowPerforming]",
          "[schedulers][pbt]") {
    Five five;
    CHECK(five.report(0, 15, -100).verb == Verb::go_on);
    CHECK(five.report(0, 20, -100).verb == Verb::exploit);
    REQUIRE(five.exploits.size() == 1);
    CHECK((five.exploits[0].second == 3 || five.exploits[0].second == 4));
    CHECK(five.report(2, 20, 40).verb == Verb::exploit);
    CHECK(five.exploits.size() == 2);
}

TEST_CASE("P3: without resampling values are multiplied by 0.8 or 1.2, and keep their kind [PerturbWithoutResample]",
          "[schedulers][pbt]") {
    std::set<double> floats;
    std::set<std::int64_t> integers;
    for (int seed = 0; seed < 40; ++seed) {
        study::StudySpec spec = population_of(5, 1000, Five::with_interval({{"resample_probability", 0.0}}));
        spec.seed = static_cast<std::uint64_t>(seed);
        Members members(spec);
        for (std::uint32_t i = 0; i < 5; ++i) {
            members.report(i, 10, 50.0 * i);
            members.save(i, 10);
        }
        CHECK(members.report(0, 20, -100).verb == Verb::exploit);
        floats.insert(members.taken.at("float").as_double());
        integers.insert(members.taken.at("int").as_int());
        CHECK(members.taken.at("constant").as_int() == 3);
        // It is not explored: the donor's, whose weights were made with it.
        CHECK(members.taken.at("id").as_int() == static_cast<std::int64_t>(members.exploits[0].second));
    }
    CHECK(floats == std::set<double>{1.6, 2.4});
    CHECK(integers == std::set<std::int64_t>{8, 12});
}

TEST_CASE("P4: with resampling alone values are drawn from their domains [PerturbWithResample]", "[schedulers][pbt]") {
    Five five({{"resample_probability", 1.0}});
    CHECK(five.report(0, 20, -100).verb == Verb::exploit);
    const double drawn = five.taken.at("float").as_double();
    CHECK((drawn >= 0.5 && drawn < 10.0 && drawn != 1.6 && drawn != 2.4));
}

TEST_CASE("P6: a member gives its ranks to one that has not trained [YieldsTime]", "[schedulers][pbt]") {
    // Two are made; the third one waits for ranks.
    study::StudySpec spec = population_of(3, 1000, {{"interval", 10}});
    testing::SchedulerDriver driver(spec);
    for (std::uint32_t i = 0; i < 2; ++i) {
        driver.apply(study::TrialCreated{TrialId(i), {}, 1, 0, 0, {}, Members::configuration(i)});
        driver.apply(study::TrialStarted{TrialId(i), base::AttemptId(1), {}, {base::Rank(i + 1)}, {}});
    }
    const Verdict verdict = driver.ask(TrialId(1), 10, 1000);
    CHECK(verdict == Verdict{Verb::pause, Reason::turn, 0.0, 0.0});
    driver.tell(TrialId(1), 10, 1000, verdict);
    driver.apply(study::AttemptEnded{TrialId(1), base::AttemptId(1), {}, study::AttemptOutcome::paused, false, {}});
    CHECK(std::holds_alternative<Create>(driver.work({.can_create = true, .active = true, .trial = TrialId(2)})));
}

TEST_CASE("P7: who has trained least goes on first [MostBehind]", "[schedulers][pbt]") {
    Members members(population_of(5, 1000, {{"interval", 100}}));
    const Iteration iterations[] = {800, 700, 600, 500, 700};
    for (std::uint32_t i = 0; i < 5; ++i) {
        members.tell(TrialId(i), iterations[i], 1.0, {Verb::pause, Reason::turn, 0.0, 0.0});
    }
    CHECK(members.work({.can_create = false, .active = false}) ==
          Work(Promotion{TrialId(3), 500, 600, Reason::promoted}));
}

// (Ray's third exploit comes only at 11,000: there a member takes over the donor's time with its state, and is not
// judged before 10,100. Here it keeps counting its own iterations, by which its schedule and the ceiling go.)
TEST_CASE("P8: a member is judged once in each interval, from its last ready point [PerturbationResetsLastPerturbTime]",
          "[schedulers][pbt]") {
    Members members(population_of(4, 100'000, {{"interval", 100}, {"compare", "latest"}}));
    CHECK(members.report(0, 10'000, 1005).verb == Verb::go_on);
    CHECK(members.report(1, 10'000, 1004).reason == Reason::unpublished);
    CHECK(members.report(2, 600, 1003).reason == Reason::unpublished);
    members.save(0, 10'000);
    CHECK(members.report(3, 500, 1002).verb == Verb::exploit);
    CHECK(members.report(3, 500, 1.0).verb == Verb::go_on); // repeated after a loss: not judged again
    CHECK(members.report(3, 600, 100).verb == Verb::exploit);
    CHECK(members.report(3, 11'000, 100).verb == Verb::exploit);
    CHECK(members.exploits.size() == 3);
}

TEST_CASE("P11: nobody exploits anybody before the burn-in is over [BurnInPeriod]", "[schedulers][pbt]") {
    Members members(population_of(4, 100, {{"interval", 5}, {"burn_in", 50}, {"compare", "latest"}}, study::Mode::min));
    const double errors[] = {50, 50, 10, 100};
    for (const Iteration iteration : {Iteration{5}, Iteration{30}})
        for (std::uint32_t i = 0; i < 4; ++i)
            CHECK(members.report(i, iteration, errors[i]).reason == Reason::below_rung);
    CHECK(members.scheduler().next_decision_point(TrialId(0), 30) == 50);
    for (std::uint32_t i = 0; i < 4; ++i) {
        if (i == 3) members.save(2, 50);
        members.report(i, 50, errors[i]);
    }
    CHECK(members.exploits == std::vector<std::pair<std::uint32_t, std::uint32_t>>{{3, 2}});
}

// Every report of this history is a ready point. A member keeps counting its own iterations where in Ray it takes over
// the donor's time, too: #0 is at 37, not 42, when others take over from it. Of equal results the one of the smaller
// number counts as better, as everywhere in a study, and in Ray as worse: so Ray's #k is #(3 - k) here.
TEST_CASE("P15: who takes over whom in a long history [Replay]", "[schedulers][pbt]") {
    struct Step {
        std::uint32_t trial;
        Iteration iterations;
        double score;
    };
    const std::vector<Step> history = {{0, 10, 0}, {1, 11, 10}, {2, 12, 0},  {3, 13, 0}, {0, 10, -10}, {2, 8, -20},
                                       {3, 9, 0},  {1, 7, 0},   {1, 12, 0},  {2, 13, 0}, {3, 14, 10},  {0, 11, 0},
                                       {0, 6, 20}, {3, 9, -40}, {2, 8, -50}, {1, 7, 30}, {2, 8, -60},  {0, 10, 0},
                                       {1, 10, 0}, {2, 10, 0},  {3, 10, 0}};
    Members members(population_of(4, 1000, {{"interval", 1}, {"compare", "latest"}}));
    std::map<std::uint32_t, Iteration> at;
    std::string taken;
    for (const Step& step : history) {
        const std::uint32_t trial = 3 - step.trial;
        const Verdict verdict = members.report(trial, at[trial] += step.iterations, step.score);
        if (verdict.verb != Verb::exploit) members.save(trial, at[trial]);
        if (verdict.verb == Verb::exploit)
            taken += std::to_string(step.trial) + " from " + std::to_string(3 - members.exploits.back().second) + "@" +
                     std::to_string(members.taken_at) + "; ";
    }
    CHECK(taken == "0 from 1@11; 2 from 1@11; 0 from 3@36; 3 from 0@37; 2 from 0@37; 2 from 1@37; ");
}

TEST_CASE("A member without a better one that has saved its state goes on, and its record says why",
          "[schedulers][pbt]") {
    Members members(population_of(4, 1000, {{"interval", 10}}));
    for (std::uint32_t i = 1; i < 4; ++i) CHECK(members.report(i, 10, 50.0 * i).verb == Verb::go_on);
    CHECK(members.report(0, 10, 0.0) == Verdict{Verb::go_on, Reason::unpublished, 4, 4});
    members.save(3, 10);
    for (std::uint32_t i = 1; i < 4; ++i) members.report(i, 20, 50.0 * i);
    CHECK(members.report(0, 20, 0.0).verb == Verb::exploit);
    // What the donor saved before its own exploit is another state than the one that does well.
    members.apply(study::CheckpointReleased{TrialId(3), Members::path(3, 10)});
    for (std::uint32_t i = 1; i < 4; ++i) members.report(i, 30, 50.0 * i);
    CHECK(members.report(0, 30, 0.0).reason == Reason::unpublished);
}

TEST_CASE("A checkpoint of the generation before is nobody's to take", "[schedulers][pbt]") {
    Members members(population_of(4, 1000, {{"interval", 10}}));
    for (std::uint32_t i = 1; i < 4; ++i) members.report(i, 10, 50.0 * i);
    members.save(0, 5);
    members.save(3, 10);
    CHECK(members.report(0, 10, 0.0).verb == Verb::exploit); // #0 from #3
    // It gets to the top, and has nothing but what it saved before.
    members.apply(study::CheckpointReleased{TrialId(3), Members::path(3, 10)});
    for (std::uint32_t i = 2; i < 4; ++i) members.report(i, 20, 50.0 * i);
    members.report(0, 20, 1000.0);
    CHECK(members.report(1, 20, 0.0).reason == Reason::unpublished);
    members.save(0, 25);
    members.report(0, 30, 1000.0);
    for (std::uint32_t i = 2; i < 4; ++i) members.report(i, 30, 50.0 * i);
    CHECK(members.report(1, 30, 0.0).verb == Verb::exploit);
    CHECK(members.exploits.back() == std::pair<std::uint32_t, std::uint32_t>{1, 0});
}

TEST_CASE("An exploit that is undone gives the configuration of before back", "[schedulers][pbt]") {
    Members members(population_of(4, 1000, {{"interval", 10}, {"resample_probability", 0.0}}));
    for (std::uint32_t i = 1; i < 4; ++i) {
        members.report(i, 10, 50.0 * i);
        members.save(i, 10);
    }
    CHECK(members.report(0, 10, 0.0).verb == Verb::exploit);
    members.apply(study::ExploitUndone{TrialId(0), {}, 0});
    members.generations[0] = 0;
    // It becomes the donor of another one, with its own values.
    members.report(0, 20, 1000.0);
    members.save(0, 20);
    for (std::uint32_t i = 2; i < 4; ++i) members.report(i, 20, 50.0 * i);
    CHECK(members.report(1, 20, 0.0).verb == Verb::exploit);
    CHECK(members.taken.at("id").as_int() == 0);
    CHECK_THROWS_AS(members.apply(study::ExploitUndone{TrialId(3), {}, 0}), base::FormatError);
}

TEST_CASE("A member that has lost all its states takes over one of the upper group, else of the best that has one",
          "[schedulers][pbt]") {
    Members members(population_of(8, 1000, {{"interval", 10}, {"resample_probability", 0.0}}));
    for (std::uint32_t i = 0; i < 8; ++i) {
        CHECK_FALSE(members.scheduler().replacement(TrialId(i))); // it has nothing to lose
        members.report(i, 10, 50.0 * i);
    }
    CHECK_FALSE(members.scheduler().replacement(TrialId(5))); // nobody has saved
    for (const std::uint32_t i : {1U, 2U, 3U}) members.save(i, 10);
    REQUIRE(members.scheduler().replacement(TrialId(5)));
    CHECK(members.scheduler().replacement(TrialId(5))->donor == TrialId(3));
    CHECK(members.scheduler().replacement(TrialId(3))->donor == TrialId(2));
    for (const std::uint32_t i : {6U, 7U}) members.save(i, 10);
    for (std::uint32_t i = 0; i < 6; ++i)
        CHECK(members.scheduler().replacement(TrialId(i))->donor >= TrialId(6)); // a good one may be replaced, too
}

TEST_CASE("Another donor is found for a member whose donor cannot be read, as long as there is one",
          "[schedulers][pbt]") {
    for (const char* selection : {"truncation", "tournament"}) {
        for (const char* compare : {"equal_iteration", "latest"}) {
            CAPTURE(selection, compare);
            Members members(population_of(8, 1000, {{"interval", 10}, {"selection", selection}, {"compare", compare}}));
            CHECK_FALSE(members.scheduler().exploit_instead(TrialId(0))); // nothing was to be taken over
            for (std::uint32_t i = 1; i < 8; ++i) {
                members.report(i, 10, 50.0 * i);
                members.save(i, 10);
            }
            members.exploits.clear();
            REQUIRE(members.report(0, 10, 0.0).verb == Verb::exploit);
            std::set<std::uint32_t> donors{members.exploits[0].second};
            while (true) {
                members.apply(study::ExploitUndone{TrialId(0), {}, 0});
                const auto other = members.scheduler().exploit_instead(TrialId(0));
                if (!other) break;
                CHECK(other->iteration == 10);
                CHECK(other->configuration.at("id").as_int() == static_cast<std::int64_t>(other->donor.value()));
                REQUIRE(donors.insert(other->donor.value()).second);
                members.apply(study::Exploited{
                    TrialId(0), {}, 10, {other->donor, {.iteration = 10, .path = "donor"}}, 1, other->configuration});
            }
            // Truncation: the upper group alone, of two. In a tournament anybody may be met.
            if (selection == std::string("truncation"))
                CHECK(donors == std::set<std::uint32_t>{6, 7});
            else
                CHECK(donors.size() == 7);
            members.generations[0] = 0;
            CHECK(members.report(0, 15, 0.0).verb == Verb::go_on);
            CHECK_FALSE(members.scheduler().exploit_instead(TrialId(0))); // it has trained on
        }
    }
}

TEST_CASE("Equal scores move nobody, and what is not finite is no donor", "[schedulers][pbt]") {
    for (const char* compare : {"equal_iteration", "latest"}) {
        for (const double value :
             {1.0, std::nan(""), std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
            Members members(population_of(8, 100, {{"interval", 10}, {"compare", compare}}));
            for (Iteration iteration = 10; iteration < 100; iteration += 10)
                for (std::uint32_t i = 0; i < 8; ++i) {
                    CHECK(members.report(i, iteration, value).verb == Verb::go_on);
                    members.save(i, iteration);
                }
        }
    }
    // One finite value is enough of a donor for all others.
    Members members(population_of(4, 100, {{"interval", 10}}));
    members.report(0, 10, -5.0);
    members.save(0, 10);
    members.report(1, 10, std::nan(""));
    members.report(2, 10, std::nan(""));
    CHECK(members.report(3, 10, std::nan("")).verb == Verb::exploit);
}

TEST_CASE("Groups have the sizes of Ray's", "[schedulers][pbt]") {
    // Of 2 members 1 exploits, of 3 one, of 5 two; of a population of one nobody.
    const auto exploits = [](std::uint32_t members, double quantile) {
        Members population(population_of(members, 100, {{"interval", 10}, {"quantile", quantile}}));
        for (std::uint32_t i = members; i-- > 0;) { // the best first
            population.report(i, 10, i);
            population.save(i, 10);
        }
        // With everybody there: how many of the lower group there are at the next point.
        Members again(population_of(members, 100, {{"interval", 10}, {"quantile", quantile}, {"compare", "latest"}}));
        for (std::uint32_t i = 0; i < members; ++i) {
            again.tell(TrialId(i), 10, i, {Verb::go_on, Reason::kept, 0.0, 0.0});
            again.save(i, 10);
        }
        std::size_t low = 0;
        for (std::uint32_t i = 0; i < members; ++i)
            if (again.ask(TrialId(i), 20, i).verb == Verb::exploit) ++low;
        return low;
    };
    CHECK(exploits(1, 0.25) == 0);
    CHECK(exploits(2, 0.25) == 1);
    CHECK(exploits(3, 0.25) == 1);
    CHECK(exploits(5, 0.25) == 2);
    CHECK(exploits(8, 0.25) == 2);
    CHECK(exploits(10, 0.2) == 2);
    CHECK(exploits(5, 0.5) == 2); // ceil(2.5) = 3 is more than half of them
}

TEST_CASE("The first to arrive at a ready point are not the worst of their population for being compared with few",
          "[schedulers][pbt]") {
    // While others are to come the groups of n have floor(n / 4) members: of three nobody exploits.
    Members members(population_of(8, 100, {{"interval", 10}}));
    for (std::uint32_t i = 0; i < 3; ++i) {
        CHECK(members.report(i, 10, -1.0 * i).verb == Verb::go_on);
        members.save(i, 10);
    }
    CHECK(members.report(3, 10, -3.0).verb == Verb::exploit);
    for (std::uint32_t i = 4; i < 7; ++i) CHECK(members.report(i, 10, -0.5).verb == Verb::go_on);
    // The last one to come meets groups of ceil(8 / 4).
    CHECK(members.report(7, 10, -2.5).verb == Verb::exploit);
}

TEST_CASE("Scores are compared at equal iterations: a slow member is not judged against what others became later",
          "[schedulers][pbt]") {
    for (const bool latest : {false, true}) {
        Members members(population_of(4, 100, {{"interval", 10}, {"compare", latest ? "latest" : "equal_iteration"}}));
        for (std::uint32_t i = 1; i < 4; ++i)
            for (Iteration iteration = 10; iteration <= 50; iteration += 10) {
                members.report(i, iteration, static_cast<double>(iteration) + i);
                members.save(i, iteration);
            }
        // Better than all others were at 10, and worse than they are now.
        CHECK(members.report(0, 10, 20.0).verb == (latest ? Verb::exploit : Verb::go_on));
    }
}

TEST_CASE("In a tournament each member meets a random other one", "[schedulers][pbt]") {
    std::set<std::uint32_t> donors;
    int won = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        study::StudySpec spec = population_of(5, 100, {{"interval", 10}, {"selection", "tournament"}});
        spec.seed = seed;
        Members members(spec);
        for (std::uint32_t i = 0; i < 4; ++i) {
            members.report(i, 10, i);
            members.save(i, 10);
        }
        members.exploits.clear();
        if (members.report(4, 10, 1.5).verb == Verb::exploit)
            donors.insert(members.exploits[0].second);
        else
            ++won;
    }
    CHECK(donors == std::set<std::uint32_t>{2, 3}); // those that are better
    CHECK(won > 15);
    CHECK(won < 45);
}

TEST_CASE("The t-test wants a difference that is no noise", "[schedulers][pbt]") {
    for (const double distance : {0.01, 10.0}) {
        Members members(population_of(2, 100, {{"interval", 10}, {"selection", "t_test"}, {"compare", "latest"}}));
        for (Iteration iteration = 1; iteration <= 10; ++iteration)
            members.report(0, iteration, distance + (iteration % 2 == 0 ? 0.1 : -0.1));
        members.save(0, 10);
        for (Iteration iteration = 1; iteration < 10; ++iteration)
            members.report(1, iteration, iteration % 2 == 0 ? 0.1 : -0.1);
        CHECK(members.report(1, 10, 0.1).verb == (distance > 1.0 ? Verb::exploit : Verb::go_on));
    }
}

TEST_CASE("The t-test compares as many scores as the study says", "[schedulers][pbt]") {
    for (const int window : {3, 10}) {
        Members members(population_of(
            2, 100, {{"interval", 10}, {"selection", "t_test"}, {"compare", "latest"}, {"window", window}}));
        const auto noise = [](Iteration iteration) { return iteration % 2 == 0 ? 0.1 : -0.1; };
        for (Iteration iteration = 1; iteration <= 10; ++iteration) // it has become better of late
            members.report(0, iteration, (iteration > 7 ? 10.0 : 0.0) + noise(iteration));
        members.save(0, 10);
        for (Iteration iteration = 1; iteration < 10; ++iteration) members.report(1, iteration, noise(iteration));
        // Of ten scores t = 1.9 at 9 degrees of freedom, which is p = 0.08.
        CHECK(members.report(1, 10, 0.1).verb == (window == 3 ? Verb::exploit : Verb::go_on));
    }
}

TEST_CASE("The t-test takes over nobody who is worse, whatever the score at the ready point was", "[schedulers][pbt]") {
    Members members(population_of(2, 100, {{"interval", 10}, {"selection", "t_test"}}));
    for (Iteration iteration = 1; iteration <= 20; ++iteration) // good at 10, and then it collapses
        members.report(0, iteration, (iteration > 10 ? -10.0 : 10.0) + 0.01 * static_cast<double>(iteration));
    members.save(0, 20);
    for (Iteration iteration = 1; iteration < 10; ++iteration)
        members.report(1, iteration, 0.01 * static_cast<double>(iteration));
    CHECK(members.report(1, 10, 0.1).verb == Verb::go_on);
}

TEST_CASE("Members that are over count once among those that have been at a ready point", "[schedulers][pbt]") {
    const auto close = [](std::uint32_t trial, study::TrialPhase phase) {
        return study::TrialClosed{TrialId(trial), {}, phase, Reason::trainable_done, 0.0, 0.0, {}};
    };
    for (const bool come : {true, false}) {
        Members members(population_of(4, 100, {{"interval", 10}}));
        for (std::uint32_t i = 2; i < 4; ++i) {
            if (come) members.report(i, 10, i);
            members.save(i, 10);
            members.apply(close(i, study::TrialPhase::finished));
        }
        // #0 is still to come. Where the others have been at 10, #1 is the third of three; otherwise it is the first.
        CHECK(members.report(1, 10, 1.0).verb == Verb::go_on);
        members.save(1, 10);
        members.replace_by_restored();
        CHECK(members.report(0, 10, 0.0).verb == Verb::exploit); // nobody is still to come
    }
}

namespace {

/// Both parameters of the toy of the paper (section 4.1, figure 2) begin at 0.9, and a member climbs
/// 1.2 - h0 x0^2 - h1 x1^2; the objective is the same without h. Returns the best objective that anybody reached.
double toy(std::uint64_t seed, bool takes_over, const char* compare = "equal_iteration") {
    using Point = std::pair<double, double>;
    study::StudySpec spec =
        population_of(2, 800, {{"interval", 4}, {"resample_probability", 0.5}, {"compare", compare}});
    spec.space = space::SearchSpace(
        {{"h0", space::FloatRange{0.0, 1.0, false, 0.0}, {}}, {"h1", space::FloatRange{0.0, 1.0, false, 0.0}, {}}});
    spec.scheduler.explore = {{"h0", {0.8, 1.2}}, {"h1", {0.8, 1.2}}};
    spec.seed = seed;
    std::vector<space::Configuration> h = {space::Configuration({{"h0", 1.0}, {"h1", 0.0}}),
                                           space::Configuration({{"h0", 0.0}, {"h1", 1.0}})};
    Members members(spec, h);
    std::vector<Point> at(2, Point{0.9, 0.9});
    std::map<std::string, Point> saved;
    double best = 0.0;
    for (Iteration iteration = 1; iteration < 800; ++iteration)
        for (std::uint32_t i = 0; i < 2; ++i) {
            constexpr double step = 0.02;
            at[i].first -= step * 2.0 * h[i].at("h0").as_double() * at[i].first;
            at[i].second -= step * 2.0 * h[i].at("h1").as_double() * at[i].second;
            const double score = 1.2 - at[i].first * at[i].first - at[i].second * at[i].second;
            best = std::max(best, score);
            if (takes_over && members.report(i, iteration, score).verb == Verb::exploit) {
                at[i] = saved.at(Members::path(members.exploits.back().second, members.taken_at));
                h[i] = members.taken;
            } else if (iteration % 4 == 0) {
                members.save(i, iteration);
                saved[Members::path(i, iteration)] = at[i];
            }
        }
    return best;
}

} // namespace

TEST_CASE("The toy of the paper: two members that see half of the objective each get to its maximum together",
          "[schedulers][pbt]") {
    CHECK(toy(1, false) == Approx(1.2 - 0.9 * 0.9).margin(0.001)); // alone each gets its own parameter to 0
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        INFO("seed " << seed);
        CHECK(toy(seed, true) > 1.19);
        CHECK(toy(seed, true, "latest") > 1.19);
    }
}

TEST_CASE("Whoever is first at every ready point is judged at its next one", "[schedulers][pbt]") {
    Members members(population_of(2, 100, {{"interval", 10}}));
    CHECK(members.report(0, 10, 1.0).verb == Verb::go_on); // nobody else has been there
    CHECK(members.report(1, 10, 2.0).verb == Verb::go_on);
    members.save(1, 10);
    CHECK(members.report(0, 20, 5.0).verb == Verb::exploit); // it was the worse one at 10
    CHECK(members.exploits.back() == std::pair(0U, 1U));
    CHECK(members.taken_at == 10);
    members.save(0, 20);
    // Whoever exploits begins anew: at 30 it is not judged for what it was at 20.
    CHECK(members.report(1, 20, 6.0).verb == Verb::go_on);
    CHECK(members.report(0, 30, 1.0).verb == Verb::go_on);
}

TEST_CASE("Who has nobody to take over from at the ready point before saves as everybody does", "[schedulers][pbt]") {
    Members members(population_of(2, 100, {{"interval", 10}}));
    members.report(0, 10, 1.0);
    members.report(1, 10, 2.0); // and has not saved yet
    CHECK(members.report(0, 20, 5.0).reason == Reason::published);
}

TEST_CASE("Of two members that are equal the second explores, if there is something to explore", "[schedulers][pbt]") {
    for (const bool explores : {true, false}) {
        study::StudySpec spec = population_of(2, 100, {{"interval", 10}});
        if (!explores) spec.scheduler.explore.clear();
        Members members(spec);
        Members other_way(spec);
        other_way.report(1, 10, 1.0);
        other_way.save(1, 10);
        CHECK(other_way.report(0, 10, 1.0).verb == Verb::go_on);
        members.report(0, 10, 1.0);
        members.save(0, 10);
        CHECK(members.report(1, 10, 1.0).verb == (explores ? Verb::exploit : Verb::go_on));
        if (!explores) continue;
        CHECK(members.taken.at("float") != members.configuration(0).at("float"));
    }
}

TEST_CASE("Without anything to explore, a member takes over state and configuration as they are", "[schedulers][pbt]") {
    study::StudySpec spec = population_of(4, 100, {{"interval", 10}});
    spec.scheduler.explore.clear();
    Members members(spec);
    for (std::uint32_t i = 1; i < 4; ++i) {
        members.report(i, 10, i);
        members.save(i, 10);
    }
    CHECK(members.report(0, 10, 0.0).verb == Verb::exploit);
    CHECK(members.taken == members.configuration(3));
}

TEST_CASE("A failed member is no score to beat, and a finished one stays a donor", "[schedulers][pbt]") {
    Members members(population_of(4, 100, {{"interval", 10}, {"compare", "latest"}}));
    for (std::uint32_t i = 0; i < 4; ++i) {
        members.tell(TrialId(i), 10, 50.0 * i, {Verb::go_on, Reason::kept, 0.0, 0.0});
        members.save(i, 10);
    }
    members.apply(
        study::TrialClosed{TrialId(3), {}, study::TrialPhase::finished, Reason::trainable_done, 0.0, 0.0, {}});
    CHECK(members.ask(TrialId(0), 20, 0.0).verb == Verb::exploit);
    CHECK(members.scheduler().exploit({TrialId(0), 20, 0.0}).donor == TrialId(3));
    members.apply(study::TrialClosed{TrialId(2), {}, study::TrialPhase::failed, Reason::exception, 0.0, 0.0, {}});
    // Of three that are left the group is of one, and #1 is in the middle.
    CHECK(members.ask(TrialId(1), 20, 50.0).reason == Reason::kept);
}

TEST_CASE("A member that has failed is no donor, unless it is begun again", "[schedulers][pbt]") {
    for (const char* compare : {"equal_iteration", "latest"}) {
        Members members(population_of(4, 100, {{"interval", 10}, {"compare", compare}}));
        for (std::uint32_t i = 3; i > 0; --i) {
            members.report(i, 10, i);
            members.save(i, 10);
        }
        members.apply(study::TrialClosed{TrialId(3), {}, study::TrialPhase::failed, Reason::exception, 0.0, 0.0, {}});
        const Verdict verdict = members.ask(TrialId(0), 10, 0.0);
        if (verdict.verb == Verb::exploit)
            CHECK(members.scheduler().exploit({TrialId(0), 10, 0.0}).donor != TrialId(3));
        else
            CHECK(verdict.reason == Reason::unpublished);
        members.apply(study::TrialReopened{TrialId(3), {}});
        if (std::string_view(compare) == "equal_iteration")
            CHECK(members.scheduler().exploit({TrialId(0), 10, 0.0}).donor == TrialId(3));
    }
}

TEST_CASE("The number of ranks of a member is its own", "[schedulers][pbt]") {
    study::StudySpec spec = population_of(4, 100, {{"interval", 10}});
    spec.resources.ranks_parameter = "id";
    Members members(spec);
    for (std::uint32_t i = 1; i < 4; ++i) {
        members.report(i, 10, i);
        members.save(i, 10);
    }
    CHECK(members.report(0, 10, 0.0).verb == Verb::exploit);
    CHECK(members.taken.at("id").as_int() == 0);
}

} // namespace population_test
