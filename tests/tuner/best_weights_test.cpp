// SPDX-License-Identifier: Apache-2.0
// The weights of the best report of a study: what trials are told so that they are saved.
#include <limits>
#include <optional>
#include <stdexcept>
#include <variant>

#include "small_core.hpp"

namespace ranktune::tuner {
namespace {

using testing::SmallCore;

/// Told with the last event.
std::optional<Verb> told(const SmallCore& core) {
    for (const auto& command : core.commands())
        if (const auto* decide = std::get_if<study::Decide>(&command)) return decide->verdict.verb;
    return std::nullopt;
}
const study::StartTrial& started(const SmallCore& core) {
    for (const auto& command : core.commands())
        if (const auto* start = std::get_if<study::StartTrial>(&command)) return *start;
    FAIL("no trial was started");
    throw std::logic_error("unreachable");
}

const std::string three = testing::small_study("max_iterations = 3\n", "");

} // namespace

TEST_CASE("a trial that leads saves its last state, unless the state of its best report is kept", "[tuner]") {
    for (const bool kept : {true, false}) {
        SmallCore core(three);
        core.began({"n0"});
        core.report(0, 1, 0.5);
        core.report(0, 2, 0.75);
        if (kept) core.saved(0, 2, 0.75);
        core.report(0, 3, 0.625);
        CHECK(told(core) == (kept ? Verb::discard : Verb::stop));
    }
    SmallCore rising(three);
    rising.began({"n0"});
    rising.report(0, 2, 0.5);
    rising.saved(0, 2, 0.5);
    rising.report(0, 3, 0.75);
    CHECK(told(rising) == Verb::stop);
    SmallCore two(testing::small_study("max_iterations = 3\n", "[checkpoint]\nkeep = 2\n"));
    two.began({"n0"});
    two.report(0, 2, 0.75);
    two.saved(0, 2, 0.75);
    two.report(0, 3, 0.5);
    CHECK(told(two) == Verb::stop);
}

TEST_CASE("a trial knows what it has to beat to be the best of the study", "[tuner]") {
    SmallCore core(three);
    core.began({"n0"});
    CHECK_FALSE(started(core).to_beat);
    core.report(0, 1, 0.5);
    core.report(0, 2, 0.75);
    core.report(0, 3, 0.5);
    core.over(0, AttemptOutcome::stopped);
    CHECK(started(core).to_beat == 0.75);
    // A trial whose own best state is lost saves what it reaches next.
    core.report(1, 1, 0.875);
    core.over(1, AttemptOutcome::lost);
    CHECK(started(core).trial == TrialId{1});
    CHECK_FALSE(started(core).to_beat);
    core.report(1, 1, 0.875);
    core.saved(1, 1, 0.875);
    core.over(1, AttemptOutcome::lost);
    CHECK(started(core).to_beat == 0.875);
}

TEST_CASE("an attempt that repeats one in which the best state could not be saved does not try again", "[tuner]") {
    using Limits = std::numeric_limits<double>;
    for (const Mode mode : {Mode::max, Mode::min}) {
        for (const std::string more : {"", "deterministic = true\nmax_concurrent = 1\n"}) {
            std::string text = testing::small_study("max_iterations = 3\n" + more, "");
            if (mode == Mode::min) text.replace(text.find("\"max\""), 5, "\"min\"");
            SmallCore core(text);
            core.began({"n0"});
            core.report(0, 1, 0.5);
            core.over(0, AttemptOutcome::unsaved, {"while saving at iteration 1: killed by signal 9", 0});
            CHECK(core.state().drain_reason == study::Reason::unsaved);
            CHECK_FALSE(core.trial(0).failure.empty());
            core.began({"n0"});
            for (const bool lost : {false, true}) { // the attempt after the next one does not try it, either
                if (lost) core.over(0, AttemptOutcome::lost);
                REQUIRE(started(core).trial == TrialId{0});
                const double worth = study::score(started(core).to_beat.value(), mode);
                for (const double value : {Limits::lowest(), 0.5, Limits::max(), Limits::infinity()})
                    CHECK(study::score(value, mode) <= worth);
            }
            for (const Iteration iteration : {1, 2, 3}) core.report(0, iteration, 0.5);
            CHECK(told(core) == Verb::stop); // at its end it tries
            core.over(0, AttemptOutcome::stopped);
            CHECK(started(core).to_beat == 0.5);
        }
    }
}

TEST_CASE("an attempt after another failure saves its best state", "[tuner]") {
    SmallCore core(testing::small_study("max_iterations = 3\n", "[failure]\nmax_failures = 1\n"));
    core.began({"n0"});
    core.report(0, 1, 0.5);
    core.over(0, AttemptOutcome::failed, {"an exception", 0});
    CHECK(started(core).trial == TrialId{0});
    CHECK_FALSE(started(core).to_beat);
}

TEST_CASE("a checkpoint of the best iteration with another value does not have the weights of the best value",
          "[tuner]") {
    Trial t;
    t.best = 0.75;
    t.best_iteration = 2;
    const study::Objective objective{"score", Mode::max};
    CHECK(has_best(t, {2, "2", 10, 1, 0.75}, objective));
    CHECK(has_best(t, {3, "3", 10, 1, 0.75}, objective));        // reached again
    CHECK_FALSE(has_best(t, {2, "2", 10, 1, 0.625}, objective)); // trained again, with another result
    CHECK_FALSE(has_best(t, {3, "3", 10, 1, {}}, objective));
}

} // namespace ranktune::tuner
