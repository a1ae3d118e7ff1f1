// SPDX-License-Identifier: Apache-2.0
#include "ranktune/study/vocabulary.hpp"

#include <limits>
#include <set>
#include <string>

#include "support/catch.hpp"

namespace vocabulary_test {

using namespace ranktune::study;

TEST_CASE("A failure is described with its rank, if it has one", "[study]") {
    CHECK(describe(Failure{"loss is NaN", 3}) == "rank 3: loss is NaN");
    CHECK(describe(Failure{"its ranks were lost 2 times"}) == "its ranks were lost 2 times");
    CHECK(describe(Failure{"", 0}) == "rank 0: "); // an exception without words is a failure all the same
    CHECK_FALSE(Failure{"", 0}.empty());
    CHECK(describe(Failure{}).empty());
    CHECK(Failure{}.empty());
}

TEST_CASE("describe fills the numbers in", "[study]") {
    CHECK(describe(Reason::first_arrival, 0, 0) == "too few others to compare with yet"); // of a rung, or for a median
    CHECK(describe(Reason::in_top, 1, 3) == "the best of 3 in its rung, goes on");
    CHECK(describe(Reason::in_top, 11, 33) == "among the best 11 of 33 in its rung, goes on");
    CHECK(describe(Reason::rung, 3, 1) == "waits at rung 3 with 1 entry");
    CHECK(describe(Reason::rung, 9, 4) == "waits at rung 9 with 4 entries");
    CHECK(describe(Reason::not_in_top, 3, 9) == "not among the best of 9 at iteration 3");
    CHECK(describe(Reason::below_median, 0.5, 0.6914) == "best value 0.5 is worse than the median 0.6914");
    CHECK(describe(Reason::scheduler_limit, 0.5, 0.75) == "value 0.5 is worse than its scheduler's limit 0.75");
    CHECK(describe(Reason::max_iterations, 27, 0) == "reached the ceiling of 27 iterations");
    CHECK(describe(Reason::max_iterations, 1, 0) == "reached the ceiling of 1 iteration");
    CHECK(describe(Reason::exception, 0, 0) == "the trainable failed"); // it threw, or its program ended with a code
    CHECK(describe(Reason::trial_time, 61.5, 60) == "trained for 61.5 s of at most 60 s");
    CHECK(describe(Reason::promoted, 3, 9) == "promoted from iteration 3 to 9");
    CHECK(describe(Reason::early_failures, 8, 0) == "the first 8 trials all failed before a report");
    CHECK(describe(Reason::early_failures, 1, 0) == "the first trial failed before a report");
    CHECK(describe(Reason::metric_threshold, -0.0, 1e-9) == "value 0 reached the threshold 1e-09");
    CHECK(describe(Reason::metric_threshold, std::numeric_limits<double>::infinity(), 0) ==
          "value inf reached the threshold 0");
}

TEST_CASE("every known reason but none has a sentence of its own, an unknown one says that it is newer", "[study]") {
    CHECK(describe(Reason::none, 0, 0).empty());
    std::set<std::string> sentences;
    constexpr int last = static_cast<int>(Reason::scheduler_limit);
    for (int code = 1; code <= last; ++code) {
        const std::string sentence = describe(static_cast<Reason>(code), 1, 2);
        CHECK(!sentence.empty());
        CHECK(sentence.find("newer") == std::string::npos);
        sentences.insert(sentence);
    }
    CHECK(sentences.size() == static_cast<std::size_t>(last));
    CHECK(describe(static_cast<Reason>(200), 0, 0) == "reason 200 (of a newer version)");
}

TEST_CASE("phases and outcomes have their names", "[study]") {
    CHECK(name(TrialPhase::waiting) == "waiting");
    CHECK(name(TrialPhase::failed) == "failed");
    CHECK(name(AttemptOutcome::paused) == "paused");
    CHECK(name(AttemptOutcome::lost) == "lost");
    CHECK(name(AttemptOutcome::oversized) == "oversized");
    CHECK(name(AttemptOutcome::resized) == "resized");
    CHECK(name(AttemptOutcome::permanent) == "permanent");
    CHECK(!is_final(TrialPhase::paused));
    CHECK(is_final(TrialPhase::finished));
}

} // namespace vocabulary_test
