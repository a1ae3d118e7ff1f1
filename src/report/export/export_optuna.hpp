// SPDX-License-Identifier: Apache-2.0
#pragma once
// A study as a journal of Optuna (JournalFileStorage, Optuna 3.1 and later), which `optuna.load_study` opens.

#include <iosfwd>

#include "report/export/export.hpp"
#include "report/view/history.hpp"

namespace ranktune::report {

/// Lines of JSON, in the order in which Optuna takes them: the study; its trials with their parameters and
/// distributions; reports of the objective as intermediate values, by iteration, unless there are several; the ends of
/// trials.
///
/// A finished trial is COMPLETE with its best value, one that was stopped early is PRUNED with its best value, one that
/// failed or has no finite value is FAIL, any other RUNNING; in a study that is over, a paused trial is PRUNED, too.
/// Normal distributions become an interval that holds all values of the study, as do bounds that an exploit has left; a
/// list in a choice becomes its text. Constants are user attributes of each trial, as are reasons and messages.
void export_optuna(const LoadedStudy& study, const History& history, const EachReport& each_report, std::ostream& out);

} // namespace ranktune::report
