// SPDX-License-Identifier: Apache-2.0
#pragma once
// Times of the wall clock, as records and small files have them: RFC 3339, in UTC.

#include <optional>
#include <span>
#include <string>

#include "report/view/history.hpp"
#include "tuner/state.hpp"

namespace ranktune::report {

/// Seconds since 1970 of such a time, fractions left out; nothing when it cannot be read.
[[nodiscard]] std::optional<double> unix_seconds(const std::string& time);
[[nodiscard]] double seconds_now();
/// "2026-11-20T14:02:11Z"
[[nodiscard]] std::string wall_time_text(double unix_seconds);
/// When the newest record was written: within a start, study time advances with the wall clock. Nothing: no head has
/// begun.
[[nodiscard]] std::optional<double> time_of_newest_record(const tuner::State& state);
/// When it was so many seconds of study time, in seconds since 1970. Study time rests between starts; before the first
/// one it is counted back. Without a start whose wall time can be read: study time itself.
[[nodiscard]] double unix_at(std::span<const StartOfHead> starts, double study_seconds);

} // namespace ranktune::report
