// SPDX-License-Identifier: Apache-2.0
// Several objectives: with which result a trial stands, the Pareto front, and what is kept of it.
#include <cmath>
#include <map>

#include "ranktune/base/rng.hpp"
#include "small_core.hpp"

namespace front_test {

using namespace ranktune;
using namespace ranktune::tuner;
using tuner::testing::SmallCore;
using Ids = std::vector<TrialId>;

namespace {

/// Like small_study, for accuracy (max) and latency (min).
std::string two_goals(const std::string& study, const std::string& more) {
    return "[study]\nname = \"small\"\nmetric = [\"accuracy\", \"latency\"]\nmode = [\"max\", \"min\"]\nseed = 1\n" +
           study + "\n[trainable]\nname = \"any\"\n[space]\nx = \"uniform(0, 1)\"\n" + more;
}

void report_both(SmallCore& core, std::uint32_t trial, Iteration iteration, double accuracy,
                 std::optional<double> latency) {
    std::vector<study::NamedMetric> metrics = {{"accuracy", accuracy}};
    if (latency) metrics.push_back({"latency", *latency});
    core.step(study::ReportArrived{TrialId{trial}, core.attempt(trial), core.incarnation(), iteration, 1.0 * iteration,
                                   std::move(metrics)});
}

Ids ids(std::initializer_list<std::uint32_t> numbers) {
    Ids all;
    for (const std::uint32_t number : numbers) all.emplace_back(number);
    return all;
}

std::string kept_of(const SmallCore& core, std::uint32_t trial) {
    std::string text;
    for (const auto& checkpoint : core.trial(trial).checkpoints)
        text += (text.empty() ? "" : " ") + std::to_string(checkpoint.iteration);
    return text;
}

} // namespace

TEST_CASE("a trial stands with its newest result, unless the one before was better in every way", "[tuner]") {
    SmallCore core(two_goals("num_trials = 1\nmax_iterations = 9\nconstraints = [\"latency <= 9\"]\n", ""));
    core.began({"n0"});
    const auto standing = [&] {
        const Trial& t = core.trial(0);
        return std::isnan(t.best) ? std::vector<double>{}
                                  : std::vector{t.best, t.others.at(0), static_cast<double>(t.best_iteration)};
    };
    report_both(core, 0, 1, 0.9, 10.0); // violates the constraint
    CHECK(standing().empty());
    CHECK(core.state().front.trials().empty());
    report_both(core, 0, 2, 0.5, 5.0);
    CHECK(standing() == std::vector{0.5, 5.0, 2.0});
    report_both(core, 0, 3, 0.4, 6.0); // worse in every way
    CHECK(standing() == std::vector{0.5, 5.0, 2.0});
    report_both(core, 0, 4, 0.6, 6.0); // better in one
    CHECK(standing() == std::vector{0.6, 6.0, 4.0});
    report_both(core, 0, 5, 0.6, 6.0); // the same: the newer counts
    CHECK(standing() == std::vector{0.6, 6.0, 5.0});
    report_both(core, 0, 6, NAN, 1.0);
    CHECK(standing() == std::vector{0.6, 6.0, 5.0});
    CHECK(core.state().front.trials() == ids({0}));
}

TEST_CASE("the front has the trials that no other one beats, also after one of them got worse", "[tuner]") {
    SmallCore core(two_goals("num_trials = 4\nmax_iterations = 9\n", ""));
    core.began({"n0", "n1", "n2", "n3"});
    report_both(core, 0, 1, 0.5, 5.0);
    report_both(core, 1, 1, 0.6, 7.0);
    CHECK(core.state().front.trials() == ids({0, 1}));
    CHECK(core.state().best == TrialId(1));
    report_both(core, 2, 1, 0.7, 4.0); // beats both
    CHECK(core.state().front.trials() == ids({2}));
    CHECK(core.state().best == TrialId(2));
    report_both(core, 3, 1, 0.7, 4.0); // equal ones are both there
    CHECK(core.state().front.trials() == ids({2, 3}));
    report_both(core, 3, 2, 0.3, 1.0);
    report_both(core, 2, 2, 0.55, 3.0); // no longer beats #1
    CHECK(core.state().front.trials() == ids({1, 2, 3}));
    CHECK(core.state().best == TrialId(1));
    CHECK(pareto_ranks(core.state().trials, core.core().spec().objective) == std::vector<std::int64_t>{1, 0, 0, 0});
}

TEST_CASE("the front found step by step is that of all trials", "[tuner]") {
    SmallCore core(two_goals("num_trials = 12\nmax_iterations = 40\n", "")); // the core checks it after each event
    core.began(std::vector<std::string>(12, "n0"));
    base::RngStream random(5, base::user_purpose(0), 0);
    std::map<std::uint32_t, Iteration> iterations;
    for (int i = 0; i < 300; ++i) {
        const auto trial = static_cast<std::uint32_t>(random.below(12));
        if (iterations[trial] >= 39) continue;
        report_both(core, trial, ++iterations[trial], static_cast<double>(random.below(6)),
                    random.below(20) == 0 ? INFINITY : static_cast<double>(random.below(6)));
    }
    CHECK_FALSE(core.state().front.trials().empty());

    study::Bytes bytes;
    study::Encoder out(bytes);
    core.core().snapshot(out);
    Tuner restored(core.core().spec());
    study::Decoder in(bytes);
    restored.restore(in);
    CHECK(restored.digest() == core.core().digest());
    CHECK(restored.state().front.trials() == core.state().front.trials());
    restored.check_invariants();
}

TEST_CASE("trials of the front keep the checkpoint of their best iteration", "[tuner]") {
    SmallCore core(two_goals("num_trials = 2\nmax_iterations = 3\n", "[checkpoint]\nkeep = 1\n"));
    core.began({"n0", "n1"});
    for (Iteration i = 1; i <= 3; ++i) {
        report_both(core, 0, i, 0.5, i == 3 ? 9.0 : 5.0); // best at 2: 3 is worse in every way
        core.saved(0, i, 0.5);
    }
    CHECK(core.trial(0).best_iteration == 2);
    core.over(0, AttemptOutcome::stopped);
    CHECK(kept_of(core, 0) == "2");
    report_both(core, 1, 1, 0.4, 1.0);
    core.saved(1, 1, 0.4);
    CHECK(core.state().front.trials() == ids({0, 1}));
    CHECK(kept_of(core, 0) == "2");
    report_both(core, 1, 2, 0.6, 1.0);
    CHECK(core.state().front.trials() == ids({1}));
    core.saved(1, 2, 0.6);
    CHECK(kept_of(core, 0).empty()); // it left the front
}

TEST_CASE("a study whose reports lack one of its objectives stops with its name", "[tuner]") {
    SmallCore core(two_goals("num_trials = 2\nmax_iterations = 2\n", ""));
    core.began({"n0"});
    report_both(core, 0, 1, 0.9, {});
    CHECK(core.state().draining);
    CHECK(core.state().drain_message ==
          "the first report of trial #0 lacks a metric of study.metric, 'latency'; it has accuracy");
}

TEST_CASE("a study none of whose results is finite has no success", "[tuner]") {
    SmallCore core(two_goals("num_trials = 1\nmax_iterations = 1\n", ""));
    core.began({"n0"});
    report_both(core, 0, 1, 0.5, NAN);
    core.over(0, AttemptOutcome::stopped);
    REQUIRE(core.state().ended);
    CHECK(core.state().outcome == StudyOutcome::no_success);
    CHECK(core.state().end_message.find("no report had a finite accuracy and latency") == 0);
}

TEST_CASE("ASHA ranks a rung by fronts, and the searcher gets all objectives", "[tuner]") {
    SmallCore core(
        two_goals("num_trials = 4\nmax_iterations = 2\n",
                  "[searcher]\ntype = \"nsga2\"\n[scheduler]\ntype = \"asha\"\nvariant = \"stop\"\neta = 2\n"));
    core.began({"n0", "n1", "n2", "n3"});
    report_both(core, 0, 1, 0.1, 1.0);
    report_both(core, 1, 1, 0.9, 2.0); // on the front, but the lower trial comes first
    report_both(core, 2, 1, 0.05, 3.0);
    report_both(core, 3, 1, 0.95, 1.0); // beats all
    CHECK(core.trial(0).verdict.verb == Verb::go_on);
    CHECK(core.trial(1).verdict.verb == Verb::stop);
    CHECK(core.trial(2).verdict.verb == Verb::stop);
    CHECK(core.trial(3).verdict.verb == Verb::go_on);
    const auto& table = core.state().observations;
    for (std::size_t i = 0; i < table.size(); ++i)
        if (table[i].kind == searchers::Observation::Kind::reported) CHECK(table[i].score.values().size() == 2);
}

} // namespace front_test
