// SPDX-License-Identifier: Apache-2.0
// checkpoint: the weights of a trial, for use elsewhere.

#include <filesystem>
#include <fstream>
#include <iostream>

#include <fmt/format.h>

#include "cli/verbs.hpp"
#include "ranktune/base/error.hpp"
#include "report/load.hpp"
#include "report/safetensors.hpp"
#include "storage/checkpoint_store.hpp"

namespace ranktune::cli {
namespace {

/// `word`: the number of a trial, or "best".
base::TrialId trial_of(const tuner::State& state, const std::string& word, const std::string& directory) {
    if (word == "best") {
        if (!state.best) throw base::UsageError("'" + directory + "' has no best trial yet: none has reported");
        return *state.best;
    }
    return report::existing_trial(state, static_cast<std::uint32_t>(std::stoul(word)), directory);
}

} // namespace

int extract_checkpoint(const CheckpointArguments& arguments) {
    auto& files = storage::posix_file_system();
    const auto study = report::load_study(files, arguments.directory, false);
    const auto& state = study.tuner->state();
    const auto id = trial_of(state, arguments.trial, arguments.directory);
    const auto& trial = state.trial(id);
    if (trial.checkpoints.empty())
        throw base::UsageError(fmt::format(
            "trial #{} has no checkpoint{}; `ranktune best {}` names one that has", id.value(),
            study::is_final(trial.phase) ? ": only the best trial keeps one" : " yet", arguments.directory));
    const auto& checkpoint = *tuner::best_checkpoint(trial, study.tuner->spec().objective.mode);
    if (std::filesystem::is_directory(arguments.directory + "/" + checkpoint.path))
        throw base::UsageError(fmt::format("trial #{} was trained by a program, whose own files are in {}/{}",
                                           id.value(), arguments.directory, checkpoint.path));
    const auto contents = storage::CheckpointStore(files, arguments.directory).load(checkpoint).whole();
    const auto& name = study.tuner->spec().name;
    const std::string path = arguments.output.empty()
                                 ? fmt::format("{}-{}-{}.safetensors", name, id.value(), checkpoint.iteration)
                                 : arguments.output;
    std::ofstream out(path, std::ios::binary);
    if (!out) throw base::UsageError("cannot write '" + path + "'; give another path with -o");
    report::write_safetensors(contents, arguments.all,
                              {{"format", "pt"},
                               {"study", name},
                               {"trial", std::to_string(id.value())},
                               {"iteration", std::to_string(checkpoint.iteration)}},
                              out);
    out.flush();
    if (!out) throw base::UsageError("writing '" + path + "' failed; is there room?");
    std::cout << fmt::format("trial #{} at iteration {}: {}\n", id.value(), checkpoint.iteration, path);
    return 0;
}

} // namespace ranktune::cli
