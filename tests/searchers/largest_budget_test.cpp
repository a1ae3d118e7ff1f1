// SPDX-License-Identifier: Apache-2.0
#include "searchers/results/largest_budget.hpp"

#include "ranktune/base/rng.hpp"
#include "searchers/table.hpp"
#include "support/catch.hpp"

namespace largest_budget_test {

using namespace ranktune;
using base::TrialId;
using searchers::LargestBudget;
using searchers::Observations;
using searchers::testing::cube;
using searchers::testing::infinite;
using searchers::testing::Table;

namespace {

LargestBudget budget_of(std::size_t enough) {
    return LargestBudget(
        [enough](std::size_t points, std::size_t finite) { return points >= enough && finite * 2 >= points; },
        LargestBudget::Violators::ordered);
}

std::vector<std::uint32_t> trials_of(const LargestBudget& budget) {
    std::vector<std::uint32_t> trials;
    for (const auto& point : budget.points()) {
        trials.push_back(point.trial.value());
        CHECK(budget.point_of(point.trial) == point);
    }
    CHECK(!budget.point_of(TrialId(1000)));
    return trials;
}
using Trials = std::vector<std::uint32_t>;

} // namespace

TEST_CASE("largest budget: the example of its comment", "[searchers][bohb]") {
    const auto space = cube(1);
    Table table(space);
    LargestBudget budget = budget_of(2);
    table.add({0.1}, 0.5);
    table.seen.reported(TrialId(0), 2, 0.7);
    budget.read(table.seen);
    CHECK(budget.iteration() == 0);
    CHECK(budget.points().empty());
    table.add({0.2}, 0.6);
    table.add_failed({0.3});
    budget.read(table.seen);
    CHECK(budget.iteration() == 1);
    CHECK(trials_of(budget) == Trials{1, 0, 2});
    table.seen.reported(TrialId(1), 2, 0.4);
    budget.read(table.seen);
    CHECK(budget.iteration() == 2);
    CHECK(trials_of(budget) == Trials{0, 1, 2});
    CHECK(budget.points()[2] == LargestBudget::Point{-infinite, TrialId(2), 2});
}

TEST_CASE("largest budget: results below the one in use are not needed any more", "[searchers][bohb]") {
    const auto space = cube(1);
    Table table(space);
    LargestBudget budget = budget_of(3);
    for (int i = 0; i < 3; ++i) table.add({0.1}, i, 9);
    for (int i = 0; i < 50; ++i) table.add({0.1}, 100 + i, 3);
    budget.read(table.seen);
    CHECK(budget.iteration() == 9);
    CHECK(trials_of(budget) == Trials{2, 1, 0});
}

TEST_CASE("largest budget: a failure counts where it happened, and as worst at larger budgets", "[searchers][bohb]") {
    const auto space = cube(1);
    Table table(space);
    LargestBudget budget = budget_of(4);
    table.add({0.1}, 1.0);
    table.add({0.1}, 2.0);
    table.add_failed({0.1});
    budget.read(table.seen);
    CHECK(budget.iteration() == 0);
    table.add_failed({0.1});
    budget.read(table.seen);
    CHECK(budget.iteration() == 1);
    CHECK(trials_of(budget) == Trials{1, 0, 2, 3});
    // Three at iteration 5, and two failures below: not enough.
    for (int i = 0; i < 3; ++i) table.add({0.1}, i, 5);
    budget.read(table.seen);
    CHECK(budget.iteration() == 1);
    table.add_failed({0.1}, 4);
    budget.read(table.seen);
    CHECK(budget.iteration() == 5);
    CHECK(trials_of(budget) == Trials{6, 5, 4, 2, 3, 7});
}

TEST_CASE("largest budget: a trial that fails later keeps its score; one that goes on has not failed",
          "[searchers][bohb]") {
    const auto space = cube(1);
    Table table(space);
    LargestBudget budget = budget_of(2);
    table.add({0.1}, 1.0, 3);
    table.add({0.1}, 2.0, 3);
    table.seen.over(TrialId(1), 7, study::TrialPhase::failed);
    table.add_failed({0.1}, 1);
    budget.read(table.seen);
    CHECK(trials_of(budget) == Trials{1, 0, 2});
    CHECK(budget.points()[0].score == 2.0);
    table.seen.reported(TrialId(2), 2, 9.0); // reopened
    budget.read(table.seen);
    CHECK(trials_of(budget) == Trials{1, 0});
    table.seen.reported(TrialId(2), 3, 9.0);
    budget.read(table.seen);
    CHECK(trials_of(budget) == Trials{2, 1, 0});
}

TEST_CASE("largest budget: values that are not finite are worst, the newest report counts, ties go to the lower trial",
          "[searchers][bohb]") {
    const auto space = cube(1);
    Table table(space);
    LargestBudget budget = budget_of(3);
    table.add({0.1}, study::score(-infinite, study::Mode::min));
    table.add({0.1}, 1.0);
    table.add({0.1}, study::score(std::numeric_limits<double>::quiet_NaN(), study::Mode::max));
    budget.read(table.seen);
    CHECK(budget.iteration() == 0); // one of three is finite
    table.add({0.1}, 1.0);
    budget.read(table.seen);
    CHECK(trials_of(budget) == Trials{1, 3, 0, 2});
    table.seen.reported(TrialId(2), 1, 5.0); // trained again after a loss
    budget.read(table.seen);
    CHECK(trials_of(budget) == Trials{2, 1, 3, 0});
}

TEST_CASE("largest budget: lines that come one by one, at once, or after another table make no difference",
          "[searchers][bohb]") {
    const auto space = cube(2);
    Table table(space);
    base::RngStream random(5, base::user_purpose(1));
    LargestBudget follower = budget_of(5);
    LargestBudget jumper = budget_of(5);
    for (int i = 0; i < 400; ++i) {
        const auto trial = static_cast<std::uint32_t>(random.below(table.trials + 1));
        if (trial == table.trials) table.ask(space.sample(1, TrialId(trial)));
        if (random.below(10) == 0)
            table.seen.over(TrialId(trial), random.below(20), study::TrialPhase::failed);
        else
            table.seen.reported(TrialId(trial), 1 + random.below(20), random.uniform());
        follower.read(table.seen);
        LargestBudget fresh = budget_of(5);
        fresh.read(table.seen);
        REQUIRE(fresh.iteration() == follower.iteration());
        REQUIRE(fresh.points() == follower.points());
        // A view of the past, and then the table again.
        const std::size_t lines = random.below(table.seen.size() + 1);
        jumper.read(table.seen.first(lines));
        LargestBudget past = budget_of(5);
        past.read(table.seen.first(lines));
        REQUIRE(jumper.points() == past.points());
    }
    CHECK(follower.iteration() > 10);

    Table other(space);
    for (int i = 0; i < 1000; ++i) other.add({0.5, 0.5}, i);
    follower.read(other.seen);
    CHECK(follower.iteration() == 1);
    CHECK(follower.points().size() == 1000);
}

} // namespace largest_budget_test
