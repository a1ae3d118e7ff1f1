// SPDX-License-Identifier: Apache-2.0
#pragma once
// Export: the whole study as JSON (schema 1) or as two CSV tables.

#include <functional>
#include <iosfwd>

#include <nlohmann/json_fwd.hpp>

#include "report/view/load.hpp"

namespace ranktune::report {

/// A hyper-parameter's value; non-finite numbers are strings.
[[nodiscard]] nlohmann::ordered_json json_of(const space::Value& value);

/// Calls `visit` for every report in the order of the journal, so that nobody keeps them all in memory.
using EachReport = std::function<void(const std::function<void(const study::Reported&)>& visit)>;

/// One JSON object: schema, study, trials (id, configuration, state, reason, best and last metric, checkpoints,
/// attempts with ranks and hosts, start and end), reports (trial, attempt, iteration, seconds, time, metrics).
/// Non-finite numbers are the strings "nan", "inf", "-inf". Needs a study with its history (load_study). Trials and
/// reports are written one by one, and the study is freed before the reports are read: extra memory is constant.
void export_json(LoadedStudy&& study, const EachReport& each_report, std::ostream& out);
/// Trials as CSV (RFC 4180, header line): one row per trial; columns for its facts, for each hyper-parameter, and for
/// each metric beside the objective two: its newest value, and that of the best iteration (`NAME.at_best`). With
/// several objectives also `pareto_rank`, 0 for the front.
void export_trials_csv(const tuner::Tuner& tuner, const EachReport& each_report, std::ostream& out);
/// Reports as CSV: one row per report, one column per metric. `metrics`: names by MetricId.
void export_reports_csv(const std::vector<std::string>& metrics, const EachReport& each_report, std::ostream& out);

} // namespace ranktune::report
