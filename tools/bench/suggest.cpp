// SPDX-License-Identifier: Apache-2.0
// CPU time of a suggestion of BOHB's model: 8 parameters, two of them categories, results of 100 to 3,000 trials.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "ranktune/searchers/observations.hpp"
#include "searchers/bohb.hpp"
#include "support.hpp"

using namespace ranktune;

namespace {

space::SearchSpace eight() {
    std::vector<space::Parameter> parameters;
    for (const char* name : {"a", "b", "c", "d"}) parameters.push_back({name, space::FloatRange{}, {}});
    for (const char* name : {"e", "f"}) parameters.push_back({name, space::IntRange{1, 1000, true, 1}, {}});
    for (const char* name : {"g", "h"}) parameters.push_back({name, space::Choice{{1, 2, 3}}, {}});
    return space::SearchSpace(std::move(parameters));
}

} // namespace

int main(int argc, char** argv) {
    const std::uint32_t repetitions = argc > 1 ? static_cast<std::uint32_t>(std::atoi(argv[1])) : 200;
    const space::SearchSpace space = eight();
    for (const std::uint32_t points : {100U, 300U, 1000U, 3000U}) {
        searchers::Observations seen(space.dimensions());
        for (std::uint32_t i = 0; i < points; ++i) {
            const base::TrialId trial(i);
            const space::Configuration configuration = space.sample(1, trial);
            seen.asked(trial, 0, space, configuration);
            seen.reported(trial, 1, -space.encode(configuration)[0]);
        }
        searchers::BohbSearcher::Options options;
        options.random_fraction = 0.0;
        const searchers::BohbSearcher searcher(space, 1, options);
        (void)searcher.suggest(0, seen); // reads the table
        std::vector<double> seconds;
        for (std::uint32_t i = 1; i <= repetitions; ++i) {
            const double before = bench::cpu_seconds();
            (void)searcher.suggest(i, seen);
            seconds.push_back(bench::cpu_seconds() - before);
        }
        std::ranges::sort(seconds);
        std::printf("%u points: %.0f us (median), %.0f us (most)\n", points, 1e6 * seconds[seconds.size() / 2],
                    1e6 * seconds.back());
    }
    return 0;
}
