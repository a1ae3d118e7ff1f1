// SPDX-License-Identifier: Apache-2.0
// A test of the scheduler: the contract of all schedulers, and its own rule. Any test framework works.
#include <cstdio>
#include <string>

#include <ranktune/testing/contract.hpp>

#include "mean_stopping.hpp"

namespace {

/// Runs a study of five iterations, one trial after the other; each trial reports the same loss at every iteration.
/// Returns the number of iterations that each trial gets.
std::string iterations(const ranktune::SchedulerInfo& info, const std::vector<double>& losses) {
    ranktune::StudySpec study;
    study.objective = {"loss", ranktune::Mode::min};
    study.max_iterations = 5;
    study.scheduler = chosen(std::make_shared<const ranktune::SchedulerInfo>(info), {{"min_finished", 2}});
    const auto scheduler = info.make(study);
    const ranktune::base::MetricId loss(0);
    scheduler->apply(ranktune::MetricDefined{loss, "loss"});
    std::string text;
    for (std::uint32_t i = 0; i < losses.size(); ++i) {
        const ranktune::TrialId trial(i);
        scheduler->apply(ranktune::TrialCreated{trial, {}, 1, 0, 0, {}, {}});
        ranktune::Verdict verdict;
        ranktune::Reported report;
        report.trial = trial;
        report.metrics = {{loss, losses[i]}};
        while (verdict.verb == ranktune::Verb::go_on) {
            ++report.iteration;
            verdict = scheduler->decide({trial, report.iteration, -losses[i], false}, false);
            report.verdict = verdict;
            scheduler->apply(report);
        }
        const bool finished = verdict.reason == ranktune::Reason::max_iterations;
        scheduler->apply(
            ranktune::TrialClosed{trial,
                                  {},
                                  finished ? ranktune::TrialPhase::finished : ranktune::TrialPhase::stopped,
                                  verdict.reason,
                                  0.0,
                                  0.0,
                                  {}});
        text += (text.empty() ? "" : " ") + std::to_string(report.iteration);
    }
    return text;
}

} // namespace

int main() {
    const ranktune::SchedulerInfo info = describe_mean_stopping();
    int wrong = 0;
    for (const std::string& rule : ranktune::testing::check_scheduler(info)) {
        std::fprintf(stderr, "%s\n", rule.c_str());
        ++wrong;
    }
    // The first two trials are not compared; their mean is 2, and then (1 + 3 + 1.5) / 3.
    if (const std::string got = iterations(info, {1.0, 3.0, 2.5, 1.5, 1.9, 1.8}); got != "5 5 1 5 1 5") {
        std::fprintf(stderr, "the trials got %s iterations\n", got.c_str());
        ++wrong;
    }
    return wrong == 0 ? 0 : 1;
}
