// SPDX-License-Identifier: Apache-2.0
#pragma once
// A study with the searcher `external`, reduced to its records and its table, for tests of the conversation.

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "searchers/external.hpp"

namespace ranktune::head::testing {

using base::TrialId;

/// lr, n and act; m exists with act == 'b' only.
inline space::SearchSpace conditional_space() {
    const auto parameter = [](const char* name, const char* call) {
        return space::Parameter{name, space::parse_domain(call), std::nullopt};
    };
    space::Parameter m = parameter("opt.m", "quniform(0, 1, 0.1)");
    m.condition = space::Condition::parse("act == 'b'");
    return space::SearchSpace({parameter("lr", "uniform(0, 1)"), parameter("n", "randint(1, 9)"),
                               parameter("act", "choice(['a', 'b'])"), std::move(m)});
}

struct Study {
    Study(space::SearchSpace space, const std::string& command, base::Duration timeout = std::chrono::seconds(30))
        : setting(std::make_shared<searchers::ExternalSetting>()), seen(space.dimensions()) {
        setting->command = command;
        setting->directory = "/";
        setting->timeout = timeout;
        setting->study = "s";
        setting->seed = 7;
        setting->objective = {"loss", study::Mode::min};
        setting->num_trials = 20;
        setting->max_iterations = 3;
        setting->space = std::move(space);
    }
    TrialId create(const space::Configuration& configuration, std::optional<std::uint64_t> ticket = {}) {
        const TrialId trial(static_cast<std::uint32_t>(trials.size()));
        trials.push_back({configuration, ticket});
        seen.asked(trial, 0, setting->space, configuration);
        return trial;
    }
    void report(TrialId trial, base::Iteration iteration, double loss) {
        seen.reported(trial, iteration, study::score(loss, study::Mode::min));
    }
    void report(TrialId trial, base::Iteration iteration, const study::Score& score) {
        seen.reported(trial, iteration, score);
    }
    [[nodiscard]] searchers::ExternalQuestion question(std::uint64_t ticket) const {
        return {setting, ticket, seen.first(seen.size()), trials.first(trials.size())};
    }

    std::shared_ptr<searchers::ExternalSetting> setting;
    searchers::Observations seen;
    searchers::GrowingList<searchers::ExternalTrial> trials;
};

} // namespace ranktune::head::testing
