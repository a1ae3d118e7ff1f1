// SPDX-License-Identifier: Apache-2.0
// CPU time of a suggestion: 8 parameters, two of them categories, results of 100 to 10,000 trials.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "ranktune/searchers/observations.hpp"
#include "searchers/bohb.hpp"
#include "searchers/tpe.hpp"
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

struct Times {
    double median;
    double most;
};

/// CPU seconds of `work(i)`.
template <class Work>
Times times_of(std::uint32_t repetitions, Work work) {
    std::vector<double> seconds;
    for (std::uint32_t i = 0; i < repetitions; ++i) {
        const double before = bench::cpu_seconds();
        work(i);
        seconds.push_back(bench::cpu_seconds() - before);
    }
    std::ranges::sort(seconds);
    return {seconds[seconds.size() / 2], seconds.back()};
}

/// A trial whose result is the better, the smaller its first parameter is.
void add(searchers::Observations& seen, const space::SearchSpace& space, std::uint32_t number,
         const space::Configuration& configuration) {
    seen.asked(base::TrialId(number), 0, space, configuration);
    seen.reported(base::TrialId(number), 1, -space.encode(configuration)[0]);
}

searchers::Observations table_of(const space::SearchSpace& space, std::uint32_t points) {
    searchers::Observations seen(space.dimensions());
    for (std::uint32_t i = 0; i < points; ++i) add(seen, space, i, space.sample(1, base::TrialId(i)));
    return seen;
}

void measure_bohb(const space::SearchSpace& space, std::uint32_t points, std::uint32_t repetitions) {
    const searchers::Observations seen = table_of(space, points);
    searchers::BohbSearcher::Options options;
    options.random_fraction = 0.0;
    const searchers::BohbSearcher searcher(space, 1, options);
    (void)searcher.suggest(0, seen); // reads the table
    const auto [median, most] = times_of(repetitions, [&](std::uint32_t i) { (void)searcher.suggest(1 + i, seen); });
    std::printf("bohb, %u points: %.0f us (median), %.0f us (most)\n", points, 1e6 * median, 1e6 * most);
}

/// With a new result between two suggestions, half of them near the best, as in a study.
void measure_tpe(const space::SearchSpace& space, const char* name, bool multivariate, std::uint32_t points,
                 std::uint32_t repetitions) {
    searchers::Observations seen = table_of(space, points);
    searchers::TpeOptions options;
    options.multivariate = multivariate;
    const searchers::TpeSearcher searcher(space, 1, options);
    (void)searcher.prepare(0, seen.first(seen.size()))(); // reads the table
    space::Configuration suggestion;
    std::uint32_t trial = points;
    const auto [median, most] = times_of(repetitions, [&](std::uint32_t i) {
        add(seen, space, trial, i % 2 == 0 ? space.sample(1, base::TrialId(trial)) : suggestion);
        ++trial;
        suggestion = searcher.prepare(1 + i, seen.first(seen.size()))();
    });
    std::printf("tpe, %s, %u points: %.0f us (median), %.0f us (most)\n", name, points, 1e6 * median, 1e6 * most);
}

} // namespace

int main(int argc, char** argv) {
    const std::uint32_t repetitions = argc > 1 ? static_cast<std::uint32_t>(std::atoi(argv[1])) : 200;
    const space::SearchSpace space = eight();
    for (const std::uint32_t points : {100U, 300U, 1000U, 3000U}) measure_bohb(space, points, repetitions);
    for (const std::uint32_t points : {100U, 1000U, 10000U}) {
        measure_tpe(space, "joint", true, points, repetitions);
        measure_tpe(space, "independent", false, points, repetitions);
    }
    return 0;
}
