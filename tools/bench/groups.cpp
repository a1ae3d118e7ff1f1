// SPDX-License-Identifier: Apache-2.0
// A head with many groups that report about once a second, over the loopback transport, in virtual time: random delays,
// and ranks that die. Measures the CPU time of the head's rounds (receiving messages, core, encoding records, sending
// messages); the memory is that of the whole process, workers included.
//
//   bench_groups [GROUPS] [TRIALS] [DEATHS] [--deterministic]      (defaults 512, 50000, 64)

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <sys/resource.h>

#include "ranktune/base/rng.hpp"
#include "schedulers/built_in.hpp"
#include "searchers/built_in.hpp"
#include "simulate/cluster/cluster.hpp"
#include "support.hpp"

namespace {

using namespace ranktune;
using namespace std::chrono_literals;

study::StudySpec make_spec(std::uint32_t groups, std::uint32_t trials, bool deterministic) {
    study::StudySpec spec;
    spec.name = "groups";
    spec.objective = {"score", study::Mode::max};
    spec.num_trials = trials;
    spec.max_iterations = 27;
    spec.space = space::SearchSpace({{"lr", space::FloatRange{1e-4, 1.0, true, 0.0}, {}}});
    spec.searcher = searchers::chosen("random");
    spec.scheduler = schedulers::chosen("asha");
    spec.deterministic = deterministic;
    if (deterministic) spec.max_concurrent = groups;
    spec.failure.max_losses = 1000;
    return spec;
}

} // namespace

int main(int argc, char** argv) {
    std::uint32_t numbers[] = {512, 50000, 64};
    std::size_t given = 0;
    bool deterministic = false;
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--deterministic") == 0)
            deterministic = true;
        else if (given < 3)
            numbers[given++] = static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10));
    }
    const auto [groups, trials, deaths] = numbers;
    simulate::ClusterOptions options;
    options.workers = groups;
    options.wires.max_delay = 20ms;
    options.curve.min_iteration = 500ms;
    options.curve.max_iteration = 1500ms;
    options.head_nap = 200us;
    options.check_invariants = false;
    options.cpu_clock = [] { return bench::cpu_seconds(CLOCK_THREAD_CPUTIME_ID); };
    base::RngStream rng(1, base::Purpose::fault);
    for (std::uint32_t i = 0; i < deaths; ++i)
        options.deaths.emplace_back(base::Rank(1 + static_cast<std::uint32_t>(rng.below(groups))),
                                    std::chrono::milliseconds(rng.below(200'000)));
    tuner::Tuner tuner(make_spec(groups, trials, deterministic));
    tuner::Output created;
    tuner.create("bench", "", "bench", created);
    bench::EncodingSink sink;
    std::set<std::string> files;
    const auto result = simulate::run_cluster(options, tuner, sink, files);
    for (const auto& problem : result.problems) std::printf("wrong: %s\n", problem.c_str());
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto& state = tuner.state();
    const double seconds = base::to_seconds(result.elapsed);
    const double reports = static_cast<double>(state.reports);
    std::printf(
        "%u groups, %zu trials, %.0f reports in %.0f s of virtual time (%.2f per group and second), %u deaths: head "
        "%.1f us of CPU per report, %.2f %% of a core, so %.2f %% at one report per group and second; %.0f bytes of "
        "journal per report; %.0f MB in all\n",
        groups, state.trials.size(), reports, seconds, reports / seconds / groups, deaths,
        1e6 * result.head_cpu_s / reports, 100.0 * result.head_cpu_s / seconds,
        100.0 * groups * result.head_cpu_s / reports, static_cast<double>(sink.bytes) / reports,
        static_cast<double>(usage.ru_maxrss) / 1024.0);
    return result.problems.empty() && state.trials.size() == trials ? 0 : 1;
}
