// SPDX-License-Identifier: Apache-2.0
#include "report/screens/comparison.hpp"

#include <cmath>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "golden.hpp"
#include "ranktune/base/error.hpp"
#include "screens_by_hand.hpp"
#include "view_by_hand.hpp"

namespace comparison_test {

using namespace ranktune;
using namespace ranktune::report;
using namespace ranktune::report::testing;

namespace {

ComparedStudy played(const std::string& directory, base::Iteration max_iterations,
                     double (*value)(std::uint32_t, base::Iteration)) {
    StudyByHand study(small_study(max_iterations));
    study.began(2);
    study.play_out(value);
    return {directory, view_of(study)};
}

double falling(std::uint32_t trial, base::Iteration iteration) { return 0.3 - rising(trial, iteration); }

} // namespace

TEST_CASE("studies are compared on the same axes of iterations and of time", "[report]") {
    const std::vector<ComparedStudy> studies{played("up", 9, rising), played("down", 9, falling)};
    const std::string text = comparison_text(studies, Style{});
    CHECK(text == golden("compare", text));
    const auto json = comparison_json(studies);
    CHECK(json["differences"].empty());
    CHECK(json["studies"][0]["improvements"].size() == studies[0].view.best_steps.size());
    CHECK(json["studies"][0]["improvements"].back()["value"] == studies[0].view.best_steps.back().value);
}

TEST_CASE("the best value so far is that of the newest improvement", "[report]") {
    StudyView view;
    view.best_steps = {{1.0, 3, study::TrialId{0}, 0.5}, {4.0, 10, study::TrialId{1}, 0.7}};
    CHECK(std::isnan(best_after_iterations(view, 2)));
    CHECK(best_after_iterations(view, 3) == 0.5);
    CHECK(best_after_iterations(view, 9) == 0.5);
    CHECK(best_after_iterations(view, 11) == 0.7);
    CHECK(std::isnan(best_after_seconds(view, 0.5)));
    CHECK(best_after_seconds(view, 3.9) == 0.5);
    CHECK(best_after_seconds(view, 4.0) == 0.7);
}

TEST_CASE("other objectives are refused, and what makes a comparison unfair is said", "[report]") {
    std::vector<ComparedStudy> studies{played("up", 9, rising), played("short", 3, rising)};
    CHECK_NOTHROW(require_same_objective(studies));
    CHECK(differences(studies) == std::vector<std::string>{"max_iterations: 9 in up, 3 in short"});
    CHECK_THAT(comparison_text(studies, Style{}), Catch::Contains("differ    max_iterations: 9 in up, 3 in short"));
    studies[1].view.mode = study::Mode::min;
    CHECK_THROWS_WITH(require_same_objective(studies),
                      Catch::Contains("'up' is after the max of score, 'short' after the min of score"));
}

} // namespace comparison_test
