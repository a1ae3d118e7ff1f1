// SPDX-License-Identifier: Apache-2.0
// ASHA with several objectives.
#include <cmath>
#include <string>
#include <vector>

#include "ranktune/base/rng.hpp"
#include "schedulers/driver.hpp"
#include "schedulers/rungs/pareto_rung.hpp"
#include "support/catch.hpp"

namespace pareto_test {

using namespace ranktune;
using namespace ranktune::schedulers;

namespace {

study::StudySpec two_goals(const std::vector<study::OptionValue>& options, base::Iteration ceiling = 27) {
    study::StudySpec spec = spec_of(chosen("asha", options), ceiling);
    spec.objective.others = {{"cost", study::Mode::min}};
    return spec;
}

/// Reports with two objectives: quality (max) and cost (min).
struct Both : Driver {
    explicit Both(const study::StudySpec& spec) : Driver(spec) {
        apply(study::MetricDefined{study::MetricId(2), "cost"});
    }

    Verdict both(TrialId trial, base::Iteration iteration, double quality, double cost) {
        const double values[] = {study::score(quality, study::Mode::max), study::score(cost, study::Mode::min)};
        const Verdict verdict =
            scheduler().decide({trial, iteration, study::Score(values, true), std::isnan(quality)}, false);
        apply(study::Reported{trial,
                              base::AttemptId(1),
                              {},
                              iteration,
                              0.0,
                              {{study::MetricId(1), quality}, {study::MetricId(2), cost}},
                              verdict});
        if (verdict.verb == Verb::pause) ended(trial, study::AttemptOutcome::paused);
        return verdict;
    }
    [[nodiscard]] std::string promotion() const {
        const auto next_one = next();
        return next_one ? "#" + std::to_string(next_one->trial.value()) + " to " + std::to_string(next_one->target)
                        : "-";
    }
};

study::Score score_of(double a, double b) {
    const double values[] = {a, b};
    return {values, true};
}

} // namespace

TEST_CASE("ASHA promote: the best of a rung are those of its first fronts, worked by hand", "[schedulers]") {
    Both d(two_goals({{"finish_top", 0}}));
    std::vector<TrialId> t;
    for (int i = 0; i < 7; ++i) t.push_back(d.add());
    // One of three goes on. (quality, cost)
    CHECK(d.both(t[0], 1, 5, 5).verb == Verb::pause);
    CHECK(d.both(t[1], 1, 4, 6).verb == Verb::pause); // beaten by #0
    CHECK(d.promotion() == "-");
    CHECK(d.both(t[2], 1, 6, 7).verb == Verb::pause); // on the front, as #0 is: the lower trial comes first
    CHECK(d.promotion() == "#0 to 3");
    d.promote(*d.next());
    CHECK(d.promotion() == "-");
    // Fronts of six: {#0, #2, #4}, {#1, #3}, {#5}. The ends of the first one, #2 and #4, come before #0.
    CHECK(d.both(t[3], 1, 5, 6).verb == Verb::pause);
    CHECK(d.both(t[4], 1, 2, 1).verb == Verb::pause);
    CHECK(d.both(t[5], 1, 1, 9).verb == Verb::pause);
    CHECK(d.promotion() == "#2 to 3");
    d.promote(*d.next());
    CHECK(d.promotion() == "#4 to 3");
    d.promote(*d.next());
    CHECK(d.promotion() == "-");
    // It beats all, and nobody waits above it: it goes on in place.
    CHECK(d.both(t[6], 1, 9, 0).verb == Verb::go_on);
    CHECK(d.scheduler().rungs().front().entries == 7);
    CHECK(d.scheduler().rungs().front().promoted == 4);
    d.replace_by_restored();
    CHECK(d.scheduler().rungs().front().promoted == 4);
    CHECK_FALSE(d.scheduler().out_of_reach(t[5]));
}

TEST_CASE("ASHA stop: a trial goes on among the best of the entries so far", "[schedulers]") {
    Both d(two_goals({{"variant", "stop"}, {"eta", 2.0}}));
    std::vector<TrialId> t;
    for (int i = 0; i < 5; ++i) t.push_back(d.add());
    CHECK(d.both(t[0], 1, 5, 5).reason == Reason::first_arrival);
    CHECK(d.both(t[1], 1, 4, 6).verb == Verb::stop);
    CHECK(d.both(t[2], 1, NAN, 1).verb == Verb::stop);
    const Verdict verdict = d.both(t[3], 1, 5, 4);
    CHECK(verdict.verb == Verb::go_on);
    CHECK(verdict.a == 2.0); // of so many entries
    CHECK(verdict.b == 4.0);
    d.replace_by_restored();
    CHECK(d.both(t[4], 1, 4.5, 4.5).verb == Verb::stop);
}

TEST_CASE("a failed trial is worst at its rung, until it is reopened", "[schedulers]") {
    for (const char* variant : {"promote", "stop"}) {
        auto spec = two_goals({{"variant", variant}, {"eta", 2.0}});
        Both d(spec);
        const TrialId a = d.add();
        const TrialId b = d.add();
        static_cast<void>(d.both(a, 1, 1, 1));
        d.fail(b);
        CHECK(d.scheduler().rungs().front().entries == 2);
        d.apply(study::TrialReopened{b, {}, false});
        CHECK(d.scheduler().rungs().front().entries == 1);
        CHECK(d.both(b, 1, 2, 0).verb == Verb::go_on);
    }
}

TEST_CASE("a rung of fronts compares its newest entries", "[schedulers]") {
    ParetoRung rung;
    for (std::uint32_t i = 0; i < ParetoRung::most + 20; ++i) rung.insert(TrialId(i), score_of(i, 0));
    CHECK(rung.size() == ParetoRung::most);
    CHECK(rung.next_size() == ParetoRung::most);
    CHECK(rung.arrivals() == ParetoRung::most + 20);
    CHECK(rung.find(TrialId(19)) == nullptr);
    REQUIRE(rung.find(TrialId(20)) != nullptr);
    CHECK(rung.order().front() == TrialId(ParetoRung::most + 19));
    CHECK(rung.order().back() == TrialId(20));
    // With one more the oldest is left out.
    const auto order = rung.order_with(TrialId(9999), score_of(19.5, 0));
    CHECK(order.size() == ParetoRung::most);
    CHECK(order.back() == TrialId(9999));

    study::Bytes bytes;
    study::Encoder out(bytes);
    rung.snapshot(out);
    ParetoRung again;
    study::Decoder in(bytes);
    again.restore(in);
    CHECK(in.empty());
    CHECK(again.order() == rung.order());
    CHECK(again.arrivals() == rung.arrivals());
}

TEST_CASE("ASHA with two objectives: random histories keep the invariants, also beyond the entries it compares",
          "[schedulers]") {
    for (const char* variant : {"promote", "stop"}) {
        Both d(two_goals({{"variant", variant}, {"eta", 3.0}, {"brackets", 2}, {"finish_top", 2}}, 27));
        base::RngStream random(4, base::user_purpose(0), 0);
        std::uint64_t promotions = 0;
        for (std::uint32_t i = 0; i < 1400; ++i) {
            if (const auto promotion = d.next()) {
                d.promote(*promotion);
                ++promotions;
                static_cast<void>(d.both(promotion->trial, promotion->target, random.uniform(), random.uniform()));
                continue;
            }
            const TrialId trial = d.add();
            if (random.below(20) == 0) {
                d.fail(trial);
                continue;
            }
            const auto first = d.scheduler().next_decision_point(trial, 0);
            static_cast<void>(d.both(trial, first, random.uniform(), random.uniform()));
            if (i % 200 == 0) d.replace_by_restored();
        }
        const auto first = d.scheduler().rungs().front();
        CHECK(first.entries > ParetoRung::most);
        CHECK(first.promoted > first.entries / 4);
        CHECK(first.promoted < first.entries / 2);
        if (std::string(variant) == "promote") CHECK(promotions > 20);
    }
}

} // namespace pareto_test
