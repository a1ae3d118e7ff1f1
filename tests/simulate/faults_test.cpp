// SPDX-License-Identifier: Apache-2.0
// Failures and walltime in virtual time.

#include "simulate/faults.hpp"

#include <string>

#include "ranktune/base/error.hpp"
#include "ranktune/study/codec.hpp"
#include "setups.hpp"
#include "support/catch.hpp"
#include "tuner/tuner.hpp"

namespace faults_test {

using namespace ranktune;
using namespace ranktune::simulate;
using simulate::testing::exact;
using simulate::testing::spec;
using simulate::testing::Twin;

namespace {

constexpr const char* fifo = "[scheduler]\ntype = \"fifo\"\n";
constexpr const char* asha = "[scheduler]\ntype = \"asha\"\neta = 3\n";
constexpr const char* pbt = "[scheduler]\ntype = \"pbt\"\ninterval = 3\n[scheduler.explore]\nx = [0.8, 1.2]\n";

Figures run(const Setup& setup, Twin& twin) {
    const Figures figures = simulate::simulate(setup, "uuid", "test", &twin);
    twin.tuner.check_invariants();
    return figures;
}

} // namespace

TEST_CASE("a study longer than its walltime goes on in further jobs", "[simulate]") {
    Setup setup{spec("num_trials = 8\nmax_iterations = 100", fifo), exact(), 4};
    setup.faults.walltime_s = 60.0;
    setup.faults.wait_s = 1000.0;
    Twin twin(setup.spec);
    const Figures figures = run(setup, twin);
    CHECK(figures.outcome == study::StudyOutcome::ok);
    CHECK(twin.tuner.state().in(study::TrialPhase::finished) == 8);
    CHECK(figures.jobs >= 4); // 200 iterations of one second each on every rank
    CHECK(figures.jobs <= 5);
    CHECK(figures.jobs == twin.count<study::IncarnationBegan>());
    CHECK(figures.seconds == Approx(figures.in_jobs_s + (figures.jobs - 1) * 1000.0));
    CHECK(figures.in_jobs_s >= 200.0);
    CHECK(figures.in_jobs_s <= 5 * 60.0);
    CHECK(figures.core_hours == Approx(figures.in_jobs_s * 4 / 3600.0));
    CHECK(figures.repeated_s == 0.0); // trials save before the end
}

TEST_CASE("a job that fails loses what was not saved", "[simulate]") {
    Setup setup{spec("num_trials = 8\nmax_iterations = 100", std::string("[checkpoint]\ninterval = 10\n") + fifo),
                exact(), 4};
    setup.faults.job_mean_s = 50.0;
    Twin twin(setup.spec);
    const Figures figures = run(setup, twin);
    CHECK(figures.outcome == study::StudyOutcome::ok);
    CHECK(twin.tuner.state().in(study::TrialPhase::finished) == 8);
    CHECK(figures.jobs > 2);
    CHECK(figures.repeated_s > 0.0);
    CHECK(figures.repeated_s <= 4 * 10.0 * (figures.jobs - 1)); // ten iterations per rank and failure at most
    CHECK(figures.training_s == Approx(800.0 + figures.repeated_s));
}

TEST_CASE("trials that lose a rank go on elsewhere", "[simulate]") {
    for (const char* ranks : {"ranks = 1", "ranks = 3"}) {
        Setup setup{spec("num_trials = 40\nmax_iterations = 100",
                         std::string("[checkpoint]\ninterval = 10\n[resources]\n") + ranks + "\n" + fifo),
                    exact(), 8};
        setup.faults.rank_mean_s = 3000.0;
        Twin twin(setup.spec);
        const Figures figures = run(setup, twin);
        INFO(ranks);
        CHECK(figures.outcome == study::StudyOutcome::ok);
        CHECK(figures.ranks_lost > 0);
        CHECK(twin.count<study::RankLost>() == figures.ranks_lost);
        CHECK(twin.tuner.state().in(study::TrialPhase::finished) == 40);
        CHECK(figures.repeated_s > 0.0);
        CHECK(figures.seconds > 500.0);
    }
}

TEST_CASE("when all ranks are lost the next job has them again", "[simulate]") {
    Setup setup{spec("num_trials = 20\nmax_iterations = 100", std::string("[checkpoint]\ninterval = 5\n") + fifo),
                exact(), 3};
    setup.faults.rank_mean_s = 150.0;
    Twin twin(setup.spec);
    const Figures figures = run(setup, twin);
    CHECK(figures.jobs > 1);
    CHECK(twin.tuner.state().in(study::TrialPhase::finished) + twin.tuner.state().in(study::TrialPhase::failed) == 20);
}

TEST_CASE("failures are a function of the seed", "[simulate]") {
    for (const char* scheduler : {asha, pbt}) {
        Setup setup{
            spec("num_trials = 20\nmax_iterations = 27", std::string("[failure]\ntolerate = 1.0\n") + scheduler),
            Model{}, 4};
        setup.faults = {0.05, 5'000.0, 600.0, 500.0, 600.0, 1000};
        const auto bytes_of = [&] {
            Twin twin(setup.spec);
            const Figures figures = run(setup, twin);
            CHECK(figures.jobs > 1);
            CHECK(figures.outcome == study::StudyOutcome::ok);
            study::Bytes bytes;
            study::encode(twin.records, bytes);
            return bytes;
        };
        const auto first = bytes_of();
        CHECK(first == bytes_of());
        setup.model.curves.seed = 9;
        CHECK(first != bytes_of());
    }
}

TEST_CASE("the last job leaves a study that can be resumed", "[simulate]") {
    Setup setup{spec("num_trials = 8\nmax_iterations = 100", fifo), exact(), 4};
    setup.faults.walltime_s = 60.0;
    setup.faults.jobs = 2;
    const Figures figures = simulate::simulate(setup, "uuid", "test", nullptr);
    CHECK(figures.jobs == 2);
    CHECK(figures.outcome == study::StudyOutcome::resumable);
}

TEST_CASE("jobs too short for an iteration are refused", "[simulate]") {
    Setup setup{spec("num_trials = 8\nmax_iterations = 100", fifo), exact(), 4};
    setup.faults.walltime_s = 0.5;
    CHECK_THROWS_WITH(simulate::simulate(setup, "uuid", "test", nullptr),
                      Catch::Matchers::Contains("20 simulated jobs in a row ended before any trial reported"));
}

TEST_CASE("a trial that exploited comes through failures with its donor's state", "[simulate]") {
    Setup setup{spec("num_trials = 8\nmax_iterations = 60", pbt), exact(), 8};
    setup.faults.job_mean_s = 25.0;
    Twin twin(setup.spec);
    const Figures figures = run(setup, twin);
    CHECK(figures.jobs > 2);
    CHECK(twin.count<study::Exploited>() > 0);
    CHECK(twin.tuner.state().in(study::TrialPhase::finished) == 8);
}

} // namespace faults_test
