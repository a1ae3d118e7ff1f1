// SPDX-License-Identifier: Apache-2.0
// CPU time of a suggestion: 8 parameters, with results of 100 to 3,000 trials, or RESULTS.
//
// Usage: bench_suggest [SEARCHER [REPETITIONS [RESULTS]]]
// Each suggestion comes with one more result; tpe-independent: multivariate = false. gp: over a tenth more results, so
// that one of the suggestions fits the kernel anew, as in a study.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "ranktune/searchers/searcher.hpp"
#include "ranktune/study/spec.hpp"
#include "searchers/built_in.hpp"
#include "support.hpp"

using namespace ranktune;

namespace {

/// Two of the parameters are categories, if `categories`.
space::SearchSpace eight(bool categories) {
    std::vector<space::Parameter> parameters;
    for (const char* name : {"a", "b", "c", "d"}) parameters.push_back({name, space::FloatRange{}, {}});
    for (const char* name : {"e", "f"}) parameters.push_back({name, space::IntRange{1, 1000, true, 1}, {}});
    for (const char* name : {"g", "h"}) parameters.push_back({name, space::Choice{{1, 2, 3}, !categories}, {}});
    return space::SearchSpace(std::move(parameters));
}

study::SearcherSpec chosen(const std::string& searcher) {
    if (searcher == "bohb") return searchers::chosen(searcher, {{"random_fraction", 0.0}});
    if (searcher == "tpe-independent") return searchers::chosen("tpe", {{"multivariate", false}});
    return searchers::chosen(searcher);
}

class Study {
  public:
    explicit Study(const std::string& searcher) {
        spec_.name = "bench";
        spec_.seed = 1;
        spec_.searcher = chosen(searcher);
        spec_.space = eight(!spec_.searcher.algorithm->only_numbers);
        searcher_ = searchers::make_searcher(spec_);
        seen_ = searchers::Observations(spec_.space.dimensions());
    }
    [[nodiscard]] std::size_t trials() const { return trials_; }
    [[nodiscard]] bool prepares() const { return searcher_->prepares_ahead(1, seen_) > 0; }
    space::Configuration suggestion() {
        if (prepares()) return searcher_->prepare(trials_, seen_.first(seen_.size()))().configuration;
        return *searcher_->suggest(trials_, seen_);
    }
    void add(const space::Configuration& configuration) {
        const base::TrialId trial(static_cast<std::uint32_t>(trials_));
        study::TrialCreated record;
        record.trial = trial;
        record.origin.index = trials_++;
        record.configuration = configuration;
        seen_.asked(trial, 0, spec_.space, configuration);
        searcher_->apply(record);
        double loss = 0.0;
        for (const double x : spec_.space.encode(configuration)) loss += (x - 0.3) * (x - 0.3);
        seen_.reported(trial, 1, -loss);
        seen_.over(trial, 1, study::TrialPhase::finished);
    }
    [[nodiscard]] space::Configuration random() const {
        return spec_.space.sample(1, base::TrialId(static_cast<std::uint32_t>(trials_)));
    }

  private:
    study::StudySpec spec_;
    std::unique_ptr<searchers::Searcher> searcher_;
    searchers::Observations seen_;
    std::size_t trials_ = 0;
};

void measure(const std::string& searcher, std::size_t results, std::size_t repetitions) {
    Study study(searcher);
    while (study.trials() < results) study.add(study.random());
    (void)study.suggestion(); // reads the table
    if (searcher == "gp") repetitions = results / 10;
    std::vector<double> seconds;
    for (std::size_t i = 0; i < repetitions; ++i) {
        const double before = bench::cpu_seconds();
        const space::Configuration next = study.suggestion();
        seconds.push_back(bench::cpu_seconds() - before);
        study.add(next);
    }
    std::ranges::sort(seconds);
    const double mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
    std::printf("%s, %zu results: %.1f us (mean), %.1f us (median), %.1f us (most)\n", searcher.c_str(), results,
                1e6 * mean, 1e6 * seconds[seconds.size() / 2], 1e6 * seconds.back());
}

} // namespace

int main(int argc, char** argv) {
    const std::string searcher = argc > 1 ? argv[1] : "bohb";
    const std::size_t repetitions = argc > 2 ? static_cast<std::size_t>(std::atoi(argv[2])) : 200;
    std::vector<std::size_t> sizes{100, 200, 500, 1000, 3000};
    if (argc > 3) sizes = {static_cast<std::size_t>(std::atoi(argv[3]))};
    for (const std::size_t results : sizes) measure(searcher, results, repetitions);
    return 0;
}
