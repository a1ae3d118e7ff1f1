// SPDX-License-Identifier: Apache-2.0
// HyperBand: the published tables, Ray's conformance cases (H1 to H13), and its rules worked by hand.
#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "ranktune/base/rng.hpp"
#include "schedulers/driver.hpp"
#include "schedulers/halving/bracket_table.hpp"
#include "support/catch.hpp"
#include "testing/scheduler_world.hpp"

namespace hyperband_test {

using namespace ranktune;
using namespace ranktune::schedulers;
using base::Iteration;

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
using Settings = std::vector<study::OptionValue>;

study::StudySpec hyperband(Iteration ceiling, std::uint32_t num_trials, Settings settings = {}) {
    study::StudySpec spec = spec_of(chosen("hyperband", settings), ceiling);
    spec.num_trials = num_trials;
    return spec;
}

/// "81@1 27@3 9@9 3@27 1@81" for each bracket.
std::vector<std::string> rows(const std::vector<BracketShape>& brackets, std::uint64_t eta) {
    std::vector<std::string> out;
    for (const BracketShape& bracket : brackets) {
        std::string row;
        std::uint64_t trials = bracket.trials;
        for (const Iteration level : bracket.levels) {
            row += (row.empty() ? "" : " ") + std::to_string(trials) + "@" + std::to_string(level);
            trials /= eta;
        }
        out.push_back(row);
    }
    return out;
}

std::vector<std::uint64_t> trials_of(const std::vector<BracketShape>& brackets) {
    std::vector<std::uint64_t> trials;
    for (const BracketShape& bracket : brackets) trials.push_back(bracket.trials);
    return trials;
}

struct Sums {
    std::uint64_t trials = 0;
    std::uint64_t from_scratch = 0; ///< iterations, when every rung begins again
    std::uint64_t resumed = 0;      ///< when it goes on from checkpoints
    friend bool operator==(const Sums&, const Sums&) = default;
};
Sums sums(const std::vector<BracketShape>& brackets, std::uint64_t eta) {
    Sums sums;
    for (const BracketShape& bracket : brackets) {
        sums.trials += bracket.trials;
        std::uint64_t trials = bracket.trials;
        Iteration before = 0;
        for (const Iteration level : bracket.levels) {
            sums.from_scratch += trials * level;
            sums.resumed += trials * (level - before);
            before = level;
            trials /= eta;
        }
    }
    return sums;
}

std::size_t brackets_for(Iteration ceiling, std::uint64_t eta, Iteration first = 1) {
    return hyperband_brackets(first, eta, ceiling, BracketTable::formula).size();
}

Iteration power(Iteration base, unsigned exponent) { return exponent == 0 ? 1 : base * power(base, exponent - 1); }

/// Trials of one bracket that report, and what follows.
struct Brackets : Driver {
    using Driver::Driver;
    void add_many(std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            const Work work = scheduler().next({.can_create = true, .active = true, .trial = TrialId(trials())});
            REQUIRE(std::holds_alternative<Create>(work));
            begun.push_back(std::get<Create>(work));
            add_in(begun.back().bracket);
        }
    }
    Verb at(std::uint32_t trial, Iteration iteration, double value) {
        return report(TrialId(trial), iteration, value).verb;
    }
    /// Promotes all that may go on now. Their numbers, in order.
    std::vector<std::uint32_t> promote_all(bool can_create = false) {
        std::vector<std::uint32_t> went;
        while (const auto promotion = next({.can_create = can_create, .active = true})) {
            went.push_back(promotion->trial.value());
            promote(*promotion);
        }
        return went;
    }
    std::vector<Create> begun;
};

using Numbers = std::vector<std::uint32_t>;
using Counts = std::vector<std::uint64_t>;

} // namespace

// ---- tables

TEST_CASE("HyperBand's table for R 81, eta 3 is that of the paper's algorithm 1", "[schedulers][hyperband]") {
    const auto brackets = hyperband_brackets(1, 3, 81, BracketTable::formula);
    CHECK(rows(brackets, 3) == std::vector<std::string>{"81@1 27@3 9@9 3@27 1@81", "34@3 11@9 3@27 1@81",
                                                        "15@9 5@27 1@81", "8@27 2@81", "5@81"});
    CHECK(sums(brackets, 3) == Sums{143, 1902, 1581});
}

TEST_CASE("HyperBand's floor table for R 81, eta 3 is that of HpBandSter, DEHB and NePS", "[schedulers][hyperband]") {
    const auto brackets = hyperband_brackets(1, 3, 81, BracketTable::floor);
    CHECK(rows(brackets, 3) == std::vector<std::string>{"81@1 27@3 9@9 3@27 1@81", "27@3 9@9 3@27 1@81",
                                                        "9@9 3@27 1@81", "6@27 2@81", "5@81"});
    CHECK(sums(brackets, 3) == Sums{128, 1701, 1404});
}

TEST_CASE("HyperBand's tables for other ceilings", "[schedulers][hyperband]") {
    const auto of = [](Iteration ceiling, std::uint64_t eta) {
        return hyperband_brackets(1, eta, ceiling, BracketTable::formula);
    };
    CHECK(trials_of(of(27, 3)) == Counts{27, 12, 6, 4});
    CHECK(sums(of(27, 3), 3) == Sums{49, 423, 357});
    CHECK(trials_of(of(16, 2)) == Counts{16, 10, 7, 5, 5});
    CHECK(sums(of(16, 2), 2) == Sums{43, 372, 278});
    CHECK(trials_of(of(256, 4)) == Counts{256, 80, 27, 10, 5});
    CHECK(rows(of(1000, 10), 10) ==
          std::vector<std::string>{"1000@1 100@10 10@100 1@1000", "134@10 13@100 1@1000", "20@100 2@1000", "4@1000"});
}

TEST_CASE("The number of brackets is counted in integers, where a logarithm is off by one", "[schedulers][hyperband]") {
    CHECK(brackets_for(243, 3) == 6); // int(log(243) / log(3)) is 4
    CHECK(brackets_for(242, 3) == 5);
    CHECK(brackets_for(1000, 10) == 4);
    CHECK(brackets_for(999, 10) == 3);
    for (const unsigned exponent : {5U, 10U, 13U, 15U, 17U}) {
        CHECK(brackets_for(power(3, exponent), 3) == exponent + 1);
        CHECK(brackets_for(power(3, exponent) - 1, 3) == exponent);
        CHECK(brackets_for(power(3, exponent) + 1, 3) == exponent + 1);
    }
    for (const unsigned exponent : {3U, 6U, 9U, 15U}) {
        CHECK(brackets_for(power(10, exponent), 10) == exponent + 1);
        CHECK(brackets_for(power(10, exponent) - 1, 10) == exponent);
    }
    // Ray rounds the logarithm: 150 would have six brackets, the first with rungs below 1.
    CHECK(brackets_for(100, 3) == 5);
    CHECK(brackets_for(150, 3) == 5);
    CHECK(brackets_for(1, 3) == 1);
    CHECK(brackets_for(2, 3) == 1);
    CHECK(brackets_for(3, 3) == 2);
    CHECK(brackets_for(1'000'000'000'000'000, 2) == 50);
}

TEST_CASE("Trials and iterations of a rung are quotients of whole numbers", "[schedulers][hyperband]") {
    // In floating point 729 * 3^-6 is 0.999..., and 19683 * 3^-6 is 26.999....
    CHECK(rows(hyperband_brackets(1, 3, 729, BracketTable::formula), 3).front() ==
          "729@1 243@3 81@9 27@27 9@81 3@243 1@729");
    CHECK(rows(hyperband_brackets(1, 3, 19683, BracketTable::formula), 3).front() ==
          "19683@1 6561@3 2187@9 729@27 243@81 81@243 27@729 9@2187 3@6561 1@19683");
    // Rungs that are no powers are rounded down, not summed up: every bracket gets to the ceiling (not so in Ray).
    CHECK(rows(hyperband_brackets(1, 3, 100, BracketTable::formula), 3) ==
          std::vector<std::string>{"81@1 27@3 9@11 3@33 1@100", "34@3 11@11 3@33 1@100", "15@11 5@33 1@100",
                                   "8@33 2@100", "5@100"});
    for (const Iteration ceiling : {1, 2, 7, 20, 81, 100, 150, 243, 1000, 65536, 100000}) {
        for (const std::uint64_t eta : {2, 3, 4, 7, 10}) {
            for (const auto table : {BracketTable::formula, BracketTable::floor}) {
                for (const BracketShape& bracket : hyperband_brackets(1, eta, ceiling, table)) {
                    CHECK(bracket.levels.back() == ceiling);
                    CHECK(std::ranges::adjacent_find(bracket.levels, std::ranges::greater_equal{}) ==
                          bracket.levels.end());
                    CHECK(bracket.levels.front() >= 1);
                    // Dividing again and again is the same as floor(n / eta^i), and one trial at least gets to the end.
                    std::uint64_t trials = bracket.trials;
                    for (std::size_t i = 0; i < bracket.levels.size(); ++i, trials /= eta)
                        CHECK(trials == bracket.trials / power(eta, static_cast<unsigned>(i)));
                    CHECK(bracket.trials / power(eta, static_cast<unsigned>(bracket.levels.size() - 1)) >= 1);
                }
            }
        }
    }
}

TEST_CASE("first_rung is the unit of the resource: brackets are counted in R / r", "[schedulers][hyperband]") {
    CHECK(rows(hyperband_brackets(3, 3, 81, BracketTable::formula), 3) ==
          std::vector<std::string>{"27@3 9@9 3@27 1@81", "12@9 4@27 1@81", "6@27 2@81", "4@81"});
    CHECK(brackets_for(81, 3, 2) == 4); // 81/27 = 3 >= 2, but 81/81 = 1 < 2
    CHECK(brackets_for(81, 3, 81) == 1);
}

// ---- Ray's cases

TEST_CASE("H1: one round of brackets takes 143 trials [ConfigSameEta]", "[schedulers][hyperband]") {
    Brackets d(hyperband(81, 1000));
    d.add_many(144);
    std::map<std::uint32_t, std::uint64_t> trials;
    for (const Create& create : d.begun) ++trials[create.bracket];
    CHECK(trials == std::map<std::uint32_t, std::uint64_t>{{0, 81}, {1, 34}, {2, 15}, {3, 8}, {4, 5}, {5, 1}});
    // Ours begin with the bracket of most trials, as the paper does; Ray's with that of the fewest.
    CHECK(d.begun.front() == Create{0, 1});
    CHECK(d.begun[81] == Create{1, 3});
    CHECK(d.begun[142] == Create{4, 81});
    CHECK(d.begun[143] == Create{5, 1});
}

TEST_CASE("H2: with a ceiling of 1 there is one bracket, of one trial [EtaSmall]", "[schedulers][hyperband]") {
    Brackets d(hyperband(1, 10));
    d.add_many(2);
    CHECK(d.begun[1] == Create{1, 1});
    CHECK(d.at(0, 1, 0.5) == Verb::stop);
}

TEST_CASE("H3: results in rising order: all pause but the last, who goes on: 81, 27, 9, 3, 1 [SuccessiveHalving]",
          "[schedulers][hyperband]") {
    Brackets d(hyperband(81, 81));
    d.add_many(81);
    std::vector<std::uint32_t> all(81);
    for (std::uint32_t i = 0; i < 81; ++i) all[i] = i;
    for (const Iteration level : {1, 3, 9, 27}) {
        for (const std::uint32_t trial : all) {
            INFO("trial " << trial << " at " << level);
            const Verdict verdict = d.report(TrialId(trial), level, trial);
            const bool last = trial == all.back();
            CHECK(verdict.verb == (last ? Verb::go_on : Verb::pause));
            CHECK(verdict.reason == (last ? Reason::in_top : Reason::rung));
            if (last) CHECK(verdict.a == static_cast<double>(all.size() / 3));
            if (last) CHECK(verdict.b == static_cast<double>(all.size()));
        }
        std::vector<std::uint32_t> best(all.rbegin(), all.rbegin() + static_cast<std::ptrdiff_t>(all.size() / 3));
        CHECK(d.promote_all() == std::vector<std::uint32_t>(best.begin() + 1, best.end())); // best first
        std::ranges::sort(best);
        all = best;
    }
    CHECK(all == Numbers{80});
    CHECK(d.at(80, 81, 80) == Verb::stop);
    CHECK(std::holds_alternative<NothingLeft>(d.work({})));
}

TEST_CASE("H4: in falling order the worst comes last, and pauses [HalvingStop]", "[schedulers][hyperband]") {
    // Ray stops it. Ours waits with the others until the rung has promoted all it can: should one that is better fail
    // to save its state, the next best goes on.
    Brackets d(hyperband(81, 143));
    d.add_many(138);
    for (std::uint32_t i = 0; i < 8; ++i) CHECK(d.at(130 + i, 27, 100.0 - i) == Verb::pause);
    CHECK(d.promote_all() == Numbers{130, 131}); // floor(8 / 3); Ray keeps ceil(8 / 3) = 3
    CHECK(d.scheduler().out_of_reach(TrialId(132)));
    CHECK(d.scheduler().fell_out().size() == 6);
}

TEST_CASE("H5: the bracket without halving stops its trials at the ceiling [StopsLastOne]", "[schedulers][hyperband]") {
    Brackets d(hyperband(81, 143));
    d.add_many(143);
    for (std::uint32_t i = 138; i < 143; ++i) {
        CHECK(d.report(TrialId(i), 27, i).reason == Reason::below_rung);
        const Verdict verdict = d.report(TrialId(i), 81, i);
        CHECK(verdict.verb == Verb::stop);
        CHECK(verdict.reason == Reason::max_iterations);
    }
}

TEST_CASE("H6: a bracket that is cut off halves with what it has, failed ones included [TrialErrored, EndedEarly]",
          "[schedulers][hyperband]") {
    for (const bool fails : {true, false}) {
        Brackets d(hyperband(81, 133)); // 3 of 8 in the bracket s = 1
        d.add_many(133);
        if (fails) {
            d.fail(TrialId(132));
        } else {
            d.complete(TrialId(132), 5, 100.0);
        }
        CHECK(d.at(130, 27, 10) == Verb::pause);
        CHECK(d.at(131, 27, 11) == Verb::go_on); // the best of 3
        CHECK(d.promote_all().empty());
    }
    // While more trials may come, the bracket waits for all 8. (Ray does not know how many will come, and halves.)
    Brackets d(hyperband(81, 143));
    d.add_many(133);
    d.fail(TrialId(132));
    CHECK(d.at(130, 27, 10) == Verb::pause);
    CHECK(d.at(131, 27, 11) == Verb::pause);
    CHECK(std::get<Create>(d.work({.can_create = true, .active = false})) == Create{3, 27});
}

TEST_CASE("H7: a trial that failed counts in the size of the rung [TrialErrored2, EndedEarly2]",
          "[schedulers][hyperband]") {
    for (const bool fails : {true, false}) {
        Brackets d(hyperband(81, 143));
        d.add_many(138);
        for (std::uint32_t i = 0; i < 7; ++i) CHECK(d.at(130 + i, 27, i) == Verb::pause);
        CHECK(d.promote_all().empty());
        if (fails) {
            d.fail(TrialId(137));
        } else {
            d.complete(TrialId(137), 30, 1000.0); // the best, but it has ended
        }
        CHECK(d.promote_all() == Numbers{136, 135}); // floor(8 / 3), of the 7 that are left; Ray keeps ceil(8 / 3)
    }
}

TEST_CASE("H8: a new trial joins the bracket until that has promoted one [AddAfterHalving]",
          "[schedulers][hyperband]") {
    // In Ray one trial is a rung, goes on, and the next one joins the bracket all the same. Ours waits for the others.
    Brackets d(hyperband(81, 1000));
    d.add_many(131);
    CHECK(d.at(130, 27, 1) == Verb::pause);
    d.add_many(1);
    CHECK(d.begun.back() == Create{3, 27});
    CHECK(d.at(131, 27, 2) == Verb::pause);
    // No more can be created (the searcher has no more): the bracket is closed with what it has.
    CHECK(d.promote_all(false) == Numbers{131});
    // More can be created after all, because the study was extended: they begin the next bracket.
    d.add_many(1);
    CHECK(d.begun.back() == Create{4, 81});
}

TEST_CASE("H9: a trial that skips rungs enters the one that it was heading for [JumpingTime]",
          "[schedulers][hyperband]") {
    Brackets d(hyperband(81, 81));
    d.add_many(81);
    for (std::uint32_t i = 0; i < 80; ++i) CHECK(d.at(i, 1, i) == Verb::pause);
    CHECK(d.at(80, 4, -1) == Verb::pause); // the worst
    CHECK(d.promote_all().size() == 27);
    Brackets other(hyperband(81, 81));
    other.add_many(81);
    for (std::uint32_t i = 0; i < 80; ++i) CHECK(other.at(i, 1, i) == Verb::pause);
    CHECK(other.at(80, 4, 80) == Verb::go_on); // the best; at iteration 4 it is past rung 3, too
    CHECK(other.scheduler().next_decision_point(TrialId(80), 4) == 5);
    CHECK(other.at(80, 5, 80) == Verb::pause); // and enters that with its next report
}

TEST_CASE("H10: no bracket is empty [FilterNoneBracket]", "[schedulers][hyperband]") {
    // Ray rounds log(20) / log(3) up to 3, and that bracket would begin below 1.
    CHECK(rows(hyperband_brackets(1, 3, 20, BracketTable::formula), 3) ==
          std::vector<std::string>{"9@2 3@6 1@20", "5@6 1@20", "3@20"});
    Brackets d(hyperband(20, 100));
    d.add_many(100);
    CHECK(d.at(0, 2, 1) == Verb::pause);
}

TEST_CASE("H11: four trials at 4, eta 2: the best two go on to 8 [SmallMaxTStop, SmallMaxTContinue]",
          "[schedulers][hyperband]") {
    Brackets d(hyperband(8, 22, {{"eta", 2}}));
    CHECK(trials_of(hyperband_brackets(1, 2, 8, BracketTable::formula)) == Counts{8, 6, 4, 4});
    d.add_many(18);
    CHECK(d.begun.back() == Create{2, 4});
    for (std::uint32_t i = 0; i < 3; ++i) CHECK(d.at(14 + i, 4, 10.0 * i + 10) == Verb::pause);
    CHECK(d.at(17, 4, 40) == Verb::go_on);
    CHECK(d.promote_all() == Numbers{16});
    // The ceiling always ends a trial (stop_last_trials of Ray is true).
    CHECK(d.at(16, 8, 30) == Verb::stop);
    CHECK(d.at(17, 8, 40) == Verb::stop);
}

TEST_CASE("H12: a trial that reports at the ceiling at once ends, whatever its rung [Overstep]",
          "[schedulers][hyperband]") {
    // Ray compares them, and ends the two worst for that. All have been trained to the end: there is nothing to save.
    Brackets d(hyperband(8, 22, {{"eta", 2}}));
    d.add_many(18);
    for (std::uint32_t i = 14; i < 18; ++i) CHECK(d.report(TrialId(i), 8, i).reason == Reason::max_iterations);
    for (std::uint32_t i = 14; i < 18; ++i) {
        d.ended(TrialId(i), study::AttemptOutcome::finished);
        d.close(TrialId(i), study::TrialPhase::finished, Reason::max_iterations);
    }
    CHECK(d.promote_all().empty());
}

TEST_CASE("H13: the largest bracket comes first [LargestBracketFirst]", "[schedulers][hyperband]") {
    Brackets d(hyperband(3, 100));
    d.add_many(4);
    CHECK(d.begun[2] == Create{0, 1});
    CHECK(d.begun[3] == Create{1, 3});
}

// ---- rules of our own

TEST_CASE("A bracket opens when the others have no work; promotions of the oldest come first",
          "[schedulers][hyperband]") {
    Brackets d(hyperband(9, 1000)); // 9@1 3@3 1@9; 5@3 1@9; 3@9
    const Pool pool{.can_create = true, .active = true};
    d.add_many(9 + 5);
    for (std::uint32_t i = 0; i < 8; ++i) d.at(i, 1, i);
    CHECK(std::get<Create>(d.work(pool)) == Create{2, 9}); // nobody may go on yet, and no rank waits
    for (std::uint32_t i = 9; i < 14; ++i) d.at(i, 3, i);
    CHECK(d.next(pool) == std::nullopt); // #13 came last, was the best, and has gone on in place
    d.at(8, 1, -1);
    CHECK(d.next(pool) == Promotion{TrialId(7), 1, 3, Reason::promoted});
    CHECK(d.promote_all(true) == Numbers{7, 6, 5});
    CHECK(std::get<Create>(d.work(pool)) == Create{2, 9});
}

TEST_CASE("Trials that are not finite are worst, and block nothing", "[schedulers][hyperband]") {
    Brackets d(hyperband(3, 3));
    d.add_many(3);
    CHECK(d.at(0, 1, infinite) == Verb::pause);
    CHECK(d.at(1, 1, std::nan("")) == Verb::pause);
    CHECK(d.at(2, 1, -infinite) == Verb::pause);
    CHECK(d.promote_all() == Numbers{0}); // all are equal: the lowest trial
}

TEST_CASE("Failures shrink nothing, and a rung of failures ends its bracket", "[schedulers][hyperband]") {
    Brackets d(hyperband(9, 9));
    d.add_many(9);
    for (std::uint32_t i = 0; i < 5; ++i) d.fail(TrialId(i));
    for (std::uint32_t i = 5; i < 9; ++i) d.report(TrialId(i), 1, i, true); // others wait for ranks: nobody goes on
    CHECK(d.promote_all() == Numbers{8, 7, 6});                             // floor(9 / 3)
    for (std::uint32_t i = 6; i < 9; ++i) d.fail(TrialId(i));
    CHECK(std::holds_alternative<NothingLeft>(d.work({})));
    CHECK(std::get<Create>(d.work({.can_create = true})) == Create{1, 3});
}

TEST_CASE("Who was chosen and fails before it goes on leaves its place to the next best", "[schedulers][hyperband]") {
    Brackets d(hyperband(9, 9));
    d.add_many(9);
    for (std::uint32_t i = 0; i < 9; ++i) d.report(TrialId(i), 1, 9.0 - i, true);
    d.close(TrialId(1), study::TrialPhase::failed, Reason::unsaved);
    CHECK(d.promote_all() == Numbers{0, 2, 3});
    CHECK(d.scheduler().out_of_reach(TrialId(4)));
}

TEST_CASE("A bracket of fewer trials than eta trains its best one to the end", "[schedulers][hyperband]") {
    Brackets d(hyperband(9, 2));
    d.add_many(2);
    CHECK(d.at(0, 1, 2) == Verb::pause);
    CHECK(d.at(1, 1, 1) == Verb::pause);
    CHECK(d.promote_all() == Numbers{0});
    CHECK(d.report(TrialId(0), 3, 2).reason == Reason::in_top); // alone in its rung
    CHECK(d.at(0, 9, 2) == Verb::stop);
}

TEST_CASE("A reopened trial is awaited where places are left, and stopped where there are none",
          "[schedulers][hyperband]") {
    Brackets d(hyperband(3, 3));
    d.add_many(3);
    d.fail(TrialId(0));
    d.at(1, 1, 1);
    d.apply(study::TrialReopened{TrialId(0), {}, false});
    d.at(2, 1, 2);
    CHECK(d.promote_all().empty());
    d.fail(TrialId(0));
    CHECK(d.promote_all() == Numbers{2});
    d.apply(study::TrialReopened{TrialId(0), {}, true});
    const Verdict verdict = d.report(TrialId(0), 1, 100);
    CHECK(verdict.verb == Verb::stop);
    CHECK(verdict.reason == Reason::not_in_top);
    // The rung above is not kept waiting.
    CHECK(d.at(2, 3, 2) == Verb::stop);
}

TEST_CASE("A deterministic study promotes trials from their verdicts on", "[schedulers][hyperband]") {
    study::StudySpec spec = hyperband(3, 3);
    spec.deterministic = true;
    Brackets d(spec);
    d.add_many(3);
    for (std::uint32_t i = 0; i < 3; ++i) d.tell(TrialId(i), 1, 3.0 - i, d.ask(TrialId(i), 1, 3.0 - i));
    CHECK(d.promote_all() == Numbers{0});
    d.ended(TrialId(0), study::AttemptOutcome::paused); // now its ranks are free
    CHECK(d.promote_all().empty());
}

TEST_CASE("A snapshot in the middle of a rung goes on as the original, and is checked", "[schedulers][hyperband]") {
    Brackets d(hyperband(9, 1000));
    d.add_many(12);
    for (std::uint32_t i = 0; i < 9; ++i) d.report(TrialId(i), 1, i, true);
    const auto promotion = d.next({.can_create = true});
    REQUIRE(promotion);
    d.promote(*promotion);
    d.replace_by_restored();
    CHECK(d.promote_all(true) == Numbers{7, 6});
    for (const auto& [ceiling, settings] :
         std::vector<std::pair<Iteration, Settings>>{{27, {}}, {9, {{"eta", 2}}}, {9, {{"table", "floor"}}}})
        CHECK_THROWS_AS(Driver(hyperband(ceiling, 1000, settings)).restored(d.snapshot()), base::FormatError);
}

TEST_CASE("Records that do not fit are refused", "[schedulers][hyperband]") {
    Brackets d(hyperband(9, 1000));
    CHECK_THROWS_AS(d.apply(study::TrialCreated{TrialId(0), {}, 1, 1, 3, {}, {}}), base::FormatError);
    d.add_many(10);
    CHECK_THROWS_AS(d.apply(study::TrialCreated{TrialId(10), {}, 1, 0, 1, {}, {}}), base::FormatError);
    CHECK_THROWS_AS(d.promote({TrialId(0), 1, 3}), base::FormatError);
    d.fail(TrialId(0));
    CHECK_THROWS_AS(d.close(TrialId(0), study::TrialPhase::failed, Reason::exception), base::FormatError);
    CHECK_THROWS_AS(d.apply(study::TrialReopened{TrialId(1), {}, false}), base::FormatError);
}

// ---- whole studies

namespace {

/// A value that depends on nothing but trial and iteration, as in a repetition after a loss.
double value_of(TrialId trial, Iteration iteration) {
    base::RngStream random(7, base::Purpose::fault, trial.value(), static_cast<std::uint32_t>(iteration));
    return random.uniform();
}

testing::WorldOptions calm(std::uint32_t trials, std::uint64_t seed, double loss) {
    testing::WorldOptions options;
    options.seed = seed;
    options.trials = trials;
    options.loss = loss;
    options.restart = loss / 10.0;
    options.failure = options.stopper = options.drain = 0.0;
    options.value = [](TrialId trial, Iteration iteration, base::RngStream&) { return value_of(trial, iteration); };
    return options;
}

} // namespace

TEST_CASE("Whole studies promote exactly the best of each rung, whatever is lost on the way",
          "[schedulers][hyperband]") {
    for (const std::uint32_t trials : {143U, 100U, 81U, 50U, 7U, 1U}) {
        for (const std::uint64_t seed : {1U, 2U}) {
            INFO(trials << " trials, seed " << seed);
            testing::World world(hyperband(81, trials), calm(trials, seed, 0.02));
            world.run();
            std::map<std::uint32_t, std::vector<std::uint32_t>> brackets;
            std::map<std::uint32_t, std::size_t> promotions;
            for (const study::Record& record : world.records()) {
                if (const auto* created = std::get_if<study::TrialCreated>(&record))
                    brackets[created->bracket].push_back(created->trial.value());
                if (const auto* promotion = std::get_if<study::TrialPromoted>(&record))
                    ++promotions[promotion->trial.value()];
                if (const auto* report = std::get_if<study::Reported>(&record))
                    promotions[report->trial.value()] += report->verdict.reason == Reason::in_top ? 1 : 0;
            }
            const auto shapes = hyperband_brackets(1, 3, 81, BracketTable::formula);
            for (auto& [number, members] : brackets) {
                const BracketShape& shape = shapes.at(number);
                CHECK(members.size() <= shape.trials);
                for (std::size_t i = 0; i + 1 < shape.levels.size(); ++i) {
                    std::ranges::sort(members, [&](std::uint32_t a, std::uint32_t b) {
                        return value_of(TrialId(a), shape.levels[i]) > value_of(TrialId(b), shape.levels[i]);
                    });
                    const std::size_t kept = std::max<std::size_t>(members.size() / 3, 1);
                    for (std::size_t k = kept; k < members.size(); ++k) CHECK(promotions[members[k]] == i);
                    members.resize(kept);
                }
                for (const std::uint32_t trial : members) CHECK(promotions[trial] + 1 == shape.levels.size());
            }
        }
    }
}

TEST_CASE("The plan says what will be trained, to the iteration", "[schedulers][hyperband]") {
    using Rungs = std::vector<std::pair<Iteration, std::uint64_t>>;
    const auto plan_of = [](const study::StudySpec& spec) { return spec.scheduler.algorithm->plan(spec); };
    const auto rungs = [](const study::SchedulerPlan& plan) {
        Rungs all;
        for (const auto& rung : plan.rungs) all.emplace_back(rung.iteration, rung.trials);
        return all;
    };
    const auto formula = plan_of(hyperband(81, 143));
    CHECK(rungs(formula) == Rungs{{1, 81}, {3, 61}, {9, 35}, {27, 19}, {81, 10}});
    CHECK(formula.iterations == 1581);
    CHECK(formula.words == "HyperBand, 5 brackets of 81/34/15/8/5 trials");
    CHECK(formula.warning.empty());
    CHECK(plan_of(hyperband(81, 128, {{"table", "floor"}})).iterations == 1404);
    CHECK(plan_of(hyperband(81, 1430)).iterations == 15810);
    CHECK(plan_of(hyperband(81, 20)).warning ==
          "study.num_trials = 20 is less than one round of all brackets, which takes 143 trials; the last ones, which "
          "train their trials longest, are cut off or missing");
    for (const std::uint32_t trials : {300U, 143U, 100U, 83U, 20U, 2U, 1U}) {
        for (const char* table : {"formula", "floor"}) {
            INFO(trials << " trials, " << table);
            const study::StudySpec spec = hyperband(27, trials, {{"table", table}});
            testing::WorldOptions options = calm(trials, 3, 0.0);
            options.by_turn = true; // never contended
            testing::World world(spec, options);
            world.run();
            CHECK(world.iterations() == plan_of(spec).iterations);
            CHECK(world.reached_ceiling() == plan_of(spec).rungs.back().trials);
            const auto seen = world.driver().scheduler().rungs();
            const auto expected = rungs(plan_of(spec));
            REQUIRE(seen.size() == expected.size());
            for (std::size_t i = 0; i < seen.size(); ++i)
                CHECK(std::pair{seen[i].iteration, seen[i].entries} == expected[i]);
        }
    }
}

} // namespace hyperband_test
