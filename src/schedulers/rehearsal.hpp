// SPDX-License-Identifier: Apache-2.0
#pragma once
// What an asynchronous scheduler will do: it is tried in virtual time, on random learning curves.

#include <cstdint>
#include <optional>

#include "ranktune/study/spec.hpp"

namespace ranktune::schedulers {

/// Replaces the estimates of `plan` (trials at its rungs, iterations) by means over some rehearsals on `groups` groups,
/// and adds the range in which most of them lie. Decisions of asynchronous schedulers rest on what has been reported:
/// they promote trials that later ones surpass, more of them than a count by ranks says; the more if the searcher
/// `learns`, so that later trials are better. Of many trials 1,000 are rehearsed; the surplus of the others grows with
/// their number if it learns, else with its square root. Does nothing for a scheduler that is synchronous, or
/// whose plan is no estimate. A function of the study and of `groups`; some hundredths of a second.
void rehearse(study::SchedulerPlan& plan, const study::StudySpec& spec, std::uint32_t groups, bool learns);

} // namespace ranktune::schedulers
