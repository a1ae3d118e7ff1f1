// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tables of observations for tests of searchers that learn.

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "ranktune/searchers/observations.hpp"
#include "ranktune/space/domain.hpp"

namespace ranktune::searchers::testing {

using base::TrialId;

inline constexpr double infinite = std::numeric_limits<double>::infinity();

inline space::SearchSpace space_of(const std::vector<std::pair<std::string, std::string>>& calls) {
    std::vector<space::Parameter> parameters;
    for (const auto& [name, call] : calls) parameters.push_back({name, space::parse_domain(call), std::nullopt});
    return space::SearchSpace(std::move(parameters));
}

/// x0, x1, ...: numbers in [0, 1).
inline space::SearchSpace cube(std::size_t dimensions) {
    std::vector<std::pair<std::string, std::string>> calls;
    for (std::size_t i = 0; i < dimensions; ++i) calls.emplace_back("x" + std::to_string(i), "uniform(0, 1)");
    return space_of(calls);
}

/// Trials that report once and end. In scores larger is better.
struct Table {
    explicit Table(const space::SearchSpace& of) : space(of), seen(of.dimensions()) {}

    TrialId ask(const space::Configuration& configuration) {
        const TrialId trial(trials++);
        seen.asked(trial, 0, space, configuration);
        return trial;
    }
    TrialId add(const std::vector<double>& unit, double score, base::Iteration iteration = 1) {
        const TrialId trial = ask(space.decode(unit));
        seen.reported(trial, iteration, score);
        return trial;
    }
    TrialId add_failed(const std::vector<double>& unit, base::Iteration iteration = 0) {
        const TrialId trial = ask(space.decode(unit));
        seen.over(trial, iteration, study::TrialPhase::failed);
        return trial;
    }
    /// As many random configurations, each with the score `of(unit)`.
    template <class Of>
    void add_random(std::uint32_t count, Of of, base::Iteration iteration = 1) {
        for (std::uint32_t i = 0; i < count; ++i) {
            const space::Configuration configuration = space.sample(99, TrialId(trials));
            seen.reported(ask(configuration), iteration, of(space.encode(configuration)));
        }
    }

    const space::SearchSpace& space;
    Observations seen;
    std::uint32_t trials = 0;
};

} // namespace ranktune::searchers::testing
