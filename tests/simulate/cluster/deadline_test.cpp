// SPDX-License-Identifier: Apache-2.0
// Studies longer than their jobs, in virtual time: each job ends on its own before its time is up, and no iteration is
// trained twice.

#include <set>

#include "schedulers/built_in.hpp"
#include "searchers/built_in.hpp"
#include "simulate/cluster/cluster.hpp"
#include "support/catch.hpp"

namespace deadline_test {

using namespace ranktune;
using namespace ranktune::simulate;
using namespace std::chrono_literals;
using study::StudyOutcome;

namespace {

struct Records final : study::RecordSink {
    void append(const std::vector<study::Record>& batch) override { all.insert(all.end(), batch.begin(), batch.end()); }
    std::vector<study::Record> all;
};

struct Series {
    explicit Series(std::uint32_t trials, base::Iteration iterations) {
        spec.name = "longer than its job";
        spec.objective = {"score", study::Mode::max};
        spec.num_trials = trials;
        spec.max_iterations = iterations;
        spec.trainable.name = "curve";
        spec.space = space::SearchSpace({{"lr", space::FloatRange{0.1, 1.0, false, 0.0}, {}}});
        spec.searcher = searchers::chosen("random");
        spec.scheduler = schedulers::chosen("fifo");
        tuner = std::make_unique<tuner::Tuner>(spec);
        tuner::Output created;
        tuner->create("uuid", "[study]\n", "sim", created);
        options.workers = 2;
        options.curve.min_iteration = 1s;
        options.curve.max_iteration = 5s;
        options.curve.max_save = 3s;
    }
    /// The next job. As under Slurm, the core is told a deadline that leaves a tenth of the time free.
    ClusterResult life(base::Duration length) {
        options.incarnation = base::Incarnation(++lives);
        options.deadline = length - length / 10;
        auto result = run_cluster(options, *tuner, records, files);
        for (const auto& problem : result.problems) UNSCOPED_INFO(problem);
        CHECK(result.problems.empty());
        return result;
    }
    [[nodiscard]] base::Iteration reached() const {
        base::Iteration sum = 0;
        for (const auto& trial : tuner->state().trials) sum += trial.iteration;
        return sum;
    }

    study::StudySpec spec;
    std::unique_ptr<tuner::Tuner> tuner;
    ClusterOptions options;
    Records records;
    std::set<std::string> files;
    std::uint32_t lives = 0;
};

} // namespace

TEST_CASE("A study of many jobs ends each of them in time and trains nothing twice", "[sim]") {
    for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U}) {
        Series series(6, 20);
        series.options.seed = seed;
        StudyOutcome outcome = StudyOutcome::resumable;
        while (outcome == StudyOutcome::resumable && series.lives < 60) {
            const auto result = series.life(40s);
            REQUIRE(result.head);
            outcome = result.head->outcome;
            INFO("seed " << seed << ", life " << series.lives << ": " << result.head->message);
            CHECK(result.elapsed < 40s);
            if (outcome == StudyOutcome::resumable) CHECK(result.head->message.starts_with("deadline: "));
        }
        CHECK(outcome == StudyOutcome::ok);
        CHECK(series.lives > 3);
        CHECK(series.tuner->state().iterations == series.reached());
    }
}

TEST_CASE("An iteration that does not fit into a job is tried once, and waits for a longer job", "[sim]") {
    Series series(4, 3);
    series.options.curve.min_iteration = series.options.curve.max_iteration = 100s;
    for (std::uint32_t rank = 0; rank <= 2; ++rank) series.options.deaths.emplace_back(base::Rank(rank), 60s);
    CHECK_FALSE(series.life(60s).head); // killed in the first iterations
    series.options.deaths.clear();

    auto result = series.life(60s);
    REQUIRE(result.head);
    CHECK(result.head->outcome == StudyOutcome::resumable);
    CHECK(result.attempts == 0);
    CHECK(result.elapsed < 5s);

    result = series.life(1h);
    REQUIRE(result.head);
    CHECK(result.head->outcome == StudyOutcome::ok);
    CHECK(result.elapsed > 300s);
}

TEST_CASE("Without a deadline, or with a far one, a study runs unchanged", "[sim]") {
    Series plain(4, 9);
    plain.options.incarnation = base::Incarnation(1);
    const auto undisturbed = run_cluster(plain.options, *plain.tuner, plain.records, plain.files);
    Series far(4, 9);
    const auto result = far.life(100h);
    REQUIRE(undisturbed.head);
    REQUIRE(result.head);
    CHECK(result.head->outcome == StudyOutcome::ok);
    CHECK(result.elapsed == undisturbed.elapsed);
    CHECK(far.records.all.size() == plain.records.all.size() + 1); // DeadlineSet
}

} // namespace deadline_test
