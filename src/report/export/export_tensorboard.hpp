// SPDX-License-Identifier: Apache-2.0
#pragma once
// A study for TensorBoard: a folder of event files, with its hyper-parameters for the plugin `hparams`.

#include <functional>
#include <string>

#include "report/export/export.hpp"
#include "report/view/history.hpp"

namespace ranktune::report {

/// Takes the bytes of one file; `path` is relative to the folder of the study: "trial-0007/events.out.tfevents...".
using WriteFile = std::function<void(const std::string& path, const std::string& bytes)>;

/// One file for the study, which names hyper-parameters and metrics, and one for each trial, a run: its configuration
/// (that of its best report), every metric of every report by iteration, and how it ended. Values are floats of 32
/// bits, as TensorBoard stores them. `hparams` shows the last value of each metric. Keeps all events in memory, about
/// 60 bytes a value.
void export_tensorboard(const LoadedStudy& study, const History& history, const EachReport& each_report,
                        const WriteFile& write);

} // namespace ranktune::report
