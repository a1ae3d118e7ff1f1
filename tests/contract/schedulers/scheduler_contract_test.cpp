// SPDX-License-Identifier: Apache-2.0
// The contract, for every scheduler of the library.
#include "contract/schedulers/scheduler_contract.hpp"
#include "schedulers/built_in.hpp"
#include "support/catch.hpp"

using namespace ranktune;
using schedulers::chosen;

namespace {

study::StudySpec study_with(study::SchedulerSpec scheduler, base::Iteration ceiling) {
    study::StudySpec spec;
    spec.name = "contract";
    spec.objective.metric = "quality";
    spec.max_iterations = ceiling;
    spec.seed = 3;
    spec.scheduler = std::move(scheduler);
    return spec;
}

} // namespace

TEST_CASE("FIFO keeps the contract", "[schedulers][contract]") {
    contract::check_scheduler(study_with(chosen("fifo"), 5));
}

TEST_CASE("ASHA promote keeps the contract", "[schedulers][contract]") {
    contract::check_scheduler(study_with(chosen("asha"), 20));
}

TEST_CASE("ASHA promote with brackets and eta 2 keeps the contract", "[schedulers][contract]") {
    contract::check_scheduler(study_with(chosen("asha", {{"eta", 2}, {"brackets", 5}, {"finish_top", 3}}), 12));
}

TEST_CASE("ASHA stop with rule floor keeps the contract", "[schedulers][contract]") {
    contract::check_scheduler(study_with(chosen("asha", {{"variant", "stop"}}), 20));
}

TEST_CASE("ASHA stop with rule floor and brackets keeps the contract", "[schedulers][contract]") {
    contract::check_scheduler(
        study_with(chosen("asha", {{"variant", "stop"}, {"eta", 2}, {"first_rung", 2}, {"brackets", 3}}), 20));
}

TEST_CASE("ASHA stop with rule ray keeps the contract", "[schedulers][contract]") {
    contract::check_scheduler(study_with(chosen("asha", {{"variant", "stop"}, {"rule", "ray"}}), 20));
}

TEST_CASE("ASHA stop with rule ray, brackets and fractional rungs keeps the contract", "[schedulers][contract]") {
    // The last brackets have no rungs.
    contract::check_scheduler(study_with(chosen("asha", {{"variant", "stop"},
                                                         {"rule", "ray"},
                                                         {"eta", 1.5},
                                                         {"first_rung", 0.7},
                                                         {"brackets", 12},
                                                         {"stop_last_trials", false}}),
                                         20));
}

TEST_CASE("median stopping keeps the contract", "[schedulers][contract]") {
    contract::check_scheduler(study_with(chosen("median", {{"grace", 2.5}}), 12));
}

TEST_CASE("median stopping that pauses keeps the contract", "[schedulers][contract]") {
    contract::check_scheduler(
        study_with(chosen("median", {{"grace", 0}, {"min_samples", 1}, {"hard_stop", false}}), 12));
}
