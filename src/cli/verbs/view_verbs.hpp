// SPDX-License-Identifier: Apache-2.0
#pragma once
// The verbs that look at studies and have several options. Directories are those of studies, never files.

#include <string>
#include <vector>

#include "cli/verbs/verbs.hpp"

namespace ranktune::cli {

struct ListArguments {
    std::vector<std::string> directories; ///< folders of studies, or studies; empty: the working directory
    Format format = Format::text;
};
/// Lists studies. A study that cannot be read is listed with its problem, and is no error.
int list_studies(const ListArguments& arguments);

struct StatusArguments {
    std::string directory;
    Format format = Format::text;
    bool all = false;                 ///< every trial, not the first 20
    std::vector<std::string> columns; ///< empty: chosen by the width of the terminal
    std::string sort;                 ///< "lr" or "lr:desc"; empty: running trials first, then by the metric
    std::string filter;               ///< a condition; empty: every trial
    bool watch = false;
};
int status(const StatusArguments& arguments);

struct LogsArguments {
    std::string directory;
    std::string trial; ///< digits, or "best"; empty: all lines of all logs
    bool follow = false;
    Format format = Format::text;
};
int logs(const LogsArguments& arguments);
/// The last part of what `logs` prints of a trial, for a page. Throws base::UsageError when there is no such trial.
[[nodiscard]] std::string log_of(const std::string& directory, base::TrialId trial);

struct ServeArguments {
    std::vector<std::string> directories; ///< of studies
    std::uint16_t port = 0;               ///< 0: any free one
    bool read_only = false;               ///< pages have no controls
};
/// Serves live pages on 127.0.0.1 until it is ended.
int serve_pages(const ServeArguments& arguments);
/// The studies of a folder, also those whose journal is gone, or the folder itself if it is one; by name. Adds to
/// `closed` the folders that this user may not read. Throws base::UsageError if it is no folder.
[[nodiscard]] std::vector<std::string> studies_in(const std::string& folder,
                                                  std::vector<std::string>* closed = nullptr);
/// Keeps the first of several paths that lead to the same directory.
void drop_repeated(std::vector<std::string>& directories);

struct CompareArguments {
    std::vector<std::string> directories;
    Format format = Format::text;
};
int compare(const CompareArguments& arguments);

enum class ExportFormat : std::uint8_t { json, csv, tensorboard, optuna };
struct ExportArguments {
    std::string directory;
    ExportFormat format = ExportFormat::json;
    std::string table;  ///< of csv: "trials" or "reports"; empty: trials
    std::string output; ///< file, or for tensorboard a folder; empty: standard output
};
/// Returns 1 if a journal's newest records are missing, else 0.
int export_study(const ExportArguments& arguments);

} // namespace ranktune::cli
