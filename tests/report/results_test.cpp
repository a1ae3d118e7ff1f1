// SPDX-License-Identifier: Apache-2.0
#include "ranktune/results.hpp"

#include <string>
#include <tuple>
#include <vector>

#include "journal_by_hand.hpp"
#include "ranktune/base/error.hpp"
#include "study_by_hand.hpp"
#include "support/catch.hpp"

namespace results_test {

using namespace ranktune;
using Catch::Matchers::Contains;
using ranktune::report::testing::rising;
using ranktune::report::testing::small_study;
using ranktune::report::testing::StudyByHand;
using ranktune::report::testing::TemporaryDirectory;
using ranktune::report::testing::write_journal;

TEST_CASE("a program reads the trials, curves and best of a study", "[report]") {
    const TemporaryDirectory directory;
    StudyByHand by_hand(small_study(3));
    by_hand.began(2);
    by_hand.play_out(rising);
    write_journal(directory.path(), by_hand.records);
    const tuner::State& state = by_hand.tuner.state();

    const Study study = Study::open(directory.path());
    CHECK(study.name() == by_hand.tuner.spec().name);
    CHECK(study.metric() == by_hand.tuner.spec().objective.metric);
    CHECK(study.mode() == by_hand.tuner.spec().objective.mode);
    CHECK(study.ended());
    CHECK(std::vector<std::string>(study.metrics().begin(), study.metrics().end()) == state.metrics);
    REQUIRE(study.trials().size() == state.trials.size());
    std::size_t points = 0;
    for (const Study::Trial& trial : study.trials()) {
        const tuner::Trial& expected = state.trial(trial.id);
        CHECK(trial.phase == expected.phase);
        CHECK(trial.configuration == expected.configuration);
        CHECK(trial.iterations == expected.iteration);
        CHECK(trial.best == expected.best);
        const auto curve = study.curve(trial.id);
        REQUIRE(curve.size() == expected.iteration);
        for (std::size_t i = 0; i < curve.size(); ++i) CHECK(curve[i].iteration == i + 1);
        CHECK(curve.back().value == expected.last);
        points += curve.size();
    }
    CHECK(points == state.reports);
    REQUIRE(study.best() != nullptr);
    CHECK(study.best()->id == *state.best);
}

TEST_CASE("a study that runs can be opened, and every metric has curves", "[report]") {
    const TemporaryDirectory directory;
    StudyByHand by_hand(small_study(9));
    by_hand.began(2);
    by_hand.report(0, 1, {{"score", 0.5}, {"loss", 2.0}});
    by_hand.report(1, 1, {{"loss", 3.0}, {"score", 0.25}});
    write_journal(directory.path(), by_hand.records);
    const Study study = Study::open(directory.path());
    CHECK_FALSE(study.ended());
    REQUIRE(study.metrics().size() == 2);
    for (const auto& [trial, loss, score] : {std::tuple{0U, 2.0, 0.5}, std::tuple{1U, 3.0, 0.25}}) {
        const auto of_loss = study.curve(base::TrialId{trial}, "loss");
        REQUIRE(of_loss.size() == 1);
        CHECK(of_loss[0].iteration == 1);
        CHECK(of_loss[0].value == loss);
        CHECK(study.curve(base::TrialId{trial})[0].value == score);
    }
    CHECK_THROWS_WITH(study.curve(base::TrialId{77}), Contains("there is no trial #77"));
    CHECK_THROWS_WITH(study.curve(base::TrialId{0}, "nonsense"),
                      Contains("no trial has reported a metric 'nonsense'; there are: score, loss"));
}

TEST_CASE("a directory without a study is no study to open", "[report]") {
    const TemporaryDirectory directory;
    CHECK_THROWS_AS(Study::open(directory.path()), base::UsageError);
}

} // namespace results_test
