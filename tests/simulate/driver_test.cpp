// SPDX-License-Identifier: Apache-2.0
#include "simulate/driver.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "ranktune/study/codec.hpp"
#include "setups.hpp"
#include "support/catch.hpp"
#include "tuner/tuner.hpp"

namespace driver_test {

using namespace ranktune;
using namespace ranktune::simulate;
using simulate::testing::exact;
using simulate::testing::spec;
using simulate::testing::Twin;

namespace {

/// Simulates, and checks the state at the end.
Figures run(const Setup& setup, Twin& twin) {
    const Figures figures = simulate::simulate(setup, "uuid", "test", &twin);
    twin.tuner.check_invariants();
    CHECK(tuner::is_over(twin.tuner.state()));
    CHECK(twin.tuner.state().simulation == description(setup));
    CHECK(twin.tuner.state().reports == figures.reports);
    return figures;
}
Figures run(const Setup& setup) {
    Twin twin(setup.spec);
    return run(setup, twin);
}

constexpr const char* fifo = "[scheduler]\ntype = \"fifo\"\n";
constexpr const char* asha = "[scheduler]\ntype = \"asha\"\neta = 3\n";
constexpr const char* pbt = "[scheduler]\ntype = \"pbt\"\ninterval = 3\n[scheduler.explore]\nx = [0.8, 1.2]\n";

} // namespace

TEST_CASE("a FIFO study that fits exactly keeps every rank training", "[simulate]") {
    const Setup setup{
        spec("num_trials = 8\nmax_iterations = 5", std::string("[resources]\nranks = 2\ncpus_per_rank = 3\n") + fifo),
        exact(), 4};
    const Figures figures = run(setup);
    CHECK(figures.ranks == 8);
    CHECK(figures.reports == 40);
    CHECK(figures.seconds == 10.0); // two rounds of five iterations of one second
    CHECK(figures.training_s == 80.0);
    CHECK(figures.utilisation() == 1.0);
    CHECK(figures.core_hours == Approx(10.0 / 3600.0 * 8 * 3));
}

TEST_CASE("starts and checkpoints take their time", "[simulate]") {
    Setup setup{spec("num_trials = 1\nmax_iterations = 4", fifo), exact(), 1};
    setup.model.time.start = 10.0;
    setup.model.time.checkpoint = 2.0;
    const Figures figures = run(setup);
    CHECK(figures.seconds == 10.0 + 4.0 + 2.0);
    CHECK(figures.training_s == 4.0);
    CHECK(figures.utilisation() == Approx(4.0 / 16.0));
}

TEST_CASE("stragglers and slow configurations take longer", "[simulate]") {
    Setup setup{spec("num_trials = 4\nmax_iterations = 5", fifo), exact(), 4};
    setup.model.time.stragglers = 1.0;
    setup.model.time.straggler_factor = 3.0;
    CHECK(run(setup).seconds == 15.0);
    setup.model.time.stragglers = 0.0;
    setup.model.time.spread = 0.5;
    const double seconds = run(setup).seconds; // the slowest of four
    CHECK(seconds > 5.0 * std::exp(-0.5));
    CHECK(seconds < 5.0 * std::exp(0.5));
    CHECK(seconds != 5.0);
}

TEST_CASE("the same setup gives the same records, another seed others", "[simulate]") {
    Setup setup{spec("num_trials = 30\nmax_iterations = 9", asha), Model{}, 4};
    setup.faults.trial_rate = 0.1;
    const auto bytes_of = [&] {
        Twin twin(setup.spec);
        run(setup, twin);
        study::Bytes bytes;
        study::encode(twin.records, bytes);
        return bytes;
    };
    const auto first = bytes_of();
    CHECK(first == bytes_of());
    setup.spec.seed = 2;
    CHECK(first != bytes_of());
}

TEST_CASE("schedulers run to their ends", "[simulate]") {
    for (const char* scheduler :
         {fifo, asha, "[scheduler]\ntype = \"asha\"\nvariant = \"stop\"\n", "[scheduler]\ntype = \"median\"\n", pbt}) {
        for (const std::uint32_t groups : {1U, 4U, 50U}) {
            INFO(scheduler << groups);
            Setup setup{
                spec("num_trials = 20\nmax_iterations = 9", std::string("[failure]\ntolerate = 1.0\n") + scheduler),
                Model{}, groups};
            setup.faults.trial_rate = 0.02;
            Twin twin(setup.spec);
            const Figures figures = run(setup, twin);
            CHECK(figures.trials == 20);
            CHECK(figures.outcome == study::StudyOutcome::ok);
            CHECK(figures.utilisation() > 0.0);
            CHECK(figures.utilisation() <= 1.0);
            CHECK(figures.best <= 0.95);
            CHECK(figures.best > 0.1);
        }
    }
}

TEST_CASE("a deterministic study runs, too", "[simulate]") {
    const Setup setup{spec("num_trials = 20\nmax_iterations = 9\ndeterministic = true\nmax_concurrent = 4", asha),
                      Model{}, 4};
    CHECK(run(setup).trials == 20);
}

TEST_CASE("a trial that exploits goes on from the quality of its donor", "[simulate]") {
    const Setup setup{spec("num_trials = 8\nmax_iterations = 30", pbt), exact(), 8};
    Twin twin(setup.spec);
    run(setup, twin);
    REQUIRE(twin.count<study::Exploited>() > 0);
    // The first report after an exploit is near the donor's at its checkpoint, not near the trial's own.
    std::map<std::uint32_t, std::vector<double>> values;
    std::map<std::uint32_t, double> expected;
    int compared = 0;
    for (const auto& record : twin.records) {
        if (const auto* report = std::get_if<study::Reported>(&record)) {
            const std::uint32_t trial = report->trial.value();
            const double value = report->metrics.front().value;
            if (expected.contains(trial)) {
                CHECK(std::abs(value - expected[trial]) < std::abs(value - values[trial].back()));
                expected.erase(trial);
                ++compared;
            }
            values[trial].push_back(value);
        } else if (const auto* taken = std::get_if<study::Exploited>(&record)) {
            expected[taken->trial.value()] = *taken->donor.checkpoint.value;
        }
    }
    CHECK(compared > 0);
}

TEST_CASE("an exploit takes its own time", "[simulate]") {
    Setup setup{spec("num_trials = 8\nmax_iterations = 30", pbt), exact(), 8};
    const double without = run(setup).seconds;
    setup.model.time.exploit = 7.0;
    CHECK(run(setup).seconds > without);
}

TEST_CASE("a resumed trial has the curve of one that was never paused", "[simulate]") {
    const Setup setup{spec("num_trials = 27\nmax_iterations = 27", asha), exact(), 3};
    Twin twin(setup.spec);
    run(setup, twin);
    const Setup whole{spec("num_trials = 27\nmax_iterations = 27", fifo), exact(), 3};
    Twin straight(whole.spec);
    run(whole, straight);
    std::map<std::pair<std::uint32_t, base::Iteration>, double> values;
    for (const auto& record : straight.records)
        if (const auto* report = std::get_if<study::Reported>(&record))
            values[{report->trial.value(), report->iteration}] = report->metrics.front().value;
    std::size_t resumed = 0;
    for (const auto& record : twin.records) {
        const auto* report = std::get_if<study::Reported>(&record);
        if (report == nullptr) continue;
        CHECK(report->metrics.front().value ==
              Approx(values.at({report->trial.value(), report->iteration})).margin(1e-9));
        if (report->attempt.value() > 1) ++resumed;
    }
    CHECK(resumed > 0);
}

TEST_CASE("trials fail at the rate of the model", "[simulate]") {
    Setup setup{spec("num_trials = 1000\nmax_iterations = 10", std::string("[failure]\ntolerate = 1.0\n") + fifo),
                Model{}, 50};
    setup.faults.trial_rate = 0.1;
    Twin twin(setup.spec);
    run(setup, twin);
    const auto failed = twin.tuner.state().in(study::TrialPhase::failed);
    CHECK(failed > 60); // 100, standard deviation 9.5
    CHECK(failed < 140);

    setup.spec.failure.max_failures = 5;
    Twin retried(setup.spec);
    run(setup, retried);
    CHECK(retried.tuner.state().in(study::TrialPhase::failed) < failed / 4);
}

TEST_CASE("nobody waits for a suggestion that takes long: more trials take a stopgap", "[simulate]") {
    const auto stopgaps = [](double seconds) {
        Setup setup{spec("num_trials = 80\nmax_iterations = 1", std::string("[searcher]\ntype = \"tpe\"\n") + fifo),
                    exact(), 8};
        setup.model.time.suggestion = seconds;
        Twin twin(setup.spec);
        const Figures figures = simulate::simulate(setup, "uuid", "test", &twin);
        CHECK(figures.utilisation() > 0.99);
        CHECK(figures.trials == 80);
        return std::ranges::count_if(twin.tuner.state().trials, [](const auto& trial) {
            return trial.origin.kind == study::Origin::Kind::stopgap;
        });
    };
    CHECK(stopgaps(0.0) < 20);
    CHECK(stopgaps(5.0) >= 60); // of 70: the first ones come before there are results to learn from
}

TEST_CASE("a study that takes longer than study time can count is refused", "[simulate]") {
    Setup setup{spec("num_trials = 3\nmax_iterations = 9", fifo), exact(), 1};
    setup.model.time.iteration = 1e7;
    setup.model.time.stragglers = 1.0;
    setup.model.time.straggler_factor = 1000.0;
    CHECK_THROWS_WITH(run(setup), Catch::Matchers::Contains("takes longer than 285 years"));
    setup.model.time.straggler_factor = 1.0;
    setup.model.time.head = 1e7; // every event
    CHECK(run(setup).seconds < 9e9);
    setup.spec.time_budget = std::chrono::hours(24);
    CHECK(run(setup).seconds > 0.0);
}

TEST_CASE("a simulation tells how many trials there are", "[simulate]") {
    const Setup setup{spec("num_trials = 40\nmax_iterations = 9", fifo), exact(), 4};
    std::vector<std::uint64_t> told;
    static_cast<void>(
        simulate::simulate(setup, "uuid", "test", nullptr, [&](std::uint64_t trials) { told.push_back(trials); }));
    REQUIRE(told.size() > 2);
    CHECK(std::is_sorted(told.begin(), told.end()));
    CHECK(told.back() <= 40);
}

TEST_CASE("the time budget ends a study in virtual time", "[simulate]") {
    Setup setup{spec("num_trials = 100\nmax_iterations = 10", fifo), exact(), 2};
    setup.spec.time_budget = std::chrono::seconds(35);
    const Figures figures = simulate::simulate(setup, "uuid", "test", nullptr);
    CHECK(figures.seconds >= 35.0);
    CHECK(figures.seconds <= 37.0);
    CHECK(figures.trials == 8);
}

TEST_CASE("a loss falls, and the best reachable is a loss", "[simulate]") {
    auto min = spec("num_trials = 30\nmax_iterations = 9", fifo);
    min.objective.mode = study::Mode::min;
    const Figures figures = simulate::simulate({min, Model{}, 4}, "uuid", "test", nullptr);
    CHECK(figures.best >= 0.05);
    CHECK(figures.best_reachable >= 0.05);
    CHECK(figures.best_reachable < 0.5);
    CHECK(figures.best < 0.6);
}

TEST_CASE("the time to the best is that of the best trial's report", "[simulate]") {
    Setup setup{spec("num_trials = 200\nmax_iterations = 20", fifo), exact(), 10};
    const Figures figures = simulate::simulate(setup, "uuid", "test", nullptr);
    REQUIRE(figures.near_best_s);
    CHECK(*figures.near_best_s <= figures.seconds);
    CHECK(*figures.near_best_s == std::floor(*figures.near_best_s)); // reports come every second
    CHECK(figures.best >= 0.99 * figures.best_reachable);
}

TEST_CASE("the head takes one event after the other, and groups wait for its answers", "[simulate]") {
    // All four report at once: the first three times nobody waits for an answer, so the messages queue up behind.
    Setup setup{spec("num_trials = 4\nmax_iterations = 4", fifo), exact(), 4};
    const Figures free = run(setup);
    setup.model.time.head = 0.125;
    const Figures figures = run(setup);
    CHECK(free.head_s == 0.0);
    CHECK(free.seconds == 4.0);
    CHECK(figures.reports == free.reports);
    // Begin; 4 trials with 4 reports, a last checkpoint for the best so far, and an end each.
    const double events = figures.head_s / 0.125;
    CHECK(events == std::floor(events));
    CHECK(events >= 1 + 4 * 5);
    CHECK(figures.seconds > 4.0 + 4 * 0.125); // begin, then the last report has waited for those before it
    CHECK(figures.utilisation() < 1.0);
}

TEST_CASE("a head that is too slow holds up its study, however many groups there are", "[simulate]") {
    // A limit of training time is checked at every report.
    Setup setup{spec("num_trials = 64\nmax_iterations = 9", std::string(fifo) + "[stop]\ntime = \"100h\"\n"), exact(),
                64};
    setup.model.time.head = 0.05;
    const Figures figures = run(setup);
    CHECK(figures.head_s / figures.seconds > 0.9);
    CHECK(figures.seconds > 64 * 9 * 0.05);
}

TEST_CASE("the time between two iterations is the model's", "[simulate]") {
    Setup setup{spec("num_trials = 1\nmax_iterations = 5", fifo), exact(), 1};
    setup.model.time.report = 0.5;
    CHECK(run(setup).seconds == 5.0 + 4 * 0.5);
}

TEST_CASE("the first trial of a rank in a job may take longer to start", "[simulate]") {
    Setup setup{spec("num_trials = 6\nmax_iterations = 5", fifo), exact(), 2};
    setup.model.time.start = 1.0;
    CHECK(run(setup).seconds == 3 * (1.0 + 5.0));
    setup.model.time.first_start = 4.0;
    CHECK(run(setup).seconds == 3 * (1.0 + 5.0) + 3.0);
    setup.faults.walltime_s = 16.0;
    const Figures jobs = run(setup); // each begins anew
    CHECK(jobs.jobs > 1);
    CHECK(jobs.in_jobs_s >= 3 * (1.0 + 5.0) + 6.0);
}

} // namespace driver_test
