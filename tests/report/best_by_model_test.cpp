// SPDX-License-Identifier: Apache-2.0
// The best trial by a model's mean, where results are noisy.
#include "report/view/best_by_model.hpp"

#include "ranktune/base/rng.hpp"
#include "report/screens/screens.hpp"
#include "report/screens/text.hpp"
#include "report/study_by_hand.hpp"
#include "support/catch.hpp"

namespace ranktune::report {
namespace {

using Catch::Matchers::Contains;

constexpr std::uint32_t lucky = 3;

/// Random search of x, whose value is highest at 0.5; one trial has a value that no other gets near.
testing::StudyByHand noisy_study(std::uint32_t trials, double noise, const std::string& more = {},
                                 const std::string& mode = "max") {
    testing::StudyByHand study("[study]\nname = \"noisy\"\nmetric = \"score\"\nmode = \"" + mode +
                               "\"\nseed = 1\nmax_iterations = 1\nnum_trials = " + std::to_string(trials) +
                               "\n[trainable]\nname = \"any\"\n[space]\nx = \"uniform(0, 1)\"\n" + more);
    study.began(4);
    base::RngStream random(5, base::user_purpose(0), 0);
    for (std::uint32_t i = 0; i < study.tuner.state().trials.size(); ++i) {
        const double x = study.state(i).configuration.at("x").as_double() - 0.5;
        const double luck = i == lucky ? 4.0 * noise : 0.0;
        const double value = 1.0 - 4.0 * x * x + luck + noise * random.normal();
        study.train(i, 1, mode == "max" ? value : -value);
    }
    return study;
}

} // namespace

TEST_CASE("best: where results are noisy, the best by the mean is named, too", "[report]") {
    const testing::StudyByHand study = noisy_study(60, 0.2);
    REQUIRE(study.tuner.state().ended);
    CHECK(study.tuner.state().best == study::TrialId(lucky));
    const auto best = best_by_model(study.tuner);
    REQUIRE(best);
    CHECK(best->results == 60);
    const double x = study.state(best->trial.value()).configuration.at("x").as_double();
    CHECK(std::abs(x - 0.5) < 0.15);
    CHECK(best->mean == Approx(1.0).margin(0.15));
    CHECK(best->deviation < 0.15);
    CHECK(best->trial != study::TrialId(lucky));
    const std::string text = text_of(best, study.tuner);
    CHECK_THAT(text, Contains("by a model of 60 results, which are noisy: #3 may just have been lucky"));
    const Style plain;
    CHECK_THAT(best_screen(study.tuner, "noisy", plain), Contains("by mean"));
    CHECK_THAT(end_screen(study.tuner, {}, {}, plain), Contains("by mean"));
}

TEST_CASE("best: the mean has the sign of the metric", "[report]") {
    const testing::StudyByHand study = noisy_study(60, 0.2, {}, "min");
    CHECK(study.tuner.state().best == study::TrialId(lucky));
    const auto best = best_by_model(study.tuner);
    REQUIRE(best);
    CHECK(best->trial != study::TrialId(lucky));
    CHECK(best->mean == Approx(-1.0).margin(0.15));
}

TEST_CASE("best: nothing is said of a mean without noise, with few results, or where means are there already",
          "[report]") {
    CHECK_FALSE(best_by_model(noisy_study(60, 0.0).tuner));
    CHECK_FALSE(best_by_model(noisy_study(19, 0.2).tuner));
    CHECK_FALSE(best_by_model(noisy_study(60, 0.2, "[searcher]\ntype = \"random\"\nrepeats = 2\n").tuner));
    CHECK(text_of(std::optional<BestByModel>(), noisy_study(1, 0.0).tuner).empty());
}

} // namespace ranktune::report
