// SPDX-License-Identifier: Apache-2.0
#pragma once
// Records into the event that led to them: `Tuner::take` the other way round, for whoever decides a study again.

#include <optional>
#include <span>

#include "ranktune/study/event.hpp"
#include "ranktune/study/record.hpp"
#include "tuner/state.hpp"

namespace ranktune::tuner {

/// What an event makes of the records that follow, the first of which is its own.
struct Retold {
    /// Nothing: no event of its own leads to the first record.
    std::optional<study::Event> event;
    /// The records end before it can be told what they belong to (the names of metrics without their report, a death
    /// without the beginning of the next incarnation).
    bool cut_short = false;
};

/// `state`: before the first of `records`, which are not empty.
[[nodiscard]] Retold retell(std::span<const study::Record> records, const State& state);

} // namespace ranktune::tuner
