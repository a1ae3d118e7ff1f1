// SPDX-License-Identifier: Apache-2.0
// A test of the trainable: two ranks, which are threads of this program; no MPI, no study. Any test framework works.
#include <cstdio>

#include <ranktune/testing/run_trial.hpp>

#include "curve_fit.hpp"

int main() {
    using namespace ranktune::testing;
    TrialOptions options;
    options.configuration = ranktune::Configuration({{"lr", 0.7}});
    options.ranks = 2;
    options.max_iterations = 50;
    const TrialRun run = run_trial(trainable<CurveFit>(), options);
    // Compares a trial that is paused after 20 iterations and resumed with an uninterrupted one.
    const std::string difference = resume_difference(trainable<CurveFit>(), options, 20);
    std::printf("loss %g %s %s\n", run.failure.empty() ? run.last("loss") : 0.0, run.failure.c_str(),
                difference.c_str());
    return run.failure.empty() && run.last("loss") < 1e-4 && difference.empty() ? 0 : 1;
}
