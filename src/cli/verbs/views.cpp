// SPDX-License-Identifier: Apache-2.0
// best and logs: views of a study directory, without MPI.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>

#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/study_summary.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/verbs/verbs.hpp"
#include "report/explain/life.hpp"
#include "report/screens/screens.hpp"
#include "report/screens/simulated.hpp"
#include "report/screens/text.hpp"
#include "report/view/best_by_model.hpp"
#include "report/view/load.hpp"
#include "storage/checkpoints/checkpoint_store.hpp"

namespace ranktune::cli {
namespace {

/// Whether a file of the best trial's checkpoint is not where the journal says.
bool best_is_missing(const report::LoadedStudy& study, const std::string& directory) {
    const auto& state = study.tuner->state();
    if (!state.best) return false;
    const auto* checkpoint = tuner::best_checkpoint(state.trial(*state.best), study.tuner->spec().objective);
    if (checkpoint == nullptr) return false;
    const auto paths = storage::paths_of(checkpoint->path, checkpoint->shards.size());
    return !std::all_of(paths.begin(), paths.end(), [&](const std::string& path) {
        return storage::posix_file_system().exists(directory + "/" + path);
    });
}

} // namespace

int best(const std::string& directory, Format format) {
    const auto study = load_state(directory);
    const bool missing = best_is_missing(study, directory);
    if (format == Format::json) {
        const auto all = summary(study, directory);
        nlohmann::ordered_json root = {{"schema", 1}, {"best", all["best"]}};
        for (const char* key : {"front", "nearest"})
            if (all.contains(key)) root[key] = all[key];
        if (missing) root["best"]["checkpoint_missing"] = true;
        if (const auto by_mean = report::best_by_model(*study.tuner))
            root["by_mean"] = {{"trial", by_mean->trial.value()},
                               {"mean", by_mean->mean},
                               {"deviation", by_mean->deviation},
                               {"results", by_mean->results}};
        if (all.contains("simulated")) root["simulated"] = all["simulated"];
        print(root);
    } else {
        std::cout << report::best_screen(*study.tuner, directory, detect_terminal().style, missing);
    }
    return static_cast<int>(study.tuner->state().best ? study::StudyOutcome::ok : study::StudyOutcome::no_success);
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
        std::error_code error; // a FIFO would block for ever
        if (entry.path().extension() == ".log" && entry.is_regular_file(error)) files.push_back(entry.path());
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

} // namespace ranktune::cli
