// SPDX-License-Identifier: Apache-2.0
// The function form: FunctionContext::report after each iteration, FunctionContext::checkpoints before the first.
// ranktune.hpp has all that a trainable needs, by short names.
#include <cstdio>
#include <span>

#include <ranktune/ranktune.hpp>
#include <ranktune/testing/run_trial.hpp>
#include <ranktune/trainables/context.hpp>

/// Gradient descent on (x - 3)^2.
void descend(ranktune::FunctionContext& context) {
    const double lr = context.configuration().at("lr").as_double();
    double x = 0.0;
    context.checkpoints([&](ranktune::StateSink& sink) { sink.put<double>("x", std::span(&x, 1)); },
                        [&](ranktune::StateSource& source) { source.get<double>("x", std::span(&x, 1)); });
    do {
        x -= lr * 2.0 * (x - 3.0);
        if (context.iteration() + 1 == context.max_iterations()) context.log("the last iteration");
    } while (context.report({{"loss", (x - 3.0) * (x - 3.0)}}));
}

// In a program of your own: ranktune::register_function({.name = "descend", .any_option = true}, descend);
int main() {
    using namespace ranktune::testing;
    const TrialOptions options{.configuration = ranktune::Configuration({{"lr", 0.25}}), .max_iterations = 20};
    const TrialRun run = run_trial(function(descend), options);
    const std::string difference = resume_difference(function(descend), options, 7);
    std::printf("loss %g %s%s\n", run.last("loss"), run.failure.c_str(), difference.c_str());
    return run.last("loss") < 1e-6 && run.log.size() == 1 && difference.empty() ? 0 : 1;
}
