// SPDX-License-Identifier: Apache-2.0
// Asynchronous studies: facts take effect as they arrive.

#include <string>
#include <vector>

#include "tuner/admission/by_arrival.hpp"
#include "tuner/values.hpp"

namespace ranktune::tuner::by_arrival_test {
namespace {

using testing::broken;
using testing::in_phase;
using Room = Admission::Room;

/// Trials in these phases, and the strategy.
struct Scene {
    explicit Scene(const std::vector<TrialPhase>& phases) {
        for (const TrialPhase phase : phases) trials.add(in_phase(phase));
    }
    void ended(std::uint32_t trial, AttemptOutcome outcome, bool retry = false, const Failure& failure = {}) {
        admission.apply(study::AttemptEnded{TrialId{trial}, AttemptId{1}, {}, outcome, retry, failure});
        if (!retry && ends_trial(outcome)) admission.end({TrialId{trial}, outcome, failure});
    }
    void closed(std::uint32_t trial) {
        admission.apply(study::TrialClosed{TrialId{trial}, {}, TrialPhase::failed, Reason::exception, 0, 0, {}});
    }
    /// The trial whose end takes effect now; empty: nothing.
    [[nodiscard]] std::string next() const {
        const auto fact = admission.next();
        if (!fact) return {};
        const auto& end = std::get<EndFact>(*fact);
        return "#" + std::to_string(end.trial.value()) + " " + std::string(name(end.outcome)) +
               (end.failure.empty() ? "" : ": " + describe(end.failure));
    }
    [[nodiscard]] std::vector<std::uint32_t> line(std::size_t most = 100) const {
        std::vector<std::uint32_t> seen;
        admission.visit_line([&](TrialId id) {
            seen.push_back(id.value());
            return seen.size() < most;
        });
        return seen;
    }

    Trials trials;
    ByArrival admission{trials};
};

} // namespace

TEST_CASE("A report takes effect when it comes, unless its attempt has reported so far before", "[tuner]") {
    Scene s({TrialPhase::running});
    s.trials.at(TrialId{0}).attempt.iteration = 3; // started from there, or reported it
    s.trials.at(TrialId{0}).iteration = 5;         // of an earlier attempt
    CHECK(s.admission.standing(TrialId{0}, 4) == Standing::next);
    CHECK(s.admission.standing(TrialId{0}, 9) == Standing::next);
    CHECK(s.admission.standing(TrialId{0}, 3) == Standing::foreign);
    CHECK(s.admission.standing(TrialId{0}, 1) == Standing::foreign);
    CHECK(s.admission.received(TrialId{0}) == 3);
    CHECK(s.admission.admitted(TrialId{0}) == 3);
    CHECK(s.admission.held(TrialId{0}) == nullptr);
}

TEST_CASE("Ends take effect one after the other, in the order in which they came", "[tuner]") {
    Scene s({TrialPhase::waiting, TrialPhase::waiting, TrialPhase::waiting});
    CHECK(s.next().empty());
    s.ended(2, AttemptOutcome::failed, false, {"no GPU"});
    s.ended(0, AttemptOutcome::finished);
    s.ended(1, AttemptOutcome::lost);
    CHECK(s.next() == "#2 failed: no GPU");
    CHECK(s.next() == "#2 failed: no GPU"); // asking changes nothing
    s.closed(0);                            // in between, for another reason
    s.closed(2);
    CHECK(s.next() == "#1 lost");
    s.closed(1);
    CHECK(s.next().empty());
}

TEST_CASE("An attempt whose trial goes on, or can go on, is no end", "[tuner]") {
    Scene s({TrialPhase::waiting});
    s.ended(0, AttemptOutcome::failed, true);
    CHECK(s.next().empty());
    s.ended(0, AttemptOutcome::paused);
    CHECK(s.next().empty());
    s.ended(0, AttemptOutcome::unreachable); // the study ends, and the trial goes on in its next start
    CHECK(s.next().empty());
    CHECK(s.admission.wants_ranks(TrialId{0}));
}

TEST_CASE("A host out of service, and a new incarnation, take ends back", "[tuner]") {
    Scene s({TrialPhase::waiting, TrialPhase::waiting, TrialPhase::waiting});
    for (const std::uint32_t trial : {0U, 1U, 2U}) s.ended(trial, AttemptOutcome::failed);
    s.admission.apply(study::HostRetired{"a", {}, {TrialId{0}, TrialId{2}}});
    CHECK(s.next() == "#1 failed");
    CHECK(s.admission.wants_ranks(TrialId{0}));
    s.admission.apply(study::IncarnationBegan{});
    CHECK(s.next().empty());
}

TEST_CASE("Nothing new begins before all ends have taken effect", "[tuner]") {
    Scene s({TrialPhase::waiting});
    CHECK(s.admission.room() == Room::by_ranks);
    s.ended(0, AttemptOutcome::failed);
    CHECK(s.admission.room() == Room::none);
    s.closed(0);
    CHECK(s.admission.room() == Room::by_ranks);
}

TEST_CASE("Waiting trials want ranks, lower numbers first, unless their end is about to take effect", "[tuner]") {
    Scene s({TrialPhase::waiting, TrialPhase::running, TrialPhase::waiting, TrialPhase::paused, TrialPhase::waiting});
    CHECK(s.line() == std::vector<std::uint32_t>{0, 2, 4});
    CHECK(s.line(2) == std::vector<std::uint32_t>{0, 2}); // until `visit` returned false
    CHECK(s.admission.wants_ranks(TrialId{2}));
    CHECK_FALSE(s.admission.wants_ranks(TrialId{1}));
    CHECK_FALSE(s.admission.wants_ranks(TrialId{3}));
    s.ended(2, AttemptOutcome::failed);
    CHECK_FALSE(s.admission.wants_ranks(TrialId{2}));
    CHECK(s.admission.wants_ranks(TrialId{4}));
}

TEST_CASE("A trial is under way while it waits or runs, also before its ranks are back", "[tuner]") {
    for (const TrialPhase phase : {TrialPhase::waiting, TrialPhase::running})
        CHECK(Scene({TrialPhase::paused, phase}).admission.any_active());
    CHECK_FALSE(Scene({TrialPhase::paused, TrialPhase::finished, TrialPhase::stopped, TrialPhase::failed})
                    .admission.any_active());
    CHECK_FALSE(Scene({}).admission.any_active());
    Scene s({});
    s.trials.add(testing::winding_down(TrialPhase::waiting)); // it is to go on from another state
    CHECK(s.admission.any_active());
    CHECK(s.line().empty());
    CHECK_FALSE(s.admission.wants_ranks(TrialId{0}));
    s.trials.end_attempt(TrialId{0});
    CHECK(s.admission.wants_ranks(TrialId{0}));
    s.trials.set_on_hold(TrialId{0}, true);
    CHECK_FALSE(s.admission.any_active());
}

TEST_CASE("No trial is parked, asked to yield or waited for, and later trials may overtake", "[tuner]") {
    Scene s({TrialPhase::running, TrialPhase::waiting});
    CHECK_FALSE(s.admission.is_parked(TrialId{0}));
    CHECK_FALSE(s.admission.keeps_the_line());
    CHECK_FALSE(s.admission.to_yield(TrialId{1}, 1, 0));
    CHECK_FALSE(s.admission.to_yield({}, 1, 0));
    CHECK_FALSE(s.admission.is_leaving(TrialId{0}));
}

TEST_CASE("Nothing is kept between two steps: invariants detect an end that is left over", "[tuner]") {
    Scene s({TrialPhase::waiting});
    CHECK(broken(s.admission).empty());
    s.ended(0, AttemptOutcome::finished);
    CHECK(broken(s.admission) == "an end of an attempt has not taken effect");
    study::Bytes bytes;
    study::Encoder out(bytes);
    s.admission.snapshot(out);
    CHECK(bytes.empty());
    study::Decoder in(bytes);
    s.admission.restore(in);
    CHECK(broken(s.admission).empty());
    CHECK(s.next().empty());
}

} // namespace ranktune::tuner::by_arrival_test
