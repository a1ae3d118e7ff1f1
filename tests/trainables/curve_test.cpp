// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ranktune/testing/run_trial.hpp"
#include "support/catch.hpp"

namespace curve_test {

using namespace ranktune;
using testing::TrialOptions;
using testing::TrialRun;

namespace {

const trainables::Registration& curve() { return trainables::find_trainable("curve"); }

TrialOptions options(std::vector<std::pair<std::string, space::Value>> entries, base::Iteration iterations = 1,
                     std::uint32_t trial = 0) {
    TrialOptions result;
    result.configuration = space::Configuration(std::move(entries));
    result.max_iterations = iterations;
    result.trial = trial;
    return result;
}

double score(const TrialOptions& options) { return testing::run_trial(curve(), options).last("score"); }

} // namespace

TEST_CASE("a curve follows a - b * i^-c", "[trainables]") {
    const TrialRun run = testing::run_trial(curve(), options({{"a", 0.9}, {"b", 0.4}, {"c", 1.0}}, 4));
    REQUIRE(run.reports.size() == 4);
    CHECK(run.reports[0].at("score") == Approx(0.5));
    CHECK(run.reports[1].at("score") == Approx(0.7));
    CHECK(run.reports[3].at("score") == Approx(0.8));
    CHECK(run.reports[3].at("loss") == Approx(0.2));
}

TEST_CASE("a curve resumes from a checkpoint without any difference, noise included", "[trainables]") {
    const TrialOptions noisy = options({{"noise", 0.1}, {"state_bytes", 100}}, 7, 7);
    CHECK(testing::resume_difference(curve(), noisy, 2).empty());
    CHECK(testing::run_trial(curve(), noisy).checkpoint().state.bytes() >= 100);
    CHECK(score(options({{"noise", 0.1}}, 1, 8)) != score(options({{"noise", 0.1}}, 1, 7)));
}

TEST_CASE("a curve fails on the one rank and at the iteration that it was told", "[trainables]") {
    TrialOptions failing = options({{"fail_rate", 1.0}, {"fail_iteration", 3}, {"fail_rank", 1}}, 5);
    failing.ranks = 3;
    const TrialRun run = testing::run_trial(curve(), failing);
    CHECK(run.failure == "rank 1: curve was told to fail at iteration 3");
    CHECK(run.reports.size() == 3); // rank 0 learns of it after its own report
}

TEST_CASE("the share of the trials that fail is about the fail rate", "[trainables]") {
    int failed = 0;
    for (std::uint32_t trial = 0; trial < 400; ++trial) {
        TrialOptions some = options({{"fail_rate", 0.25}}, 10, trial);
        some.ranks = 2;
        failed += testing::run_trial(curve(), some).failure.empty() ? 0 : 1;
    }
    CHECK(failed > 60);
    CHECK(failed < 140);
}

TEST_CASE("a curve can report NaN", "[trainables]") { CHECK(std::isnan(score(options({{"nan_rate", 1.0}})))); }

TEST_CASE("a learning rate away from 0.01 costs the curve some of its score", "[trainables]") {
    CHECK(score(options({{"lr", 0.01}})) - score(options({{"lr", 1.0}})) == Approx(0.4));
}

} // namespace curve_test
