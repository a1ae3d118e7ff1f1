// SPDX-License-Identifier: Apache-2.0
#pragma once
// A population for tests, whose members obey.

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedulers/driver.hpp"

namespace ranktune::schedulers {

using base::Iteration;
using Settings = std::vector<study::OptionValue>;

inline study::StudySpec population_of(std::uint32_t members, Iteration ceiling, const Settings& settings,
                                      study::Mode mode = study::Mode::max) {
    study::StudySpec spec = spec_of(chosen("pbt", settings), ceiling, mode);
    spec.num_trials = members;
    spec.space = space::SearchSpace({{"float", space::FloatRange{0.5, 10.0, false, 0.0}, {}},
                                     {"int", space::IntRange{1, 100, false, 1}, {}},
                                     {"constant", space::Constant{3}, {}},
                                     {"id", space::Choice{{0, 1, 2, 3, 4, 5, 6, 7}, true}, {}}});
    spec.scheduler.explore = {{"float", {0.8, 1.2}}, {"int", {0.8, 1.2}}};
    return spec;
}

/// A population whose members have all been made; those that are told to exploit somebody do.
struct Members : testing::SchedulerDriver {
    explicit Members(const study::StudySpec& spec, const std::vector<space::Configuration>& configurations = {})
        : SchedulerDriver(spec) {
        for (std::uint32_t i = 0; i < spec.num_trials; ++i) {
            const auto own = configurations.empty() ? configuration(i) : configurations[i];
            apply(study::TrialCreated{TrialId(i), {}, 1, 0, 0, {}, own});
            apply(study::TrialStarted{TrialId(i), base::AttemptId(1), {}, {base::Rank(i + 1)}, {}});
        }
    }
    static space::Configuration configuration(std::uint32_t i) {
        return space::Configuration(
            {{"float", 2.0}, {"int", 10}, {"constant", 3}, {"id", static_cast<std::int64_t>(i)}});
    }
    /// Asks, applies the answer, and what follows from it.
    Verdict report(std::uint32_t trial, Iteration iteration, double value, bool contended = false) {
        Verdict verdict = ask(TrialId(trial), iteration, value, contended);
        std::optional<Exploit> exploit;
        if (verdict.verb == Verb::exploit)
            exploit = scheduler().exploit({TrialId(trial), iteration, study::score(value, spec().objective.mode)});
        tell(TrialId(trial), iteration, value, verdict);
        if (!exploit) return verdict;
        exploits.emplace_back(trial, exploit->donor.value());
        taken = exploit->configuration;
        taken_at = exploit->iteration;
        study::CheckpointRef checkpoint{.iteration = exploit->iteration, .path = "donor"};
        apply(study::Exploited{
            TrialId(trial), {}, iteration, {exploit->donor, checkpoint}, ++generations[trial], exploit->configuration});
        return verdict;
    }
    void save(std::uint32_t trial, Iteration iteration) {
        study::CheckpointRef checkpoint{.iteration = iteration, .path = path(trial, iteration)};
        checkpoint.generation = generations[trial];
        apply(study::CheckpointCommitted{TrialId(trial), base::AttemptId(1), {}, checkpoint});
    }
    static std::string path(std::uint32_t trial, Iteration iteration) {
        return std::to_string(trial) + "@" + std::to_string(iteration);
    }
    std::vector<std::pair<std::uint32_t, std::uint32_t>> exploits; ///< who, whom
    space::Configuration taken;                                    ///< by the newest of them
    Iteration taken_at = 0;                                        ///< iteration of the donor
    std::map<std::uint32_t, std::uint32_t> generations;
};

} // namespace ranktune::schedulers
