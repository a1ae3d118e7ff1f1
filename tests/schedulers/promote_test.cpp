// SPDX-License-Identifier: Apache-2.0
// ASHA that promotes, worked by hand.
#include <limits>
#include <string>
#include <vector>

#include "schedulers/driver.hpp"
#include "support/catch.hpp"

namespace promote_test {

using namespace ranktune;
using namespace ranktune::schedulers;

namespace {

study::StudySpec promote(base::Iteration ceiling = 27, std::uint32_t finish_top = 0, std::uint32_t brackets = 1,
                         double first = 1) {
    return spec_of(chosen("asha", {{"first_rung", first},
                                   {"finish_top", static_cast<int>(finish_top)},
                                   {"brackets", static_cast<int>(brackets)}}),
                   ceiling);
}

std::string text(const std::optional<Promotion>& promotion) {
    if (!promotion) return "-";
    return "#" + std::to_string(promotion->trial.value()) + " " + std::to_string(promotion->from) + "->" +
           std::to_string(promotion->target);
}

std::string text(const Verdict& verdict) {
    std::string words = verdict.verb == Verb::go_on ? "go on" : verdict.verb == Verb::pause ? "pause" : "stop";
    if (verdict.reason == Reason::in_top) {
        words += " " + std::to_string(static_cast<int>(verdict.a)) + "/" + std::to_string(static_cast<int>(verdict.b));
    }
    return words;
}

std::vector<std::string> rungs(const Driver& d) {
    std::vector<std::string> out;
    for (const auto& rung : d.scheduler().rungs()) {
        out.push_back(std::to_string(rung.iteration) + ": " + std::to_string(rung.entries) + " -> " +
                      std::to_string(rung.promoted));
    }
    return out;
}

} // namespace

TEST_CASE("ASHA promote, eta 3, r 1, R 27: one worker, values falling, worked by hand", "[schedulers]") {
    // One worker asks for work after every pause. The trial i has the value 100 - i at every rung, so the first ones
    // are the best. "value" is the score; a promotion is taken before a new trial is made.
    //
    //  step  reports          entries of rung 1, best floor(n/3)   answer            next
    //   1    #0 at 1: 100     1: {}                                pause             -
    //   2    #1 at 1: 99      2: {}                                pause             -
    //   3    #2 at 1: 98      3: {0}                               pause             #0 1->3
    //   4    #0 at 3: 100     rung 3, 1: {}                        pause             -
    //   5-7  #3 #4 #5         6: {0 1}                             pause             #1 1->3
    //   8    #1 at 3          rung 3, 2: {}                        pause             -
    //   9-11 #6 #7 #8         9: {0 1 2}                           pause             #2 1->3
    //  12    #2 at 3          rung 3, 3: {0}                       pause             #0 3->9
    //  13    #0 at 9          rung 9, 1: {}                        pause             -
    Driver d(promote());
    std::vector<std::string> log;
    const auto report = [&](std::uint32_t trial, base::Iteration iteration) {
        const Verdict verdict = d.report(TrialId(trial), iteration, 100.0 - trial);
        log.push_back("#" + std::to_string(trial) + "@" + std::to_string(iteration) + " " + text(verdict));
        const auto promotion = d.next({.can_create = true, .active = false});
        if (promotion) {
            log.push_back(text(promotion));
            d.promote(*promotion);
        }
        return promotion;
    };
    // Until 27 trials have been made: run the promoted trial, or make a new one.
    std::uint32_t made = 0;
    std::optional<Promotion> work;
    while (work || made < 27) {
        if (work) {
            work = report(work->trial.value(), work->target);
        } else {
            d.add();
            work = report(made++, 1);
        }
    }
    const std::vector<std::string> expected{
        "#0@1 pause",  "#1@1 pause",  "#2@1 pause",  "#0 1->3",     "#0@3 pause", // rung 1: 3, rung 3: 1
        "#3@1 pause",  "#4@1 pause",  "#5@1 pause",  "#1 1->3",     "#1@3 pause",  "#6@1 pause",  "#7@1 pause",
        "#8@1 pause",  "#2 1->3",     "#2@3 pause",  "#0 3->9",     "#0@9 pause",  "#9@1 pause",  "#10@1 pause",
        "#11@1 pause", "#3 1->3",     "#3@3 pause",  "#12@1 pause", "#13@1 pause", "#14@1 pause", "#4 1->3",
        "#4@3 pause",  "#15@1 pause", "#16@1 pause", "#17@1 pause", "#5 1->3",     "#5@3 pause",  "#1 3->9",
        "#1@9 pause",  "#18@1 pause", "#19@1 pause", "#20@1 pause", "#6 1->3",     "#6@3 pause",  "#21@1 pause",
        "#22@1 pause", "#23@1 pause", "#7 1->3",     "#7@3 pause",  "#24@1 pause", "#25@1 pause", "#26@1 pause",
        "#8 1->3",     "#8@3 pause",  "#2 3->9",     "#2@9 pause",  "#0 9->27",    "#0@27 stop"};
    CHECK(log == expected);
    CHECK(rungs(d) == std::vector<std::string>{"1: 27 -> 9", "3: 9 -> 3", "9: 3 -> 1", "27: 1 -> 0"});
}

TEST_CASE("ASHA promote, eta 3, r 1, R 27: values rising, worked by hand", "[schedulers]") {
    // Every new trial beats all before it, so it is promotable as soon as floor(n/3) grows, and goes on in place.
    // Trials overtaken before the count grew again are still promoted when it does: promotions are not taken back, and
    // the best three of nine are the last three, of which the third has gone on already.
    Driver d(promote());
    std::vector<std::string> log;
    const auto train = [&](std::uint32_t trial) {
        for (base::Iteration t = 1; t <= 27; ++t) {
            const Verdict verdict = d.report(TrialId(trial), t, trial);
            if (verdict.reason == Reason::below_rung) continue;
            log.push_back("#" + std::to_string(trial) + "@" + std::to_string(t) + " " + text(verdict));
            if (verdict.verb != Verb::go_on) break;
        }
    };
    for (std::uint32_t i = 0; i < 9; ++i) {
        d.add();
        train(i);
        log.push_back(text(d.next({.can_create = true})));
    }
    const std::vector<std::string> expected{"#0@1 pause",
                                            "-", // n = 1: none
                                            "#1@1 pause",
                                            "-", // n = 2: none
                                            "#2@1 go on 1/3",
                                            "#2@3 pause",
                                            "-", // n = 3: {2}
                                            "#3@1 go on 1/4",
                                            "#3@3 pause",
                                            "-", // n = 4: {3}; 2 has gone on
                                            "#4@1 go on 1/5",
                                            "#4@3 go on 1/3",
                                            "#4@9 pause",
                                            "-", // rung 3: 2, 3, 4 -> {4}
                                            "#5@1 go on 2/6",
                                            "#5@3 go on 1/4",
                                            "#5@9 pause",
                                            "-", // rung 1: {5, 4}; rung 3: {5}
                                            "#6@1 go on 2/7",
                                            "#6@3 go on 1/5",
                                            "#6@9 go on 1/3",
                                            "#6@27 stop",
                                            "-",
                                            "#7@1 go on 2/8",
                                            "#7@3 go on 2/6",
                                            "#7@9 go on 1/4",
                                            "#7@27 stop",
                                            "-",
                                            "#8@1 go on 3/9",
                                            "#8@3 go on 2/7",
                                            "#8@9 go on 1/5",
                                            "#8@27 stop",
                                            "-"};
    CHECK(log == expected);
}

TEST_CASE("the highest rung is promoted from first, and the best of a rung first", "[schedulers]") {
    Driver d(promote());
    for (std::uint32_t i = 0; i < 9; ++i) {
        d.add();
        d.report(TrialId(i), 1, i, true);
    }
    CHECK(text(d.next()) == "#8 1->3");
    d.promote(*d.next());
    CHECK(text(d.next()) == "#7 1->3");
    d.promote(*d.next());
    CHECK(text(d.next()) == "#6 1->3");
    d.promote(*d.next());
    CHECK(text(d.next()) == "-");
    d.report(TrialId(7), 3, 7, true);
    d.report(TrialId(8), 3, 8, true);
    CHECK(text(d.next()) == "-"); // 2 entries
    d.report(TrialId(6), 3, 6, true);
    for (std::uint32_t i = 9; i < 12; ++i) {
        d.add();
        d.report(TrialId(i), 1, -1.0 * i, true);
    }
    CHECK(text(d.next()) == "#8 3->9"); // before #5, the fourth best of rung 1
    d.promote(*d.next());
    CHECK(text(d.next()) == "#5 1->3");
}

TEST_CASE("a trial waits at a rung when others wait for ranks or when a better one may be promoted", "[schedulers]") {
    Driver d(promote());
    for (std::uint32_t i = 0; i < 5; ++i) {
        d.add();
        d.report(TrialId(i), 1, 10.0 - i, true);
    }
    d.promote(*d.next()); // #0
    const TrialId sixth = d.add();
    CHECK(text(d.ask(sixth, 1, 9.5)) == "go on 2/6");   // second of six, before #1
    CHECK(text(d.ask(sixth, 1, 9.5, true)) == "pause"); // contended
    CHECK(text(d.ask(sixth, 1, 8.9)) == "pause");       // third
    CHECK(text(d.ask(sixth, 1, 9.0)) == "pause");       // a tie goes to the lower id
    d.report(sixth, 1, 8.0, true);
    CHECK(text(d.next()) == "#1 1->3");
    const TrialId seventh = d.add();
    CHECK(text(d.ask(seventh, 1, 9.5)) == "go on 2/7"); // better than #1, which waits
    CHECK(text(d.ask(seventh, 1, 8.5)) == "pause");
}

TEST_CASE("a trial is paused from its verdict on, whatever becomes of its attempt", "[schedulers]") {
    for (const auto& end : std::initializer_list<study::Record>{
             study::AttemptEnded{TrialId(2), base::AttemptId(1), {}, study::AttemptOutcome::paused, false, {}},
             study::AttemptEnded{TrialId(2), base::AttemptId(1), {}, study::AttemptOutcome::lost, true, {}},
             study::IncarnationBegan{base::Incarnation(2), {}, "", {}}}) {
        Driver d(promote());
        for (std::uint32_t i = 0; i < 3; ++i) {
            d.add();
            d.tell(TrialId(i), 1, i, {Verb::pause, Reason::rung});
        }
        CHECK(text(d.next()) == "#2 1->3"); // it still saves its checkpoint
        d.apply(end);
        CHECK(text(d.next()) == "#2 1->3");
        d.promote(*d.next());
        CHECK(d.ask(TrialId(2), 1, 2).reason == Reason::below_rung); // trains the gap since its checkpoint again
        CHECK(rungs(d)[0] == "1: 3 -> 1");
    }
}

TEST_CASE("a promotion stays with the trial through losses", "[schedulers]") {
    Driver d(promote());
    for (std::uint32_t i = 0; i < 3; ++i) {
        d.add();
        d.report(TrialId(i), 1, i, true);
    }
    d.promote(*d.next());
    d.started(TrialId(2));
    d.ended(TrialId(2), study::AttemptOutcome::lost, true);
    CHECK(text(d.next()) == "-");
    CHECK(d.scheduler().next_decision_point(TrialId(2), 1) == 3);
    d.started(TrialId(2));
    CHECK(d.ask(TrialId(2), 1, 2).reason == Reason::below_rung); // from scratch, for want of a checkpoint
    CHECK(d.report(TrialId(2), 3, 2).verb == Verb::pause);
}

TEST_CASE("a trial that loses its ranks between rungs is not entered, and never promoted from there", "[schedulers]") {
    Driver d(promote(27, 1));
    d.add();
    d.report(TrialId(0), 1, 1.0);
    d.add();
    d.report(TrialId(1), 1, 2.0);
    d.add();
    CHECK(d.report(TrialId(2), 1, 3.0).verb == Verb::go_on);
    CHECK(d.report(TrialId(2), 2, 3.0).verb == Verb::go_on);
    d.ended(TrialId(2), study::AttemptOutcome::paused);
    CHECK(d.scheduler().rungs()[1].entries == 0);
    CHECK(text(d.next({.can_create = false, .active = true})) == "-"); // the tuner lets it wait again
    d.started(TrialId(2));
    CHECK(d.report(TrialId(2), 3, 3.0).verb == Verb::pause);
    CHECK(rungs(d)[1] == "3: 1 -> 0");
    // A finishing trial is entered at the rungs on its way.
    d.promote(*d.next({.can_create = false, .active = false}));
    CHECK(d.report(TrialId(2), 9, 3.0).reason == Reason::finish_top);
    d.ended(TrialId(2), study::AttemptOutcome::paused);
    CHECK(rungs(d)[2] == "9: 1 -> 1");
    CHECK(text(d.next({.can_create = false, .active = true})) == "-");
    CHECK(d.scheduler().next_decision_point(TrialId(2), 9) == 27);
}

TEST_CASE("failed trials and NaN rank last and count; ties go to the lower id", "[schedulers]") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    Driver d(promote());
    for (std::uint32_t i = 0; i < 6; ++i) d.add();
    d.report(TrialId(3), 1, nan);
    d.fail(TrialId(0)); // between start and rung 1
    CHECK(rungs(d)[0] == "1: 2 -> 0");
    d.report(TrialId(2), 1, 1.0, true);
    CHECK(text(d.next()) == "#2 1->3"); // floor(3/3): the failure counted
    d.promote(*d.next());
    d.report(TrialId(5), 1, 1.0, true);
    d.report(TrialId(4), 1, 1.0, true);
    CHECK(text(d.next()) == "-");                                           // five entries: one, and that is #2
    d.report(TrialId(1), 1, std::numeric_limits<double>::infinity(), true); // infinity is worst too
    CHECK(text(d.next()) == "#4 1->3");                                     // of the equal #4 and #5
    // A failure at the rung above is entered there.
    d.fail(TrialId(2));
    CHECK(rungs(d)[1] == "3: 1 -> 0");
    // A trial that fails while it stands at a rung keeps its entry and is not promoted any more.
    CHECK(text(d.next()) == "#4 1->3");
    d.close(TrialId(4), study::TrialPhase::failed, Reason::exception);
    CHECK(rungs(d)[0] == "1: 6 -> 1");
    CHECK(text(d.next()) == "-"); // the best two of six are #2 and #4
}

TEST_CASE("a trial that a stopper ends between rungs is not entered, at a rung it is", "[schedulers]") {
    Driver d(promote());
    d.add();
    d.report(TrialId(0), 1, 1.0);
    d.add();
    d.tell(TrialId(1), 1, 2.0, {Verb::stop, Reason::metric_threshold});
    d.ended(TrialId(1), study::AttemptOutcome::stopped);
    d.close(TrialId(1), study::TrialPhase::stopped, Reason::metric_threshold);
    d.add();
    CHECK(text(d.report(TrialId(2), 1, 3.0)) == "go on 1/3");
    d.tell(TrialId(2), 2, 3.0, {Verb::stop, Reason::plateau});
    d.ended(TrialId(2), study::AttemptOutcome::stopped);
    d.close(TrialId(2), study::TrialPhase::stopped, Reason::plateau);
    CHECK(rungs(d) == std::vector<std::string>{"1: 3 -> 1", "3: 0 -> 0", "9: 0 -> 0", "27: 0 -> 0"});
    CHECK(text(d.next()) == "-");
}

TEST_CASE("finish_top trains the best paused trials of the highest rung to the ceiling", "[schedulers]") {
    const Pool creating{.can_create = true, .active = false};
    const Pool busy{.can_create = false, .active = true};
    const Pool idle{.can_create = false, .active = false};
    for (const std::uint32_t finish_top : {0U, 1U, 2U, 3U}) {
        Driver d(promote(27, finish_top));
        for (std::uint32_t i = 0; i < 5; ++i) {
            d.add();
            d.report(TrialId(i), 1, i, true);
        }
        CHECK(text(d.next(idle)) == "#4 1->3");
        d.promote(*d.next());
        CHECK(text(d.next(busy)) == "-"); // #4 trains
        d.report(TrialId(4), 3, 4);
        CHECK(text(d.next(creating)) == "-");
        if (finish_top == 0) {
            CHECK(text(d.next(idle)) == "-");
            continue;
        }
        CHECK(text(d.next(idle)) == "#4 3->27");
        CHECK(d.next(idle)->reason == Reason::finish_top);
        d.promote(*d.next(idle));
        CHECK(d.scheduler().next_decision_point(TrialId(4), 3) == 27);
        if (finish_top == 1) {
            CHECK(text(d.next(busy)) == "-");
        } else {
            CHECK(text(d.next(busy)) == "#3 1->27"); // side by side: only finishing trials are active
            d.promote(*d.next(busy));
        }
        for (base::Iteration t = 4; t < 27; ++t) CHECK(d.report(TrialId(4), t, 4).verb == Verb::go_on);
        CHECK(d.report(TrialId(4), 27, 4).verb == Verb::stop);
        d.close(TrialId(4), study::TrialPhase::finished, Reason::max_iterations);
        if (finish_top < 3) {
            CHECK(text(d.next(busy)) == "-");
        } else {
            CHECK(text(d.next(busy)) == "#2 1->27");
        }
    }
}

TEST_CASE("finish_top takes another trial when the one it chose fails", "[schedulers]") {
    Driver d(promote(27, 1));
    for (std::uint32_t i = 0; i < 2; ++i) {
        d.add();
        d.report(TrialId(i), 1, i);
    }
    const Pool idle{.can_create = false, .active = false};
    d.promote(*d.next(idle));
    d.fail(TrialId(1));
    CHECK(text(d.next(idle)) == "#0 1->27");
}

TEST_CASE("a paused trial that is closed blocks no other", "[schedulers]") {
    const Pool creating{.can_create = true, .active = false};
    const Pool idle{.can_create = false, .active = false};
    Driver d(promote(27, 3));
    for (std::uint32_t i = 0; i < 6; ++i) {
        d.add();
        d.report(TrialId(i), 1, i, true);
    }
    d.close(TrialId(5), study::TrialPhase::stopped, Reason::not_promoted); // the best, and among the best 2
    CHECK(text(d.next()) == "#4 1->3");
    d.promote(*d.next());
    d.fail(TrialId(4)); // on its way, so that nobody stands at rung 3
    // Below the best: none of these can be promoted, but finish_top asks for them.
    d.close(TrialId(3), study::TrialPhase::stopped, Reason::not_promoted);
    d.close(TrialId(1), study::TrialPhase::stopped, Reason::not_promoted);
    CHECK(text(d.next(creating)) == "-");
    CHECK(text(d.next(idle)) == "#2 1->27");
    d.promote(*d.next(idle));
    CHECK(text(d.next(idle)) == "#0 1->27"); // side by side
    d.close(TrialId(0), study::TrialPhase::stopped, Reason::not_promoted);
    CHECK(text(d.next(idle)) == "-");
    d.replace_by_restored();
    CHECK(text(d.next(idle)) == "-");
}

TEST_CASE("a reopened trial that failed after it was told to pause blocks no other", "[schedulers]") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    Driver d(promote(27));
    for (std::uint32_t i = 0; i < 4; ++i) d.add();
    // Told to pause with the worst value; the end of its attempt makes it paused, its failure closes it.
    d.tell(TrialId(0), 1, nan, {Verb::pause, Reason::rung});
    d.fail(TrialId(0));
    d.apply(study::TrialReopened{TrialId(0), {}, false});
    for (const std::uint32_t i : {2U, 3U}) d.fail(TrialId(i)); // entered as worst
    const std::string live = text(d.ask(TrialId(1), 1, nan));
    CHECK(live == "go on 1/3");
    d.replace_by_restored();
    CHECK(text(d.ask(TrialId(1), 1, nan)) == live);
}

TEST_CASE("brackets have rungs of their own and share the order of promotions", "[schedulers]") {
    Driver d(promote(27, 0, 2)); // bracket 0: 1 3 9 27; bracket 1: 3 9 27
    for (std::uint32_t i = 0; i < 3; ++i) d.report(d.add_in(0), 1, i, true);
    for (std::uint32_t i = 3; i < 6; ++i) d.report(d.add_in(1), 3, i, true);
    CHECK(text(d.next()) == "#5 3->9"); // rung 3 before rung 1
    d.promote(*d.next());
    CHECK(text(d.next()) == "#2 1->3");
    d.promote(*d.next());
    CHECK(d.report(TrialId(2), 3, 9.0).verb == Verb::pause); // the first at rung 3 of its own bracket
    // The view counts the trials of all brackets at an iteration.
    CHECK(rungs(d) == std::vector<std::string>{"1: 3 -> 1", "3: 4 -> 1", "9: 0 -> 0", "27: 0 -> 0"});
    CHECK_THROWS_AS(d.add_in(2), base::FormatError);
}

TEST_CASE("rungs are r eta^k below R, and R", "[schedulers]") {
    CHECK(rungs(Driver(promote(20))) == std::vector<std::string>{"1: 0 -> 0", "3: 0 -> 0", "9: 0 -> 0", "20: 0 -> 0"});
    CHECK(rungs(Driver(promote(1))) == std::vector<std::string>{"1: 0 -> 0"});
    CHECK(rungs(Driver(promote(243))).size() == 6);
    Driver single(promote(5, 1, 1, 5));
    single.add();
    CHECK(single.scheduler().next_decision_point(TrialId(0), 0) == 5);
    CHECK(single.report(TrialId(0), 4, 1).verb == Verb::go_on);
    CHECK(single.report(TrialId(0), 5, 1).reason == Reason::max_iterations);
}

TEST_CASE("impossible settings are refused", "[schedulers]") {
    const auto refused = [](const std::string& option, space::Value value) {
        auto s = promote();
        s.scheduler.options.set(option, std::move(value)); // without the checks of `chosen`
        CHECK_THROWS_AS(make_scheduler(s), base::UsageError);
    };
    refused("eta", 2.5);
    refused("eta", 1.0);
    refused("eta", std::numeric_limits<double>::quiet_NaN());
    refused("first_rung", 28.0);
    refused("first_rung", 1.5);
    refused("first_rung", 0.0);
    refused("brackets", 0);
    refused("variant", "other");
    CHECK_THROWS_AS(make_scheduler(study::StudySpec{}), base::UsageError);
}

TEST_CASE("records that cannot follow are refused", "[schedulers]") {
    Driver d(promote(), false);
    CHECK_THROWS_AS(d.ask(TrialId(0), 1, 1.0), base::FormatError);
    CHECK_THROWS_AS(d.tell(TrialId(0), 1, 1.0, {}), base::FormatError);
    d.add();
    CHECK_THROWS_AS(d.promote({TrialId(0), 1, 3, Reason::promoted}), base::FormatError);
    CHECK_THROWS_AS(d.apply(study::TrialCreated{TrialId(5), {}, 1, 0, 0, {}, {}}), base::FormatError);
    d.fail(TrialId(0));
    CHECK_THROWS_AS(d.fail(TrialId(0)), base::FormatError);
}

} // namespace promote_test
