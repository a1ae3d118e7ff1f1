// SPDX-License-Identifier: Apache-2.0
// Checkpoints of running trials: when they are due, how they are written beside the training, and that all ranks agree.

#include <algorithm>
#include <cmath>
#include <future>

#include "drivers/group/checkpoint_clock.hpp"
#include "drivers/group/checkpoint_writer.hpp"
#include "drivers/trial_cluster.hpp"
#include "support/catch.hpp"

namespace ranktune::drivers::testing {
namespace {

using study::AttemptOutcome;
using study::CheckpointSpec;
using Interval = CheckpointSpec::Interval;

CheckpointSpec spec_of(Interval interval) {
    CheckpointSpec spec;
    spec.interval = interval;
    spec.iterations = 3;
    spec.time = std::chrono::seconds(60);
    return spec;
}

/// Holds one number, the same on all ranks unless told otherwise.
struct Counting final : trainables::Trainable {
    explicit Counting(int odd_rank) : odd(odd_rank) {}
    void setup(trainables::TrialContext& context) override { rank = context.rank(); }
    trainables::Metrics step(trainables::TrialContext&) override { return {{"value", value += 1.0}}; }
    void save(study::StateSink& sink) const override {
        const double saved = rank == odd ? -value : value;
        sink.put<double>("value", std::span(&saved, 1));
    }
    void load(study::StateSource& source) override { source.get<double>("value", std::span(&value, 1)); }
    int odd;
    int rank = 0;
    double value = 0.0;
};

trainables::Registration counting(int odd_rank = -1) {
    return {any_trainable("counting"), [odd_rank] { return std::make_unique<Counting>(odd_rank); }, {}};
}

std::vector<base::Iteration> iterations_of(const std::vector<study::CheckpointRef>& checkpoints) {
    std::vector<base::Iteration> iterations;
    for (const auto& checkpoint : checkpoints) iterations.push_back(checkpoint.iteration);
    return iterations;
}

} // namespace

TEST_CASE("checkpoints by iterations fall on multiples, wherever the attempt began", "[drivers]") {
    CheckpointClock clock(spec_of(Interval::iterations), 4, 100.0);
    CHECK(!clock.due(5, 1e9));
    CHECK(clock.due(6, 100.0));
    CHECK(clock.due(7, 100.0)); // the one before was still being written
    clock.taken(7, 100.0);
    CHECK(!clock.due(8, 100.0));
    CHECK(clock.due(9, 100.0));
}

TEST_CASE("checkpoints by time count training time", "[drivers]") {
    CheckpointClock clock(spec_of(Interval::time), 0, 100.0);
    CHECK(!clock.due(1000, 159.9));
    CHECK(clock.due(1001, 160.0));
    clock.taken(1001, 161.0);
    CHECK(!clock.due(1002, 220.0));
    CHECK(clock.due(1003, 221.0));
}

TEST_CASE("automatic checkpoints follow Young's optimum, and leave the disk nine tenths of the time", "[drivers]") {
    CheckpointClock clock(spec_of(Interval::automatic), 0, 0.0);
    clock.measured(2.0, 3.0);
    CHECK(*clock.interval_s() == Approx(std::sqrt(2.0 * 2.0 * 86400.0)));
    CHECK(!clock.due(1, 580.0));
    CHECK(clock.due(1, 590.0));
    clock.measured(2.0, 100.0);
    CHECK(*clock.interval_s() == Approx(1000.0));
    clock.measured(0.0, 0.0); // too small to be measured: still not after every iteration
    CHECK(*clock.interval_s() > 10.0);
    CHECK(!CheckpointClock(spec_of(Interval::none), 0, 0.0).due(1'000'000, 1e9));
}

TEST_CASE("a state is written while the caller goes on, and its memory is used again", "[drivers]") {
    std::promise<void> disk;
    std::vector<double> written;
    CheckpointWriter writer([&](const storage::CheckpointKey& key, const study::MemoryState& state) {
        if (written.empty()) disk.get_future().wait();
        if (key.iteration == 2) throw base::Error("no space left on device");
        double value = 0.0;
        study::MemoryState copy = state;
        copy.get<double>("x", std::span(&value, 1));
        written.push_back(value);
        return study::CheckpointRef{key.iteration, "path", state.bytes(), state.digest()};
    });
    const auto put = [&](double value) { writer.fresh_state().put<double>("x", std::span(&value, 1)); };
    CHECK(writer.idle());
    CHECK(!writer.wait());
    put(1.0);
    writer.start({base::TrialId{7}, 1, base::Incarnation{1}, base::Attempt{1}});
    CHECK(!writer.idle());
    CHECK(!writer.take());
    disk.set_value();
    const auto first = writer.wait();
    REQUIRE(first);
    CHECK(first->checkpoint.iteration == 1);
    CHECK(first->error.empty());
    CHECK(writer.idle());
    CHECK(!writer.take());
    CHECK(written == std::vector<double>{1.0});

    put(2.0);
    writer.start({base::TrialId{7}, 2, base::Incarnation{1}, base::Attempt{1}});
    const auto second = writer.wait();
    REQUIRE(second);
    CHECK(second->error == "no space left on device");
    put(3.0);
    writer.start({base::TrialId{7}, 3, base::Incarnation{1}, base::Attempt{1}});
    // Going away now waits for the write.
}

TEST_CASE("a running trial checkpoints at its interval, and every checkpoint is announced in order", "[drivers]") {
    for (const int ranks : {1, 2, 3}) {
        TrialCluster cluster(ranks, counting());
        cluster.spec().checkpoint = spec_of(Interval::iterations);
        cluster.prepare(ranks, 1);
        auto& logs = cluster.run([&](const RunnerReported& report) {
            const auto verb = report.iteration == 20 ? study::Verb::pause : study::Verb::go_on;
            cluster.answer(report.iteration, verb, report.iteration + 1);
        });
        const auto saved = iterations_of(logs[0].saved);
        REQUIRE(saved.size() >= 2);
        CHECK(saved.back() == 20);
        CHECK(std::ranges::is_sorted(saved));
        CHECK(cluster.store().count() == saved.size()); // whatever was written was announced
        for (const auto& log : logs) CHECK(log.ended->outcome == AttemptOutcome::paused);

        // Any of them can be gone on from.
        cluster.prepare(ranks, 21, logs[0].saved.front());
        const auto first = saved.front();
        auto& again = cluster.run_until(21);
        CHECK(again[0].reports[0].iteration == first + 1);
        CHECK(again[0].reports[0].metrics[0].value == static_cast<double>(first + 1));
    }
}

TEST_CASE("a checkpoint on which the ranks do not agree is never announced, and fails the trial", "[drivers]") {
    TrialCluster cluster(3, counting(2));
    cluster.spec().checkpoint = spec_of(Interval::iterations);
    cluster.prepare(3, 1);
    auto& logs = cluster.run([&](const RunnerReported& report) {
        cluster.answer(report.iteration, study::Verb::go_on, report.iteration + 1);
    });
    CHECK(logs[0].saved.empty());
    for (std::size_t r = 0; r < logs.size(); ++r) {
        CHECK(logs[r].ended->outcome == AttemptOutcome::failed);
        CHECK(logs[r].ended->message ==
              "rank " + std::to_string(r) + ": the ranks of the trial hold different parameters at iteration 3");
    }
}

TEST_CASE("training goes on when a checkpoint in between cannot be written", "[drivers]") {
    TrialCluster cluster(2, counting());
    cluster.spec().checkpoint = spec_of(Interval::iterations);
    cluster.store().refuse(true);
    cluster.prepare(2, 1);
    base::Iteration end = 0;
    auto& logs = cluster.run([&](const RunnerReported& report) {
        if (end == 0 && cluster.store().refused() > 0) {
            cluster.store().refuse(false); // room was made
            end = report.iteration + 10;
        }
        const auto verb = report.iteration == end ? study::Verb::pause : study::Verb::go_on;
        cluster.answer(report.iteration, verb, report.iteration + 1);
    });
    for (const auto& log : logs) CHECK(log.ended->outcome == AttemptOutcome::paused);
    REQUIRE(!logs[0].saved.empty());
    CHECK(logs[0].saved.back().iteration == end);
}

} // namespace ranktune::drivers::testing
