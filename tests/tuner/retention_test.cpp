// SPDX-License-Identifier: Apache-2.0
// Which checkpoints are kept, which are released, and in which order if there is no room for all.

#include <optional>
#include <string>
#include <vector>

#include "tuner/values.hpp"
#include "tuner/values/retention.hpp"

namespace ranktune::tuner {
namespace {

using testing::broken;
using testing::contradiction;
using testing::in_phase;
using Values = std::vector<std::optional<double>>;

study::StudySpec keeping(std::uint32_t best, std::optional<std::uint64_t> max_bytes = {}, Mode mode = Mode::max) {
    study::StudySpec spec;
    spec.objective = {"score", mode};
    spec.checkpoint.keep = best;
    spec.checkpoint.max_bytes = max_bytes;
    return spec;
}

CheckpointRef checkpoint(Iteration iteration, std::optional<double> value = {}, std::uint64_t bytes = 10) {
    return {iteration, "it" + std::to_string(iteration), bytes, 1, value, {}};
}

/// A trial with checkpoints at 1, 2, 3, ..., of these values.
Trial with(TrialPhase phase, const Values& values) {
    Trial t = in_phase(phase);
    for (std::size_t i = 0; i < values.size(); ++i) t.checkpoints.push_back(checkpoint(i + 1, values[i]));
    return t;
}

/// The iterations of the checkpoints that are left after all unneeded ones are released, one by one.
std::string kept(Trial t, const study::StudySpec& spec, bool hopeless = false, bool is_result = false) {
    const Retention retention;
    while (const CheckpointRef* next = retention.of_no_use(TrialId{0}, t, spec, hopeless, is_result, false, {}))
        t.checkpoints.erase(t.checkpoints.begin() + (next - t.checkpoints.data()));
    std::string text;
    for (const auto& left : t.checkpoints) text += std::to_string(left.iteration) + " ";
    return text.empty() ? text : text.substr(0, text.size() - 1);
}

/// A paused trial with one checkpoint, that got to `iteration` with `score`.
Trial paused(Iteration iteration, double score) {
    Trial t = in_phase(TrialPhase::paused);
    t.iteration = iteration;
    t.last = score;
    return t;
}

/// What is evicted while there is not enough room, in this order.
std::string evicted(Retention& retention, Trials& trials, const study::StudySpec& spec,
                    std::optional<TrialId> best = {}) {
    std::string text;
    while (const auto next = retention.to_evict(spec, trials, best)) {
        Trial& t = trials.at(*next);
        text += "#" + std::to_string(next->value()) + " ";
        retention.released(t, std::string(t.checkpoints.front().path));
        retention.list(*next, t, spec);
    }
    return text.empty() ? text : text.substr(0, text.size() - 1);
}

} // namespace

TEST_CASE("A trial that may go on keeps its newest two checkpoints, and the best ones", "[tuner]") {
    const Values values = {0.9, 0.1, 0.8, 0.2, 0.3};
    for (const TrialPhase phase : {TrialPhase::waiting, TrialPhase::running}) {
        CHECK(kept(with(phase, values), keeping(0)) == "4 5");
        CHECK(kept(with(phase, values), keeping(1)) == "1 4 5");
        CHECK(kept(with(phase, values), keeping(2)) == "1 3 4 5");
        CHECK(kept(with(phase, values), keeping(9)) == "1 2 3 4 5");
        CHECK(kept(with(phase, values), keeping(1, {}, Mode::min)) == "2 4 5");
    }
    CHECK(kept(with(TrialPhase::running, {0.1, 0.2, 0.3}), keeping(1)) == "2 3"); // the best is one of the newest
    CHECK(kept(with(TrialPhase::running, {0.9, 0.2}), keeping(0)) == "1 2");
}

TEST_CASE("Of checkpoints of the same value the newer one is the better, and one without a value is the worst",
          "[tuner]") {
    CHECK(kept(with(TrialPhase::running, {0.5, 0.5, {}, 0.1, 0.1}), keeping(1)) == "2 4 5");
    CHECK(kept(with(TrialPhase::running, {{}, 0.1, {}, {}, {}}), keeping(2)) == "2 4 5");
    const Trial t = with(TrialPhase::running, {0.5, {}, 0.5, 0.1});
    REQUIRE(best_checkpoint(t, {"score", Mode::max}) != nullptr);
    CHECK(best_checkpoint(t, {"score", Mode::max})->iteration == 3);
    CHECK(best_checkpoint(t, {"score", Mode::min})->iteration == 4);
    CHECK(best_checkpoint(with(TrialPhase::running, {{}, {}}), {"score", Mode::max})->iteration == 2);
    CHECK(best_checkpoint(with(TrialPhase::running, {}), {"score", Mode::max}) == nullptr);
}

TEST_CASE("A paused trial keeps the newest two as long as it may be promoted", "[tuner]") {
    const Values values = {0.9, 0.1, 0.8, 0.2};
    CHECK(kept(with(TrialPhase::paused, values), keeping(1)) == "3 4");
    CHECK(kept(with(TrialPhase::paused, values), keeping(1), true).empty());
    CHECK(kept(with(TrialPhase::paused, values), keeping(1), true, true) == "1"); // the study's result
    CHECK(kept(with(TrialPhase::paused, values), keeping(2), false, true) == "1 3 4");
}

TEST_CASE("A trial that is over keeps what the study's result needs, and a failed one its newest", "[tuner]") {
    const Values values = {0.9, 0.1, 0.8, 0.2};
    for (const TrialPhase phase : {TrialPhase::finished, TrialPhase::stopped}) {
        CHECK(kept(with(phase, values), keeping(3)).empty());
        CHECK(kept(with(phase, values), keeping(2), false, true) == "1 3");
        CHECK(kept(with(phase, values), keeping(0), false, true).empty());
    }
    CHECK(kept(with(TrialPhase::failed, values), keeping(1)) == "4");
    CHECK(kept(with(TrialPhase::failed, values), keeping(1), false, true) == "1 4");
}

TEST_CASE("The bytes of all checkpoints are those committed and not released", "[tuner]") {
    Retention retention;
    Trials trials;
    trials.add(in_phase(TrialPhase::running));
    Trial& t = trials.at(TrialId{0});
    CHECK_FALSE(retention.ever_saved());
    retention.committed(t, checkpoint(1, 0.5, 100));
    retention.committed(t, checkpoint(2, 0.6, 20));
    CHECK(retention.ever_saved());
    CHECK(retention.bytes() == 120);
    REQUIRE(t.checkpoints.size() == 2);
    CHECK(t.checkpoints[1] == checkpoint(2, 0.6, 20));
    retention.released(t, "it1");
    CHECK(retention.bytes() == 20);
    CHECK(t.checkpoints.front().iteration == 2);
    CHECK(contradiction([&] { retention.released(t, "it1"); }) == "checkpoint it1 is released but was never committed");
    retention.released(t, "it2");
    CHECK(retention.bytes() == 0);
    CHECK(retention.ever_saved());
}

TEST_CASE("Without room, the trial that is cheapest to train again goes first, then the worst, then the newer one",
          "[tuner]") {
    const study::StudySpec spec = keeping(1, 0);
    Retention retention;
    Trials trials;
    for (const auto& t : {paused(3, 0.9), paused(1, 0.5), paused(1, 0.4), paused(1, 0.5), paused(3, 0.8)})
        trials.add(t);
    for (std::uint32_t i = 0; i < trials.size(); ++i) retention.committed(trials.at(TrialId{i}), checkpoint(1));
    retention.list_all(trials, spec);
    CHECK(broken(retention, trials, spec).empty());
    CHECK(evicted(retention, trials, spec) == "#2 #3 #1 #4 #0");
    CHECK(retention.bytes() == 0);
}

TEST_CASE("A value that is not finite is the worst of its iteration", "[tuner]") {
    const study::StudySpec spec = keeping(1, 0, Mode::min);
    Retention retention;
    Trials trials;
    for (const double value : {0.1, not_a_number, 0.2}) trials.add(paused(1, value));
    for (std::uint32_t i = 0; i < trials.size(); ++i) retention.committed(trials.at(TrialId{i}), checkpoint(1));
    retention.list_all(trials, spec);
    CHECK(evicted(retention, trials, spec) == "#1 #2 #0");
}

TEST_CASE("No more is evicted than necessary, and never the study's result", "[tuner]") {
    Retention retention;
    Trials trials;
    for (const double score : {0.1, 0.2, 0.3, 0.4}) trials.add(paused(1, score));
    for (std::uint32_t i = 0; i < trials.size(); ++i) retention.committed(trials.at(TrialId{i}), checkpoint(1)); // 40
    const auto evict = [&](std::optional<std::uint64_t> max_bytes, std::optional<TrialId> best = {}) {
        Retention again = retention;
        Trials table = trials;
        const study::StudySpec spec = keeping(1, max_bytes);
        again.list_all(table, spec);
        return evicted(again, table, spec, best);
    };
    CHECK(evict({}).empty());
    CHECK(evict(40).empty());
    CHECK(evict(39) == "#0");
    CHECK(evict(15) == "#0 #1 #2");
    CHECK(evict(0, TrialId{0}) == "#1 #2 #3"); // the best trial
    retention.keep(TrialId{1});                // the one that saved when it was the best
    CHECK(retention.keeper() == TrialId{1});
    CHECK(evict(0, TrialId{0}) == "#2 #3");
}

TEST_CASE("Second checkpoints go before any trial loses its only one", "[tuner]") {
    const study::StudySpec spec = keeping(1, 0);
    Retention retention;
    Trials trials;
    for (const double score : {0.1, 0.2, 0.3}) trials.add(paused(2, score));
    for (std::uint32_t i = 0; i < trials.size(); ++i) retention.committed(trials.at(TrialId{i}), checkpoint(1));
    for (const std::uint32_t i : {1U, 2U}) retention.committed(trials.at(TrialId{i}), checkpoint(2));
    retention.list_all(trials, spec);
    CHECK(evicted(retention, trials, spec) == "#1 #2 #0 #1 #2");
}

TEST_CASE("What is left of trials that are over is evicted first, unless it is wanted", "[tuner]") {
    const study::StudySpec spec = keeping(1, 0);
    Retention retention;
    Trials trials;
    for (const Iteration iteration : {2, 9, 8}) trials.add(paused(iteration, 0.5));
    for (const std::uint32_t id : {0U, 0U, 1U, 2U}) retention.committed(trials.at(TrialId{id}), checkpoint(1));
    for (const std::uint32_t id : {1U, 2U}) trials.set_phase(TrialId{id}, TrialPhase::finished);
    for (std::uint32_t id = 0; id < trials.size(); ++id) retention.list(TrialId{id}, trials[TrialId{id}], spec);
    CHECK(broken(retention, trials, spec).empty());
    CHECK(retention.to_evict(spec, trials, {}, [](TrialId id) { return id != TrialId{1}; }) == TrialId{1});
    CHECK(retention.to_evict(spec, trials, {}, [](TrialId id) { return id != TrialId{0}; }) == TrialId{0});
    CHECK(evicted(retention, trials, spec) == "#2 #1 #0 #0");
}

TEST_CASE("Only trials that are paused or over, and have a checkpoint, are evicted", "[tuner]") {
    const study::StudySpec spec = keeping(1, 0);
    Retention retention;
    Trials trials;
    for (int i = 0; i < 2; ++i) trials.add(in_phase(TrialPhase::running));
    const auto list = [&](std::uint32_t id) { retention.list(TrialId{id}, trials[TrialId{id}], spec); };
    retention.committed(trials.at(TrialId{0}), checkpoint(1));
    list(0);
    CHECK_FALSE(retention.to_evict(spec, trials, {})); // it runs
    trials.set_phase(TrialId{0}, TrialPhase::paused);
    list(0);
    CHECK_FALSE(retention.to_evict(spec, trials, {})); // its group may be about to save
    trials.set_phase(TrialId{1}, TrialPhase::paused);  // has none
    for (const std::uint32_t id : {0U, 1U}) {
        trials.end_attempt(TrialId{id});
        list(id);
    }
    CHECK(retention.to_evict(spec, trials, {}) == TrialId{0});
    trials.set_phase(TrialId{0}, TrialPhase::waiting); // promoted
    list(0);
    CHECK_FALSE(retention.to_evict(spec, trials, {}));
    CHECK(broken(retention, trials, spec).empty());
}

TEST_CASE("Retention comes back from its snapshot, and its list from the trials", "[tuner]") {
    const study::StudySpec spec = keeping(1, 5);
    Retention retention;
    Trials trials;
    for (const double score : {0.3, 0.1, 0.2}) trials.add(paused(1, score));
    for (std::uint32_t i = 0; i < trials.size(); ++i) {
        retention.committed(trials.at(TrialId{i}), checkpoint(1));
        retention.list(TrialId{i}, trials[i], spec);
    }
    retention.keep(TrialId{1});
    const auto bytes_of = [](const Retention& one) { return testing::written(one); };
    Retention again;
    testing::read_back(bytes_of(retention), again);
    again.list_all(trials, spec);
    CHECK(bytes_of(again) == bytes_of(retention));
    CHECK(again.keeper() == TrialId{1});
    CHECK(again.bytes() == 30);
    CHECK(again.ever_saved());
    CHECK(again.to_evict(spec, trials, {}) == TrialId{2});
    CHECK(again.to_evict(spec, trials, {}) == retention.to_evict(spec, trials, {}));
    CHECK(broken(again, trials, spec).empty());
}

TEST_CASE("Invariants detect changes without a call of Retention", "[tuner]") {
    const study::StudySpec spec = keeping(1, 5);
    Retention retention;
    Trials trials;
    trials.add(paused(1, 0.3));
    retention.committed(trials.at(TrialId{0}), checkpoint(1));
    retention.list(TrialId{0}, trials[0], spec);
    CHECK(broken(retention, trials, spec).empty());
    SECTION("bytes") {
        trials.at(TrialId{0}).checkpoints.clear();
        CHECK(broken(retention, trials, spec) == "the bytes of all checkpoints are off");
    }
    SECTION("the list") {
        trials.set_phase(TrialId{0}, TrialPhase::waiting);
        CHECK(broken(retention, trials, spec) ==
              "the list of trials whose checkpoints may go is not what a restored head would make");
    }
    SECTION("the list, when a trial's place on it changes") {
        trials.at(TrialId{0}).iteration = 2;
        CHECK(broken(retention, trials, spec) ==
              "the list of trials whose checkpoints may go is not what a restored head would make");
    }
}

} // namespace ranktune::tuner
