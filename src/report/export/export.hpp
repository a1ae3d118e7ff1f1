// SPDX-License-Identifier: Apache-2.0
#pragma once
// Export: the whole study as JSON (schema 1) or as two CSV tables.

#include <functional>
#include <iosfwd>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "report/export/export.hpp"
#include "report/view/history.hpp"
#include "report/view/load.hpp"

namespace ranktune::report {

/// A hyper-parameter's value; non-finite numbers are strings.
[[nodiscard]] nlohmann::ordered_json json_of(const space::Value& value);
[[nodiscard]] nlohmann::ordered_json json_of(const space::Configuration& configuration);

/// Calls `visit` for every report in the order of the journal, so that nobody keeps them all in memory.
using EachReport = std::function<void(const std::function<void(const study::Reported&)>& visit)>;

// The configuration of a trial is that of its best report: a member of a population may have another one since.

/// What the rows of a study's table say (`table` of [trainable]).
struct RowColumns {
    std::vector<std::string> names;
    /// One per name.
    std::function<std::vector<std::string>(const space::Configuration&)> cells;
};

/// One JSON object: schema, study, trials (id, configuration, state, reason, best and last metric, checkpoints,
/// attempts with ranks and hosts, start and end), reports (trial, attempt, iteration, seconds, time, metrics).
/// Non-finite numbers are the strings "nan", "inf", "-inf". Needs a study with its history (load_study). Trials and
/// reports are written one by one, and the study is freed before the reports are read: extra memory is constant.
void export_json(LoadedStudy&& study, const EachReport& each_report, std::ostream& out);
/// Trials as CSV (RFC 4180, header line): one row per trial; columns for its facts, for each hyper-parameter, and for
/// each metric beside the objective two: its newest value, and that of the best iteration (`NAME.at_best`). With
/// several objectives also `pareto_rank`, 0 for the front.
/// `rows`: further columns of a configuration.
void export_trials_csv(const tuner::Tuner& tuner, const EachReport& each_report, std::ostream& out,
                       const RowColumns& rows = {});
/// The tasks of a study that compares nothing (study::compares_nothing), as CSV: number, state, exit code (128 + N for
/// signal N), host, seconds and number of the last attempt, message; the hyper-parameters or the cells of its row; the
/// numbers and texts that it gave. Needs a study with its history.
void export_tasks_csv(const LoadedStudy& study, const EachReport& each_report, std::ostream& out,
                      const RowColumns& rows = {});
/// Reports as CSV: one row per report, one column per metric. `metrics`: names by MetricId.
void export_reports_csv(const std::vector<std::string>& metrics, const EachReport& each_report, std::ostream& out);

// ---- A study as a journal of Optuna (JournalFileStorage, Optuna 3.1 and later), which `optuna.load_study` opens.

/// Lines of JSON, in the order in which Optuna takes them: the study; its trials with their parameters and
/// distributions; reports of the objective as intermediate values, by iteration, unless there are several; the ends of
/// trials.
///
/// A finished trial is COMPLETE with its best value, one that was stopped early is PRUNED with its best value, one that
/// failed or has no finite value is FAIL, any other RUNNING; in a study that is over, a paused trial is PRUNED, too.
/// Normal distributions become an interval that holds all values of the study, as do bounds that an exploit has left; a
/// list in a choice becomes its text. Constants are user attributes of each trial, as are reasons and messages.
void export_optuna(const LoadedStudy& study, const History& history, const EachReport& each_report, std::ostream& out);

// ---- A study for TensorBoard: a folder of event files, with its hyper-parameters for the plugin `hparams`.

/// Takes the bytes of one file; `path` is relative to the folder of the study: "trial-0007/events.out.tfevents...".
using WriteFile = std::function<void(const std::string& path, const std::string& bytes)>;

/// One file for the study, which names hyper-parameters and metrics, and one for each trial, a run: its configuration
/// (that of its best report), every metric of every report by iteration, and how it ended. Values are floats of 32
/// bits, as TensorBoard stores them. `hparams` shows the last value of each metric. Keeps all events in memory, about
/// 60 bytes a value.
void export_tensorboard(const LoadedStudy& study, const History& history, const EachReport& each_report,
                        const WriteFile& write);

} // namespace ranktune::report
