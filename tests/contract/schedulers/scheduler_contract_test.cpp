// SPDX-License-Identifier: Apache-2.0
// The contract, for every scheduler of the library.
#include "contract/schedulers/scheduler_contract.hpp"
#include "support/catch.hpp"

using namespace ranktune;
using study::SchedulerKind;

namespace {

study::StudySpec study_with(SchedulerKind kind, base::Iteration ceiling) {
    study::StudySpec spec;
    spec.name = "contract";
    spec.objective.metric = "quality";
    spec.max_iterations = ceiling;
    spec.seed = 3;
    spec.scheduler.kind = kind;
    return spec;
}

study::StudySpec asha(study::AshaVariant variant, study::AshaRule rule, base::Iteration ceiling) {
    auto spec = study_with(SchedulerKind::asha, ceiling);
    spec.scheduler.variant = variant;
    spec.scheduler.rule = rule;
    return spec;
}

} // namespace

TEST_CASE("FIFO keeps the contract", "[schedulers][contract]") {
    contract::check_scheduler(study_with(SchedulerKind::fifo, 5));
}

TEST_CASE("ASHA promote keeps the contract", "[schedulers][contract]") {
    contract::check_scheduler(asha(study::AshaVariant::promote, study::AshaRule::floor, 20));
}

TEST_CASE("ASHA promote with brackets and eta 2 keeps the contract", "[schedulers][contract]") {
    auto spec = asha(study::AshaVariant::promote, study::AshaRule::floor, 12);
    spec.scheduler.eta = 2;
    spec.scheduler.brackets = 5;
    spec.scheduler.finish_top = 3;
    contract::check_scheduler(spec);
}

TEST_CASE("ASHA stop with rule floor keeps the contract", "[schedulers][contract]") {
    contract::check_scheduler(asha(study::AshaVariant::stop, study::AshaRule::floor, 20));
}

TEST_CASE("ASHA stop with rule floor and brackets keeps the contract", "[schedulers][contract]") {
    auto spec = asha(study::AshaVariant::stop, study::AshaRule::floor, 20);
    spec.scheduler.eta = 2;
    spec.scheduler.first_rung = 2;
    spec.scheduler.brackets = 3;
    contract::check_scheduler(spec);
}

TEST_CASE("ASHA stop with rule ray keeps the contract", "[schedulers][contract]") {
    contract::check_scheduler(asha(study::AshaVariant::stop, study::AshaRule::ray, 20));
}

TEST_CASE("ASHA stop with rule ray, brackets and fractional rungs keeps the contract", "[schedulers][contract]") {
    auto spec = asha(study::AshaVariant::stop, study::AshaRule::ray, 20);
    spec.scheduler.eta = 1.5;
    spec.scheduler.first_rung = 0.7;
    spec.scheduler.brackets = 12; // the last ones have no rungs
    spec.scheduler.stop_last_trials = false;
    contract::check_scheduler(spec);
}

TEST_CASE("median stopping keeps the contract", "[schedulers][contract]") {
    auto spec = study_with(SchedulerKind::median, 12);
    spec.scheduler.grace = 2.5;
    contract::check_scheduler(spec);
}

TEST_CASE("median stopping that pauses keeps the contract", "[schedulers][contract]") {
    auto spec = study_with(SchedulerKind::median, 12);
    spec.scheduler.grace = 0;
    spec.scheduler.min_samples = 1;
    spec.scheduler.hard_stop = false;
    contract::check_scheduler(spec);
}
