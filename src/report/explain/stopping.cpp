// SPDX-License-Identifier: Apache-2.0
#include "report/explain/stopping.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "ranktune/base/text.hpp"
#include "report/screens/text.hpp"
#include "report/view/wall_time.hpp"

namespace ranktune::report {
namespace {

using study::TrialPhase;

/// " for 4m00s", since the drain began: within a start, study time advances with the wall clock.
std::string how_long_text(const tuner::State& state, std::chrono::system_clock::time_point wall) {
    const auto began = unix_seconds(state.wall_time);
    if (!began) return {};
    const double at = *began + base::to_seconds(state.drain_began - state.began);
    const double ago = std::chrono::duration<double>(wall.time_since_epoch()).count() - at;
    return ago < 0.0 ? std::string() : fmt::format(" for {}", short_duration(ago));
}

std::string waits_text(const tuner::State& state) {
    constexpr std::size_t shown = 4;
    std::vector<std::string> names;
    double pace = 0.0;
    for (std::size_t i = 0; i < state.trials.size(); ++i) {
        const auto& trial = state.trials[i];
        if (!tuner::holds_ranks(trial)) continue;
        names.push_back(fmt::format("#{}", i));
        if (trial.phase == TrialPhase::running)
            pace = std::max(pace, trial.pace > 0.0 ? trial.pace : state.pace.iteration());
    }
    if (names.empty()) return "nothing runs any more";
    const std::string text = base::join_some(names, shown);
    if (pace <= 0.0) return "waits until " + text + (names.size() == 1 ? " has" : " have") + " reported and saved";
    return fmt::format("waits for the next report of {}; an iteration takes up to {}", text, short_duration(pace));
}

} // namespace

std::string stopping_text(const tuner::State& state, std::chrono::system_clock::time_point wall) {
    if (!state.draining || state.ended) return {};
    const std::string why = state.drain_message.empty() ? "" : " (" + printable(first_line(state.drain_message)) + ")";
    return "stopping" + how_long_text(state, wall) + why + ": " + waits_text(state);
}

} // namespace ranktune::report
