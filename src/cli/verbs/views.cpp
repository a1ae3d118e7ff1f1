// SPDX-License-Identifier: Apache-2.0
// best: a view of a study directory, without MPI.

#include <algorithm>
#include <iostream>

#include <nlohmann/json.hpp>

#include "cli/study_summary.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/verbs/verbs.hpp"
#include "report/screens/screens.hpp"
#include "report/screens/text.hpp"
#include "report/view/best_by_model.hpp"
#include "report/view/load.hpp"
#include "storage/checkpoints/checkpoint_store.hpp"
#include "study/printed_values.hpp"

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
    const bool has_one = study.tuner->state().best || study::compares_nothing(study.tuner->spec());
    return static_cast<int>(has_one ? study::StudyOutcome::ok : study::StudyOutcome::no_success);
}

} // namespace ranktune::cli
