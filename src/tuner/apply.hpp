// SPDX-License-Identifier: Apache-2.0
#pragma once
// The only mutators of a study: live after every decision, and in replay.

#include <optional>

#include "tuner/core.hpp"

namespace ranktune::tuner {

/// Changes the state, then tells scheduler, searcher and admission. Throws base::FormatError when the record
/// contradicts the state.
void apply(Core& core, const study::Record& record);
/// What a user asked for takes effect (steer.cpp).
void apply_one(Core& core, const study::Steered& r);
/// Side tasks (side.cpp).
void apply_one(Core& core, const study::SideStarted& r);
void apply_one(Core& core, const study::SideReported& r);
void apply_one(Core& core, const study::SideEnded& r);
/// What searchers learn from the record, after it was applied (observe.cpp).
void observe(Core& core, const study::Record& record);
/// A deterministic study decides from now on what other runs of it may not.
void lose_determinism(Core& core);

/// Throws base::FormatError: it was never created.
[[nodiscard]] inline Trial& trial(Core& core, TrialId id) { return core.state.trials.at(id); }
[[nodiscard]] study::Ranked ranked(const Core& core, TrialId id);
/// By the first objective; nullopt: no trial has a finite one.
[[nodiscard]] std::optional<TrialId> best_of_all(const Core& core);

} // namespace ranktune::tuner
