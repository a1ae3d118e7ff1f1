// SPDX-License-Identifier: Apache-2.0
#pragma once
// Turns records back into the event that led to them: the inverse of `Tuner::take`, to replay the decisions of a study.

#include <optional>
#include <span>

#include "ranktune/study/event.hpp"
#include "ranktune/study/record.hpp"
#include "tuner/state.hpp"

namespace ranktune::tuner {

/// The event behind the first of some records.
struct Retold {
    /// nullopt: the first record does not come from an event.
    std::optional<study::Event> event;
    /// The records end too early to tell (metric definitions without their report, a death without the next
    /// incarnation).
    bool cut_short = false;
};

/// `state`: as before the first of `records`. Requires a record.
[[nodiscard]] Retold retell(std::span<const study::Record> records, const State& state);

} // namespace ranktune::tuner
