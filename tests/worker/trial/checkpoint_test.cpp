// SPDX-License-Identifier: Apache-2.0
// Checkpoints of running trials: when they are due, how they are written during training, and that all ranks agree.

#include <algorithm>
#include <cmath>
#include <future>
#include <stdexcept>

#include "support/catch.hpp"
#include "worker/checkpoints/checkpoint_clock.hpp"
#include "worker/checkpoints/checkpoint_writer.hpp"
#include "worker/trial/trial_cluster.hpp"

namespace ranktune::testing::checkpoint_test {

using namespace ranktune::worker;
namespace {

using namespace std::chrono_literals;
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
    explicit Counting(int odd_rank, double throws_at = 0.0) : odd(odd_rank), fatal(throws_at) {}
    void setup(trainables::TrialContext& context) override { rank = context.rank(); }
    trainables::Metrics step(trainables::TrialContext&) override {
        if (value + 1.0 == fatal) throw std::runtime_error("on purpose");
        return {{"value", value += 1.0}};
    }
    void save(study::StateSink& sink) const override {
        const double saved = rank == odd ? -value : value;
        sink.put<double>("value", std::span(&saved, 1));
    }
    void load(study::StateSource& source) override { source.get<double>("value", std::span(&value, 1)); }
    int odd;
    double fatal;
    int rank = 0;
    double value = 0.0;
};

trainables::Registration counting(int odd_rank = -1, double throws_at = 0.0) {
    return {any_trainable("counting"), [=] { return std::make_unique<Counting>(odd_rank, throws_at); }, {}};
}

std::vector<base::Iteration> iterations_of(const std::vector<study::CheckpointRef>& checkpoints) {
    std::vector<base::Iteration> iterations;
    for (const auto& checkpoint : checkpoints) iterations.push_back(checkpoint.iteration);
    return iterations;
}

} // namespace

TEST_CASE("checkpoints by iterations fall on multiples, wherever the attempt began", "[trial]") {
    CheckpointClock clock(spec_of(Interval::iterations), 24h, 4, 100.0);
    CHECK(!clock.due(5, 1e9, {}));
    CHECK(clock.due(6, 100.0, {}));
    CHECK(clock.due(7, 100.0, {})); // still due: the previous one was being written
    clock.taken(7, 100.0);
    CHECK(!clock.due(8, 100.0, {}));
    CHECK(clock.due(9, 100.0, {}));
}

TEST_CASE("checkpoints by time count training time", "[trial]") {
    CheckpointClock clock(spec_of(Interval::time), 24h, 0, 100.0);
    CHECK(!clock.due(1000, 159.9, {}));
    CHECK(clock.due(1001, 160.0, {}));
    clock.taken(1001, 161.0);
    CHECK(!clock.due(1002, 220.0, {}));
    CHECK(clock.due(1003, 221.0, {}));
}

TEST_CASE("automatic checkpoints follow Young's optimum, and leave the disk nine tenths of the time", "[trial]") {
    CheckpointClock clock(spec_of(Interval::automatic), 24h, 0, 0.0);
    clock.measured(2.0, 3.0);
    CHECK(*clock.interval_s() == Approx(std::sqrt(2.0 * 2.0 * 86400.0)));
    CHECK(!clock.due(1, 580.0, {}));
    CHECK(clock.due(1, 590.0, {}));
    clock.measured(2.0, 100.0);
    CHECK(*clock.interval_s() == Approx(1000.0));
    clock.measured(0.0, 0.0); // too small to be measured: still not after every iteration
    CHECK(*clock.interval_s() > 10.0);
    CheckpointClock on_a_bad_day(spec_of(Interval::automatic), 1h, 0, 0.0);
    on_a_bad_day.measured(2.0, 3.0);
    CHECK(*on_a_bad_day.interval_s() == Approx(std::sqrt(2.0 * 2.0 * 3600.0)));
    CHECK(!CheckpointClock(spec_of(Interval::none), 24h, 0, 0.0).due(1'000'000, 1e9, {}));
}

TEST_CASE("checkpoints for the best report take a tenth of the training time at most, and a few seconds", "[trial]") {
    CheckpointClock clock(spec_of(Interval::automatic), 24h, 4, 100.0);
    CHECK(clock.affords_more(100.0));
    clock.measured(0.5, 4.0);
    CHECK(clock.affords_more(100.0));
    clock.measured(60.0, 2.0);
    CHECK(!clock.affords_more(100.0));
    CHECK(!clock.affords_more(689.0));
    CHECK(clock.affords_more(690.0)); // 64 s, less the first 5 s, of 590 s
}

TEST_CASE("checkpoints at rungs are due when a trial was judged there and trains on, in addition to the others",
          "[trial]") {
    using study::Reason;
    using study::Verb;
    CheckpointSpec spec = spec_of(Interval::none);
    spec.at_rungs = true;
    CheckpointClock clock(spec, 24h, 0, 0.0);
    CHECK(!clock.due(1, 1.0, {}));
    CHECK(!clock.due(2, 1.0, {Verb::go_on, Reason::below_rung}));
    CHECK(clock.due(3, 1.0, {Verb::go_on, Reason::in_top}));
    CHECK(clock.due(4, 1.0, {Verb::go_on, Reason::below_rung})); // still due: the previous one was being written
    clock.taken(4, 1.0);
    CHECK(!clock.due(5, 1.0, {Verb::go_on, Reason::below_rung}));
    CHECK(clock.due(9, 1.0, {Verb::go_on, Reason::first_arrival}));
    clock.taken(9, 1.0);
    CHECK(!clock.due(27, 1.0, {Verb::stop, Reason::not_in_top}));
    spec.interval = Interval::iterations;
    CHECK(CheckpointClock(spec, 24h, 0, 0.0).due(6, 1.0, {}));
    spec.at_rungs = false;
    CHECK(!CheckpointClock(spec, 24h, 0, 0.0).due(2, 1.0, {Verb::go_on, Reason::in_top}));
}

TEST_CASE("a trial that passes a rung saves there, and nowhere else, if that is all that was asked for", "[trial]") {
    for (const int ranks : {1, 2}) {
        TrialCluster cluster(ranks, counting());
        cluster.spec().checkpoint = spec_of(Interval::none);
        cluster.spec().checkpoint.at_rungs = true;
        cluster.prepare(ranks, 1);
        // The next rung is reached only when the previous checkpoint is written, however many iterations that takes.
        std::vector<base::Iteration> rungs;
        base::Iteration last = 0;
        auto& logs = cluster.run([&](const RunnerReported& report) {
            const bool written = cluster.logs[0].saved.size() == rungs.size();
            const bool rung = written && rungs.size() < 2 && report.iteration % 3 == 0;
            const bool over = written && rungs.size() == 2 && !rung;
            if (rung) rungs.push_back(report.iteration);
            last = report.iteration;
            cluster.answer(report.iteration, over ? study::Verb::stop : study::Verb::go_on, report.iteration + 1,
                           rung ? study::Reason::in_top : study::Reason::below_rung);
        });
        CHECK(rungs.at(0) == 3);
        CHECK(iterations_of(logs[0].saved) == std::vector<base::Iteration>{3, rungs.at(1), last});
    }
}

TEST_CASE("a state is written while the caller goes on, and its memory is reused", "[trial]") {
    std::promise<void> disk;
    std::vector<double> written;
    CheckpointWriter writer([&](const storage::CheckpointKey& key, const CheckpointIo::State& state) {
        if (written.empty()) disk.get_future().wait();
        if (key.iteration == 2) throw base::Error("no space left on device");
        double value = 0.0;
        study::MemoryState copy = *state;
        copy.get<double>("x", std::span(&value, 1));
        written.push_back(value);
        return study::CheckpointRef{key.iteration, "path", state->bytes(), state->digest()};
    });
    const auto put = [&](double value) { writer.fresh_state()->put<double>("x", std::span(&value, 1)); };
    CHECK(writer.idle());
    CHECK(!writer.wait());
    put(1.0);
    writer.start({base::TrialId{7}, 1, base::Incarnation{1}, base::AttemptId{1}});
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
    writer.start({base::TrialId{7}, 2, base::Incarnation{1}, base::AttemptId{1}});
    const auto second = writer.wait();
    REQUIRE(second);
    CHECK(second->error == "no space left on device");
    put(3.0);
    writer.start({base::TrialId{7}, 3, base::Incarnation{1}, base::AttemptId{1}});
    // The destructor waits for the write.
}

TEST_CASE("a running trial checkpoints at its interval, and every checkpoint is announced in order", "[trial]") {
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
        CHECK(cluster.store().count() == saved.size()); // every written checkpoint was announced
        for (const auto& log : logs) CHECK(log.ended->outcome == AttemptOutcome::paused);

        // The trial can resume from any of them.
        cluster.prepare(ranks, 21, logs[0].saved.front());
        const auto first = saved.front();
        auto& again = cluster.run_until(21);
        CHECK(again[0].reports[0].iteration == first + 1);
        CHECK(again[0].reports[0].metrics[0].value == static_cast<double>(first + 1));
    }
}

TEST_CASE("a trial takes over the state of another one, and keeps counting its own iterations", "[trial]") {
    for (const int ranks : {1, 3}) {
        TrialCluster cluster(ranks, counting());
        cluster.prepare(ranks, 7);
        const auto donor = cluster.run_until(7)[0].saved.back();
        auto& start = cluster.prepare(ranks, 4, study::Donor{base::TrialId{0}, donor});
        start.trial = base::TrialId{5};
        start.iteration = 3;
        start.generation = 1;
        auto& logs = cluster.run_until(4);
        CHECK(logs[0].reports[0].iteration == 4);
        CHECK(logs[0].reports[0].metrics[0].value == 8.0); // the donor trained 7
        CHECK(logs[0].saved.back().iteration == 4);
        for (const auto& log : logs) CHECK(log.ended->outcome == AttemptOutcome::paused);
    }
}

TEST_CASE("a checkpoint on which the ranks do not agree is never announced, and fails the trial", "[trial]") {
    TrialCluster cluster(3, counting(2));
    cluster.spec().checkpoint = spec_of(Interval::iterations);
    cluster.prepare(3, 1);
    auto& logs = cluster.run([&](const RunnerReported& report) {
        cluster.answer(report.iteration, study::Verb::go_on, report.iteration + 1);
    });
    CHECK(logs[0].saved.empty());
    for (std::uint32_t r = 0; r < logs.size(); ++r) {
        CHECK(logs[r].ended->outcome == AttemptOutcome::failed);
        CHECK(logs[r].ended->failure ==
              study::Failure{"the ranks of the trial hold different parameters at iteration 3", r});
    }
}

TEST_CASE("a throw with a checkpoint in flight leaves no unknown file", "[trial]") {
    for (const int ranks : {1, 2, 3}) {
        for (const bool in_shards : {false, true}) {
            // Taken after iteration 3; the next step throws.
            auto trainable = counting(-1, 4.0);
            trainable.info.sharded = in_shards;
            TrialCluster cluster(ranks, trainable);
            cluster.spec().checkpoint = spec_of(Interval::iterations);
            cluster.prepare(ranks, 1);
            auto& logs = cluster.run([&](const RunnerReported& report) {
                cluster.answer(report.iteration, study::Verb::go_on, report.iteration + 1);
            });
            INFO(ranks << (in_shards ? " shards" : " ranks"));
            CHECK(logs[0].ended->outcome == AttemptOutcome::failed);
            // A single rank needs no comparison: the retry goes on from there.
            CHECK(logs[0].saved.size() == (ranks == 1 ? 1 : 0));
            CHECK(cluster.store().count() == logs[0].saved.size());
        }
    }
}

TEST_CASE("training goes on when a checkpoint on the way cannot be written", "[trial]") {
    TrialCluster cluster(2, counting());
    cluster.spec().checkpoint = spec_of(Interval::iterations);
    cluster.store().refuse(true);
    cluster.prepare(2, 1);
    base::Iteration end = 0;
    auto& logs = cluster.run([&](const RunnerReported& report) {
        if (end == 0 && cluster.store().refused() > 0) {
            cluster.store().refuse(false); // there is space again
            end = report.iteration + 10;
        }
        const auto verb = report.iteration == end ? study::Verb::pause : study::Verb::go_on;
        cluster.answer(report.iteration, verb, report.iteration + 1);
    });
    for (const auto& log : logs) CHECK(log.ended->outcome == AttemptOutcome::paused);
    CHECK(!logs[0].unsaved.empty()); // the head is told of each
    REQUIRE(!logs[0].saved.empty());
    CHECK(logs[0].saved.back().iteration == end);
}

namespace {

/// A vector of 7 numbers in parts, and one number that all ranks hold; every step adds 1 to each.
struct Sharded final : trainables::Trainable {
    static constexpr std::uint64_t rows = 7;
    void setup(trainables::TrialContext& context) override {
        const auto ranks = static_cast<std::uint64_t>(context.size());
        const auto rank = static_cast<std::uint64_t>(context.rank());
        first = rows * rank / ranks;
        mine.assign(rows * (rank + 1) / ranks - first, 0.0);
        for (std::uint64_t i = 0; i < mine.size(); ++i) mine[i] = 100.0 * static_cast<double>(first + i);
    }
    trainables::Metrics step(trainables::TrialContext& context) override {
        for (double& number : mine) ++number;
        double sum = 0.0;
        for (const double number : mine) sum += number;
        return {{"value", same += 1.0}, {"sum", context.group().reduced(sum)}};
    }
    void save(study::StateSink& sink) const override {
        sink.put<double>("same", std::span(&same, 1));
        sink.put_rows<double>("parts", mine, {rows}, first, mine.size());
    }
    void load(study::StateSource& source) override {
        source.get<double>("same", std::span(&same, 1));
        source.get_rows<double>("parts", mine, {rows}, first, mine.size());
    }
    std::uint64_t first = 0;
    std::vector<double> mine;
    double same = 0.0;
};

trainables::Registration sharded(bool says_so = true) {
    auto info = any_trainable("sharded");
    info.sharded = says_so;
    return {info, [] { return std::make_unique<Sharded>(); }, {}};
}

double metric_of(const RunnerReported& report, const std::string& name) {
    for (const auto& metric : report.metrics)
        if (metric.name == name) return metric.value;
    return -1.0;
}

/// The sum of Sharded after `iteration`: 100 (0 + 1 + ... + 6), plus 7 per step.
double sum_after(base::Iteration iteration) { return 2100.0 + 7.0 * static_cast<double>(iteration); }

} // namespace

TEST_CASE("a sharded trial saves from every rank, and goes on from it on any number of ranks", "[trial]") {
    for (const int ranks : {1, 2, 3}) {
        TrialCluster cluster(3, sharded());
        cluster.spec().checkpoint = spec_of(Interval::iterations);
        cluster.spec().objective.metric = "value";
        cluster.prepare(ranks, 1);
        std::vector<study::CheckpointRef> saved;
        {
            auto& logs = cluster.run([&](const RunnerReported& report) {
                const auto verb = report.iteration == 10 ? study::Verb::pause : study::Verb::go_on;
                cluster.answer(report.iteration, verb, report.iteration + 1);
            });
            saved = logs[0].saved;
            for (int r = 0; r < ranks; ++r)
                CHECK(logs[static_cast<std::size_t>(r)].ended->outcome == AttemptOutcome::paused);
        }
        REQUIRE(saved.size() >= 2);
        CHECK(saved.back().iteration == 10);
        CHECK(saved.back().value == 10.0);
        for (const auto& checkpoint : saved) CHECK(checkpoint.shards.size() == static_cast<std::size_t>(ranks));
        CHECK(cluster.store().count() == saved.size() * static_cast<std::size_t>(ranks));
        for (const int others : {1, 2, 3}) {
            for (const auto& from : {saved.front(), saved.back()}) {
                cluster.prepare(others, from.iteration + 1, from);
                auto& again = cluster.run_until(from.iteration + 1);
                REQUIRE(!again[0].reports.empty());
                CHECK(again[0].reports[0].iteration == from.iteration + 1);
                CHECK(metric_of(again[0].reports[0], "value") == static_cast<double>(from.iteration + 1));
                CHECK(metric_of(again[0].reports[0], "sum") == sum_after(from.iteration + 1));
            }
        }
    }
}

TEST_CASE("a shard that cannot be written removes the others, and training goes on", "[trial]") {
    TrialCluster cluster(3, sharded());
    cluster.spec().checkpoint = spec_of(Interval::iterations);
    cluster.store().refuse_shard(1);
    cluster.prepare(3, 1);
    base::Iteration end = 0;
    auto& logs = cluster.run([&](const RunnerReported& report) {
        if (end == 0 && cluster.store().refused() > 0 && cluster.store().count() == 0 && report.iteration > 5) {
            cluster.store().refuse_shard(std::nullopt);
            end = report.iteration + 10;
        }
        const auto verb = report.iteration == end ? study::Verb::pause : study::Verb::go_on;
        cluster.answer(report.iteration, verb, report.iteration + 1);
    });
    for (const auto& log : logs) CHECK(log.ended->outcome == AttemptOutcome::paused);
    REQUIRE(!logs[0].saved.empty());
    CHECK(logs[0].saved.back().iteration == end);
}

TEST_CASE("a sharded trial that cannot write its last checkpoint says which rank could not", "[trial]") {
    TrialCluster cluster(3, sharded());
    cluster.spec().checkpoint.interval = Interval::none;
    cluster.store().refuse_shard(2);
    cluster.prepare(3, 1);
    auto& logs = cluster.run([&](const RunnerReported& report) {
        cluster.answer(report.iteration, report.iteration == 4 ? study::Verb::pause : study::Verb::go_on,
                       report.iteration + 1);
    });
    CHECK(logs[0].ended->outcome == AttemptOutcome::unsaved);
    CHECK(logs[0].ended->failure == study::Failure{"no space left on device", 2});
    CHECK(cluster.store().count() == 0);
}

TEST_CASE("a sharded trial whose checkpoint lacks a shard keeps the others", "[trial]") {
    TrialCluster cluster(2, sharded());
    study::CheckpointRef lost{5, "checkpoints/0/5-1.1.h5", 10, 20};
    lost.shards = {1, 2};
    cluster.prepare(2, 6, lost);
    auto& logs = cluster.run([](const RunnerReported&) {});
    CHECK(logs[0].ended->outcome == AttemptOutcome::unreachable);
    CHECK(logs[0].ended->failure == study::Failure{"no checkpoint checkpoints/0/5-1.1.0.h5", 0});
}

TEST_CASE("the best report of the study so far has a checkpoint, however fast the iterations are", "[trial]") {
    for (const int ranks : {1, 2}) {
        for (const bool shards : {false, true}) {
            TrialCluster cluster(ranks, shards ? sharded() : counting());
            cluster.spec().objective = {"value", study::Mode::max};
            cluster.prepare(ranks, 99).to_beat = 4.0;
            auto& logs = cluster.run([&](const RunnerReported& report) {
                if (report.iteration == 9)
                    cluster.thread(0).interrupt({study::Verb::discard, study::Reason::none, 0, 0});
            });
            const auto saved = iterations_of(logs[0].saved);
            const auto reported = static_cast<base::Iteration>(logs[0].reports.size());
            REQUIRE(reported >= 9);
            for (base::Iteration iteration = 5; iteration < reported - 1; ++iteration)
                CHECK(std::ranges::count(saved, iteration) == 1);
            CHECK(std::ranges::count(saved, 4) == 0);
        }
    }
}

TEST_CASE("saving in parts without `sharded` fails the trial and names the remedy", "[trial]") {
    TrialCluster cluster(2, sharded(false));
    cluster.spec().checkpoint = spec_of(Interval::iterations);
    cluster.prepare(2, 1);
    auto& logs = cluster.run([&](const RunnerReported& report) {
        cluster.answer(report.iteration, study::Verb::go_on, report.iteration + 1);
    });
    CHECK(logs[0].ended->outcome == AttemptOutcome::failed);
    CHECK(logs[0].ended->failure.message.find("sharded = true") != std::string::npos);
}

} // namespace ranktune::testing::checkpoint_test
