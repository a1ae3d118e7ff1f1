// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the configurations of a trial came from, in words.

#include <cstdint>
#include <string>

#include "ranktune/space/configuration.hpp"
#include "report/view/study_view.hpp"

namespace ranktune::report {

/// Where the first configuration of a trial came from, and what that rests on:
///
///   prepared by auto (gp) from 24 results; expected val_accuracy 0.9712; log of its acquisition -3.214
///
/// `searcher`: its name; `metric`: of the study.
[[nodiscard]] std::string origin_text(const OriginView& origin, const std::string& searcher, const std::string& metric);

/// The same for a trial of a view; of a repeat also where the repeated configuration came from.
[[nodiscard]] std::string origin_text(const StudyView& view, study::TrialId trial);

/// "failed 3 times in a row, at last: `why`", of a searcher.
[[nodiscard]] std::string failure_text(std::uint32_t failures, const std::string& why);

/// What differs from one configuration to the next: ", lr 0.1 -> 0.08"; empty: nothing.
[[nodiscard]] std::string changes_text(const space::Configuration& before, const space::Configuration& after);

} // namespace ranktune::report
