// SPDX-License-Identifier: Apache-2.0
// From a study to its scheduler. The study file's parser names mistakes with line and column; what is refused here is
// what would break an algorithm, whoever made the StudySpec.
#include <cmath>

#include "ranktune/base/error.hpp"
#include "schedulers/asha_promote.hpp"
#include "schedulers/asha_stop.hpp"
#include "schedulers/fifo.hpp"
#include "schedulers/make_scheduler.hpp"
#include "schedulers/median.hpp"

namespace ranktune::schedulers {
namespace {

void require(bool holds, const char* what) {
    if (!holds) throw base::UsageError(what);
}

bool is_integer(double value) { return std::isfinite(value) && value == std::floor(value); }

void check_asha(const study::StudySpec& spec) {
    const auto& s = spec.scheduler;
    const bool ray = s.variant == study::AshaVariant::stop && s.rule == study::AshaRule::ray;
    require(std::isfinite(s.eta) && s.eta > 1.0 && s.eta < 0x1p31, "scheduler.eta must be larger than 1");
    require(std::isfinite(s.first_rung) && s.first_rung > 0.0, "scheduler.first_rung must be positive");
    require(s.first_rung <= static_cast<double>(spec.max_iterations),
            "scheduler.first_rung must not lie above study.max_iterations");
    require(ray || is_integer(s.eta), "scheduler.eta must be an integer, unless rule = \"ray\"");
    require(ray || is_integer(s.first_rung), "scheduler.first_rung must be an integer, unless rule = \"ray\"");
    require(s.brackets >= 1 && s.brackets <= 255, "scheduler.brackets must lie between 1 and 255");
}

std::unique_ptr<Scheduler> make_asha(const study::StudySpec& spec) {
    check_asha(spec);
    const auto& s = spec.scheduler;
    if (s.variant == study::AshaVariant::promote) {
        return std::make_unique<AshaPromote>(
            AshaPromote::Options{.first_rung = static_cast<base::Iteration>(s.first_rung),
                                 .eta = static_cast<std::uint32_t>(s.eta),
                                 .ceiling = spec.max_iterations,
                                 .brackets = s.brackets,
                                 .finish_top = s.finish_top,
                                 .seed = spec.seed,
                                 .num_trials = spec.num_trials,
                                 .pause_at_verdict = spec.deterministic},
            spec.objective);
    }
    return std::make_unique<AshaStop>(
        AshaStop::Options{.rule = s.rule == study::AshaRule::ray ? AshaStop::Rule::ray : AshaStop::Rule::floor,
                          .first_rung = s.first_rung,
                          .eta = s.eta,
                          .ceiling = spec.max_iterations,
                          .brackets = s.brackets,
                          .stop_last_trials = s.stop_last_trials,
                          .seed = spec.seed},
        spec.objective);
}

std::unique_ptr<Scheduler> make_median(const study::StudySpec& spec) {
    const auto& s = spec.scheduler;
    require(s.grace >= 0.0 && s.grace < 0x1p53, "scheduler.grace must be a number of iterations");
    require(s.min_samples >= 1, "scheduler.min_samples must be at least 1");
    return std::make_unique<MedianStopping>(MedianStopping::Options{.grace = s.grace,
                                                                    .min_samples = s.min_samples,
                                                                    .hard_stop = s.hard_stop,
                                                                    .ceiling = spec.max_iterations,
                                                                    .pause_at_verdict = spec.deterministic},
                                            spec.objective);
}

} // namespace

std::unique_ptr<Scheduler> make_scheduler(const study::StudySpec& spec) {
    require(spec.max_iterations >= 1, "study.max_iterations must be at least 1");
    switch (spec.scheduler.kind) {
        case study::SchedulerKind::fifo:
            return std::make_unique<Fifo>(spec.max_iterations);
        case study::SchedulerKind::asha:
            return make_asha(spec);
        case study::SchedulerKind::median:
            return make_median(spec);
    }
    throw base::UsageError("scheduler.type is unknown");
}

} // namespace ranktune::schedulers
