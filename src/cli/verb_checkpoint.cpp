// SPDX-License-Identifier: Apache-2.0
// checkpoint: the weights of a trial, for use elsewhere.

#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <utility>
#include <vector>

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

/// The best one first, then the others, the newest first.
std::vector<study::CheckpointRef> candidates(const tuner::TrialState& trial, study::Mode mode) {
    std::vector<study::CheckpointRef> found{*tuner::best_checkpoint(trial, mode)};
    for (auto other = trial.checkpoints.rbegin(); other != trial.checkpoints.rend(); ++other)
        if (other->path != found.front().path) found.push_back(*other);
    return found;
}

/// The first that can be read; says of which it is not so.
std::pair<study::CheckpointRef, study::MemoryState> first_readable(
    storage::CheckpointStore& store, const std::vector<study::CheckpointRef>& candidates) {
    for (auto candidate = candidates.begin();; ++candidate) {
        try {
            return {*candidate, store.load(*candidate).whole()};
        } catch (const base::Error& error) {
            if (candidate + 1 == candidates.end()) throw;
            std::cerr << fmt::format("the checkpoint of iteration {} cannot be used: {}; taking that of iteration {}\n",
                                     candidate->iteration, error.what(), (candidate + 1)->iteration);
        }
    }
}

/// Writes a file whole: under another name first, so that no half of it is ever taken for it.
void write_whole(const std::string& path, const std::function<void(std::ostream&)>& write) {
    const std::string aside = path + ".tmp";
    std::ofstream out(aside, std::ios::binary | std::ios::trunc);
    if (!out) throw base::UsageError("cannot write '" + path + "'; give another path with -o");
    std::error_code ignored;
    try {
        write(out);
        out.close();
        if (!out) throw base::UsageError("writing '" + path + "' failed; is there room?");
        std::filesystem::rename(aside, path);
    } catch (...) {
        std::filesystem::remove(aside, ignored);
        throw;
    }
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
    const auto wanted = candidates(trial, study.tuner->spec().objective.mode);
    if (std::filesystem::is_directory(arguments.directory + "/" + wanted.front().path))
        throw base::UsageError(fmt::format("trial #{} was trained by a program, whose own files are in {}/{}",
                                           id.value(), arguments.directory, wanted.front().path));
    storage::CheckpointStore store(files, arguments.directory);
    const auto [checkpoint, contents] = first_readable(store, wanted);
    const auto& name = study.tuner->spec().name;
    const std::string path = arguments.output.empty()
                                 ? fmt::format("{}-{}-{}.safetensors", name, id.value(), checkpoint.iteration)
                                 : arguments.output;
    const std::map<std::string, std::string> metadata{{"format", "pt"},
                                                      {"study", name},
                                                      {"trial", std::to_string(id.value())},
                                                      {"iteration", std::to_string(checkpoint.iteration)}};
    write_whole(path, [&, &contents = contents](std::ostream& out) {
        report::write_safetensors(contents, arguments.all, metadata, out);
    });
    std::cout << fmt::format("trial #{} at iteration {}: {}\n", id.value(), checkpoint.iteration, path);
    return 0;
}

} // namespace ranktune::cli
