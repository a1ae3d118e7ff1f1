// SPDX-License-Identifier: Apache-2.0
#pragma once
// Why a trial is where it is: what it was compared with at each decision, and why it does not train now.

#include <string>

#include "report/screens/text.hpp"
#include "report/view/study_view.hpp"

namespace ranktune::report {

/// In lines for a terminal. `directory`: of the study, as the user types it. `is_run`: somebody runs the study now.
/// `records`: with the numbers of the journal's records that each line rests on. Requires a trial of the study.
///
///   trial     #8: paused at iteration 9 of 27, val_accuracy 0.9583 at iteration 9
///   rung 1    0.9112, place 7 of 60; the best 20 went on, down to 0.8969: went on
///   now       waits at rung 9 with 12 entries ...
[[nodiscard]] std::string explanation(const StudyView& view, study::TrialId trial, const std::string& directory,
                                      bool is_run, const Style& style, bool records = false);

/// The study as a whole: what trains and what waits now, where the time of its ranks went, and what to do about the
/// largest losses.
[[nodiscard]] std::string study_explanation(const StudyView& view, const std::string& directory, bool is_run,
                                            const Style& style);

} // namespace ranktune::report
