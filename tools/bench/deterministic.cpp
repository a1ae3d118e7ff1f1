// SPDX-License-Identifier: Apache-2.0
// Cost of the fixed order of a deterministic study: the share of rank time that is not training, compared with the same
// study in asynchronous mode, on a simulated cluster in virtual time. Trials differ in the duration of an iteration.
//
//   bench_deterministic [GROUPS] [TRIALS]      (defaults 16, 200)

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "schedulers/built_in.hpp"
#include "searchers/built_in.hpp"
#include "simulate/cluster/cluster.hpp"

namespace {

using namespace ranktune;
using namespace std::chrono_literals;

struct Nowhere final : study::RecordSink {
    void append(const std::vector<study::Record>&) override {}
};

struct Kind {
    const char* name;
    study::SchedulerSpec scheduler;
    bool every_report; ///< a limit in [stop]: each report is a decision
};

study::StudySpec make_spec(const Kind& kind, std::uint32_t trials, std::uint32_t slots) {
    study::StudySpec spec;
    spec.name = "deterministic";
    spec.objective = {"score", study::Mode::max};
    spec.num_trials = trials;
    spec.max_iterations = 27;
    spec.space = space::SearchSpace({{"lr", space::FloatRange{1e-4, 1.0, true, 0.0}, {}}});
    spec.searcher = searchers::chosen("random");
    spec.scheduler = kind.scheduler;
    spec.deterministic = slots > 0;
    spec.max_concurrent = slots;
    if (kind.every_report) spec.stop.metrics.push_back({"score", 1e9, study::Mode::max});
    return spec;
}

struct Figures {
    double idle = 0.0;    ///< share of the rank time that is not training
    double elapsed = 0.0; ///< seconds
};

/// `factor`: duration of the slowest trial divided by that of the fastest.
Figures run(const Kind& kind, std::uint32_t groups, std::uint32_t trials, std::uint32_t slots, double factor) {
    simulate::ClusterOptions options;
    options.workers = groups;
    options.wires.max_delay = 1ms;
    options.curve.min_iteration = 9s;
    options.curve.max_iteration = 11s;
    options.curve.max_formation = 100ms;
    options.curve.max_save = 100ms;
    options.curve.max_return = 20ms;
    options.curve.fate = 1;
    options.curve.spread = 0.5 * std::log(factor);
    options.limit = std::chrono::hours(10000);
    options.heartbeat_interval = 10s;
    options.heartbeat_timeout = 100s;
    options.check_invariants = false;
    tuner::Tuner tuner(make_spec(kind, trials, slots));
    tuner::Output created;
    tuner.create("bench", "", "bench", created);
    Nowhere sink;
    std::set<std::string> files;
    const auto result = simulate::run_cluster(options, tuner, sink, files);
    for (const auto& problem : result.problems) std::printf("wrong: %s\n", problem.c_str());
    // A group that waits for its turn looks busy from outside, so count the training time that trials report.
    double trained = 0.0;
    for (const auto& trial : tuner.state().trials) trained += trial.seconds;
    const double elapsed = base::to_seconds(result.elapsed);
    return {1.0 - trained / (elapsed * groups), elapsed};
}

} // namespace

int main(int argc, char** argv) {
    const auto number = [&](int i, std::uint32_t otherwise) {
        return argc > i ? static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10)) : otherwise;
    };
    const std::uint32_t groups = number(1, 16);
    const std::uint32_t trials = number(2, 200);
    using schedulers::chosen;
    const Kind kinds[] = {{"fifo", chosen("fifo"), false},
                          {"asha promote", chosen("asha"), false},
                          {"asha stop", chosen("asha", {{"variant", "stop"}}), false},
                          {"fifo, [stop]", chosen("fifo"), true}};
    std::printf(
        "%u groups, %u trials, 27 iterations of about 10 s; share of rank time that is not training, and run time\n",
        groups, trials);
    std::printf("%-14s %7s %22s %22s %22s\n", "scheduler", "spread", "asynchronous", "slots = groups",
                "slots = 2 x groups");
    for (const Kind& kind : kinds) {
        for (const double factor : {1.0, 2.0, 4.0, 10.0}) {
            std::printf("%-14s %6.0fx", kind.name, factor);
            for (const std::uint32_t slots : {0U, groups, 2 * groups}) {
                const Figures f = run(kind, groups, trials, slots, factor);
                std::printf("      %5.1f %% %7.0f s", 100.0 * f.idle, f.elapsed);
            }
            std::printf("\n");
        }
    }
    return 0;
}
