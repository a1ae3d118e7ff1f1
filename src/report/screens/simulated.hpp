// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text about simulated studies: the mark that every view shows, the screen of `ranktune simulate`, and its table.

#include <span>
#include <string>

#include "report/screens/text.hpp"
#include "simulate/sweep.hpp"
#include "tuner/state.hpp"

namespace ranktune::report {

/// "simulated: 4 groups of 1 rank; no trial was trained"; empty for a real study.
[[nodiscard]] std::string simulated_text(const tuner::State& state);

/// What a simulation gave, and what to type next. `directory`: of the study, as the user would type it.
[[nodiscard]] std::string simulated_screen(const simulate::Setup& setup, const simulate::Figures& figures,
                                           const std::string& directory, const Style& style);

/// One line per combination: medians with quartiles. Not cut to the width of the terminal.
[[nodiscard]] std::string sweep_table(std::span<const simulate::Axis> axes, std::span<const simulate::SweepRow> rows,
                                      const simulate::Setup& setup);

} // namespace ranktune::report
