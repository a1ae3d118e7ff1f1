// SPDX-License-Identifier: Apache-2.0
#include "report/view/wall_time.hpp"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>

namespace ranktune::report {

std::optional<double> unix_seconds(const std::string& time) {
    std::tm parts{};
    if (std::sscanf(time.c_str(), "%d-%d-%dT%d:%d:%d", &parts.tm_year, &parts.tm_mon, &parts.tm_mday, &parts.tm_hour,
                    &parts.tm_min, &parts.tm_sec) != 6)
        return std::nullopt;
    parts.tm_year -= 1900;
    parts.tm_mon -= 1;
    return static_cast<double>(timegm(&parts));
}

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string wall_time_text(double unix_seconds) {
    const auto at = static_cast<std::time_t>(std::llround(unix_seconds));
    std::tm parts{};
    gmtime_r(&at, &parts);
    char text[40];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}

std::optional<double> time_of_newest_record(const tuner::State& state) {
    const auto began = unix_seconds(state.wall_time);
    if (!began) return std::nullopt;
    return *began + base::to_seconds(state.now - state.began);
}

double unix_at(std::span<const StartOfHead> starts, double study_seconds) {
    std::optional<double> wall;
    for (const StartOfHead& start : starts) {
        if (wall && start.at_s > study_seconds) break;
        if (const auto began = unix_seconds(start.wall_time)) wall = *began + study_seconds - start.at_s;
    }
    return wall.value_or(study_seconds);
}

} // namespace ranktune::report
