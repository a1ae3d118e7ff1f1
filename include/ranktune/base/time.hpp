// SPDX-License-Identifier: Apache-2.0
#pragma once
// Study time: a number that travels in events. There is deliberately no clock here: time is data.

#include <chrono>
#include <cstdint>

namespace ranktune::base {

using Duration = std::chrono::nanoseconds;

/// The time line of one study: nanoseconds of running time since its first start. It never decreases, goes on from the
/// last record after a restart, and leaves out the time during which no head was alive. The type has no `now()`:
/// only a driver owns a clock.
struct StudyClock {
    using duration = Duration;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<StudyClock, duration>;
    static constexpr bool is_steady = true;
};
using StudyTime = StudyClock::time_point;

[[nodiscard]] constexpr std::int64_t to_ns(StudyTime time) { return time.time_since_epoch().count(); }
[[nodiscard]] constexpr StudyTime from_ns(std::int64_t ns) { return StudyTime{Duration{ns}}; }
[[nodiscard]] constexpr double to_seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }
[[nodiscard]] constexpr double to_seconds(StudyTime time) { return to_seconds(time.time_since_epoch()); }

} // namespace ranktune::base
