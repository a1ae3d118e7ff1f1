// SPDX-License-Identifier: Apache-2.0
// export: a study for other programs.

#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "cli/checks/missing_records.hpp"
#include "cli/study_input.hpp"
#include "cli/terminal/output_file.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/verbs/view_verbs.hpp"
#include "ranktune/base/error.hpp"
#include "report/export/export.hpp"
#include "report/screens/simulated.hpp"
#include "report/screens/text.hpp"
#include "report/view/history.hpp"
#include "report/view/load.hpp"
#include "study/printed_values.hpp"
#include "studydir/trial_folder.hpp"
#include "trainables/program/row_table.hpp"

namespace ranktune::cli {
namespace {

/// A new folder: TensorBoard would show runs of an earlier export together with these.
void export_to_tensorboard(const report::LoadedStudy& study, const report::History& history,
                           const report::EachReport& each_report, const std::string& output) {
    const std::filesystem::path folder = output.empty() ? study.tuner->spec().name + "-tensorboard" : output;
    if (std::filesystem::exists(folder))
        throw base::UsageError("'" + folder.string() + "' exists; give another folder with -o, or remove it");
    std::uint64_t count = 0;
    report::export_tensorboard(study, history, each_report, [&](const std::string& path, const std::string& bytes) {
        std::error_code error;
        std::filesystem::create_directories((folder / path).parent_path(), error);
        write_whole(OutputFile((folder / path).string()), [&](std::ostream& out) { out << bytes; });
        ++count;
    });
    std::cout << report::prose("wrote",
                               report::unbroken(folder.string()) + "  " + report::counted(count, "file") + "; " +
                                   report::unbroken("tensorboard --logdir " + folder.string()),
                               detect_terminal().style);
}

/// The rows of the study's table, if it has one and that is still there, or above the study, which has moved with it.
report::RowColumns row_columns(const study::StudySpec& spec, const std::string& directory) {
    const auto* option = spec.trainable.program ? spec.trainable.options.find(study::table_option) : nullptr;
    if (option == nullptr) return {};
    std::string path = option->as_string();
    try {
        if (std::error_code error; !std::filesystem::exists(path, error)) {
            const std::string name = std::filesystem::path(path).filename().string();
            const std::string above = studydir::find_above(absolute_directory(directory), name);
            if (!above.empty()) path = above;
        }
        const std::string* known = spec.trainable.content_of(study::table_option);
        if (known != nullptr && *known != storage::content_text(storage::posix_file_system(), path))
            throw base::Error(
                "'" + path + "' has changed since the study began; give it its old content back, then ranktune export");
        const auto table = std::make_shared<const trainables::RowTable>(path);
        return {table->columns(), [table](const space::Configuration& configuration) {
                    const space::Value* row = configuration.find(study::row_parameter);
                    const auto number = row == nullptr ? table->rows() : static_cast<std::size_t>(row->as_int());
                    return number < table->rows() ? table->cells(number)
                                                  : std::vector<std::string>(table->columns().size());
                }};
    } catch (const base::Error& error) {
        std::cerr << "without the columns of the table: " << error.what() << "\n";
        return {};
    }
}

} // namespace

int export_study(const ExportArguments& arguments) {
    const std::string& directory = arguments.directory;
    const std::string& output = arguments.output;
    const ExportFormat format = arguments.format;
    if (format != ExportFormat::csv && !arguments.table.empty())
        throw base::UsageError("--table is for csv; the other formats have trials and reports");
    auto& files = storage::posix_file_system();
    const MissingRecords missing(directory);
    report::History history;
    const bool needs_history = format == ExportFormat::optuna || format == ExportFormat::tensorboard;
    // Not load_state: a large snapshot takes more memory.
    auto study = report::load_study(files, directory, needs_history ? &history : nullptr);
    const bool incomplete = missing.tell(study.journal);
    if (const auto mark = report::simulated_text(study.tuner->state()); !mark.empty() && format != ExportFormat::json)
        std::cerr << mark << "\n"; // these formats have no place for it
    const std::uint64_t records = study.journal.records;
    const report::EachReport each_report = [&](const auto& visit) {
        report::read_reports(files, directory, records, visit);
    };
    if (format == ExportFormat::tensorboard) {
        export_to_tensorboard(study, history, each_report, output);
        return incomplete ? 1 : 0;
    }
    const auto write = [&](std::ostream& out) {
        if (format == ExportFormat::json) {
            report::export_json(std::move(study), each_report, out);
        } else if (format == ExportFormat::optuna) {
            report::export_optuna(study, history, each_report, out);
        } else if (arguments.table == "reports") {
            const std::vector<std::string> metrics = study.tuner->state().metrics;
            study = {};
            report::export_reports_csv(metrics, each_report, out);
        } else {
            const study::StudySpec& spec = study.tuner->spec();
            const report::RowColumns rows = row_columns(spec, directory);
            if (spec.trainable.program && study::compares_nothing(spec))
                report::export_tasks_csv(study, each_report, out, rows);
            else
                report::export_trials_csv(*study.tuner, each_report, out, rows);
        }
    };
    if (output.empty())
        write(std::cout);
    else
        write_whole(OutputFile(output), write);
    return incomplete ? 1 : 0; // scripts that use the table must notice
}

} // namespace ranktune::cli
