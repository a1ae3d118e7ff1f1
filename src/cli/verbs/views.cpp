// SPDX-License-Identifier: Apache-2.0
// status, best, logs, export: views of a study directory, without MPI.

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>

#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/checks/missing_records.hpp"
#include "cli/standing.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs/verbs.hpp"
#include "report/endings.hpp"
#include "report/export.hpp"
#include "report/life.hpp"
#include "report/load.hpp"
#include "report/next_steps.hpp"
#include "report/screens.hpp"
#include "report/simulated.hpp"
#include "report/stopping.hpp"
#include "report/text.hpp"
#include "storage/checkpoints/checkpoint_store.hpp"
#include "studydir/lone_reports.hpp"
#include "studydir/study_directory.hpp"
#include "trainables/json_input.hpp"

namespace ranktune::cli {
namespace {

/// Loads the state, and warns when the newest records are missing.
report::LoadedStudy load_state(const std::string& directory) {
    const MissingRecords missing(directory);
    report::LoadedStudy study = report::load_state(storage::posix_file_system(), directory);
    missing.tell(study.journal);
    return study;
}

/// Whether a file of the best trial's checkpoint is not where the journal says.
bool best_is_missing(const report::LoadedStudy& study, const std::string& directory) {
    const auto& state = study.tuner->state();
    if (!state.best) return false;
    const auto* checkpoint = tuner::best_checkpoint(state.trial(*state.best), study.tuner->spec().objective.mode);
    if (checkpoint == nullptr) return false;
    const auto paths = storage::paths_of(checkpoint->path, checkpoint->shards.size());
    return !std::all_of(paths.begin(), paths.end(), [&](const std::string& path) {
        return storage::posix_file_system().exists(directory + "/" + path);
    });
}

/// Adds what the head knows beyond the journal, from the file `status`, which each start writes anew.
void take_status(const std::string& directory, report::Live& live) {
    try {
        const auto status = trainables::read_json(storage::read_text(storage::posix_file_system(),
                                                                     studydir::StudyDirectory{directory}.status_file(),
                                                                     studydir::most_status_bytes));
        if (!status.is_object()) return;
        live.checkpoints_missed = status.value("checkpoints_missed", std::uint64_t{0});
        live.checkpoint_error = status.value("checkpoint_error", std::string());
        live.fallbacks = status.value("checkpoint_fallbacks", std::uint64_t{0});
    } catch (const nlohmann::json::exception&) { // from another version
    } catch (const base::Error&) {               // missing, or unreadable
    }
}

report::Live live_of(const report::LoadedStudy& study, const std::string& directory) {
    const auto& state = study.tuner->state();
    const Standing standing = standing_of(state, directory);
    report::Live live;
    live.directory = directory;
    live.elapsed_s = base::to_seconds(state.now.time_since_epoch());
    live.deadline = standing.text;
    live.interrupted = standing.interrupted;
    if (state.ended || live.interrupted) return live;
    take_status(directory, live);
    live.stopping = report::stopping_text(state, std::chrono::system_clock::now());
    return live;
}

nlohmann::ordered_json summary(const report::LoadedStudy& study, const std::string& directory) {
    const auto& state = study.tuner->state();
    const Standing standing = standing_of(state, directory);
    const bool interrupted = standing.interrupted;
    nlohmann::ordered_json root = {{"schema", 1},
                                   {"name", study.tuner->spec().name},
                                   {"ended", state.ended},
                                   {"trials", state.trials.size()},
                                   {"num_trials", study.tuner->spec().num_trials},
                                   {"reports", state.reports},
                                   {"iterations", state.iterations}};
    if (!state.simulation.empty()) root["simulated"] = state.simulation;
    root["exit_code"] =
        state.ended ? nlohmann::ordered_json(static_cast<int>(state.outcome)) : nlohmann::ordered_json(nullptr);
    if (standing.outcome) root["exit_code"] = static_cast<int>(standing.outcome->outcome);
    root["stopping"] =
        state.draining && !state.ended && !interrupted ? nlohmann::ordered_json(state.drain_message) : nullptr;
    for (std::size_t i = 0; i < study::phase_count; ++i) {
        const auto phase = static_cast<study::TrialPhase>(i);
        root["states"][std::string(study::name(phase))] = state.in(phase);
    }
    if (interrupted) { // nobody runs these trials any more
        auto& states = root["states"];
        states["interrupted"] = state.in(study::TrialPhase::running) + state.in(study::TrialPhase::ending);
        states["running"] = states["ending"] = 0;
    }
    if (state.best) {
        const auto& trial = state.trial(*state.best);
        root["best"] = {{"trial", state.best->value()},
                        {"metric", study.tuner->spec().objective.metric},
                        {"value", trial.best},
                        {"iteration", trial.best_iteration},
                        {"state", study::name(trial.phase)}};
        nlohmann::ordered_json configuration = nlohmann::ordered_json::object();
        for (const auto& entry : tuner::best_configuration(trial).entries())
            configuration[entry.name] = report::json_of(entry.value);
        root["best"]["configuration"] = configuration;
        const auto* checkpoint = tuner::best_checkpoint(trial, study.tuner->spec().objective.mode);
        root["best"]["checkpoint"] =
            checkpoint == nullptr ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(checkpoint->path);
        if (checkpoint != nullptr) root["best"]["checkpoint_iteration"] = checkpoint->iteration;
    } else {
        root["best"] = nullptr;
    }
    return root;
}

void print(const nlohmann::ordered_json& json) {
    std::cout << json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
}

} // namespace

int status(const std::string& directory, Format format, bool all) {
    if (all && format == Format::json)
        throw base::UsageError("--all is for text; as JSON, `ranktune export " + directory +
                               " --format json` has every trial");
    const auto study = load_state(directory);
    if (format == Format::json) {
        print(summary(study, directory));
        return 0;
    }
    const report::Live live = live_of(study, directory);
    const report::Style style = detect_terminal().style;
    std::cout << report::live_table(*study.tuner, live, style, all ? SIZE_MAX : 20);
    std::cout << report::lone_reports_text(studydir::lone_reports(directory), style);
    const auto& state = study.tuner->state();
    const bool stopped = state.ended ? !tuner::is_over(state) : live.interrupted;
    if (stopped && state.simulation.empty())
        std::cout << report::paragraph(
            "stopped, goes on with: " + report::unbroken(report::command_text({"run", directory})), style);
    if (study.journal.cut_bytes > 0)
        std::cout << report::prose(
            "journal",
            fmt::format("{}; {} of an unfinished one at the end", report::counted(study.journal.records, "record"),
                        report::counted(study.journal.cut_bytes, "byte")),
            style);
    return 0;
}

int best(const std::string& directory, Format format) {
    const auto study = load_state(directory);
    const bool missing = best_is_missing(study, directory);
    if (format == Format::json) {
        const auto all = summary(study, directory);
        nlohmann::ordered_json root = {{"schema", 1}, {"best", all["best"]}};
        if (missing) root["best"]["checkpoint_missing"] = true;
        if (all.contains("simulated")) root["simulated"] = all["simulated"];
        print(root);
    } else {
        std::cout << report::best_screen(*study.tuner, directory, detect_terminal().style, missing);
    }
    return 0;
}

int logs(const std::string& directory, const std::string& word) {
    const auto study = load_state(directory);
    const auto id = report::trial_named(study.tuner->state(), word, directory);
    const std::uint32_t trial = id.value();
    const auto& state = study.tuner->state().trial(id);
    // Output of a program could hold escape sequences, which a terminal would execute; a file gets it unchanged.
    const bool terminal = isatty(STDOUT_FILENO) != 0;
    const auto shown = [&](const std::string& text) { return terminal ? report::escaped(text) : text; };
    const report::Style style = detect_terminal().style;
    if (const auto mark = report::simulated_text(study.tuner->state()); !mark.empty())
        std::cout << report::paragraph(mark, style);
    std::cout << report::paragraph(
        fmt::format("trial #{}: {}, iteration {}", trial, study::name(state.phase), state.iteration), style);
    const auto& metric = study.tuner->spec().objective.metric;
    for (const auto& line : report::life_of(storage::posix_file_system(), directory, id, metric)) {
        // Wrap lines for a terminal only: in a file they are searched.
        const std::string text = shown(line);
        std::cout << (terminal
                          ? report::prose(text.substr(0, report::label_width), text.substr(report::label_width), style)
                          : text + "\n");
    }
    if (!state.failure.empty()) std::cout << "message: " << shown(study::describe(state.failure)) << "\n";
    const std::regex mine(fmt::format(R"((^|[ \[#])(trial=|#){}([ .\]:]|$))", trial));
    const std::filesystem::path folder = std::filesystem::path(directory) / "logs";
    if (!std::filesystem::is_directory(folder)) return 0;
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        if (entry.path().extension() == ".log") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const auto& file : files) {
        std::ifstream in(file);
        for (std::string line; std::getline(in, line);) {
            if (std::regex_search(line, mine))
                std::cout << shown(file.filename().string()) << ": " << shown(line) << "\n";
        }
    }
    return 0;
}

int export_study(const std::string& directory, Format format, const std::string& table, const std::string& output) {
    if (format == Format::json && !table.empty())
        throw base::UsageError("--table is for csv; the JSON has trials and reports");
    auto& files = storage::posix_file_system();
    const MissingRecords missing(directory);
    auto study = report::load_study(files, directory); // not load_state: a large snapshot takes more memory
    const bool incomplete = missing.tell(study.journal);
    if (const auto mark = report::simulated_text(study.tuner->state()); !mark.empty() && format == Format::csv)
        std::cerr << mark << "\n"; // a table has no place for it
    const std::uint64_t records = study.journal.records;
    const report::EachReport each_report = [&](const auto& visit) {
        report::read_reports(files, directory, records, visit);
    };
    std::ofstream file;
    if (!output.empty()) {
        file.open(output, std::ios::binary);
        if (!file) throw base::UsageError("cannot write '" + output + "'; give another path with -o");
    }
    std::ostream& out = output.empty() ? std::cout : file;
    if (format == Format::json) {
        report::export_json(std::move(study), each_report, out);
    } else if (table == "reports") {
        const std::vector<std::string> metrics = study.tuner->state().metrics;
        study = {};
        report::export_reports_csv(metrics, each_report, out);
    } else {
        report::export_trials_csv(*study.tuner, out);
    }
    out.flush();
    if (!output.empty() && !out) throw base::Error("writing '" + output + "' failed; is there room?");
    return incomplete ? 1 : 0; // scripts that use the table must notice
}

} // namespace ranktune::cli
