// SPDX-License-Identifier: Apache-2.0
// checkpoint: the weights of a trial, for use elsewhere.

#include <iostream>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/checks/missing_records.hpp"
#include "cli/terminal/output_file.hpp"
#include "cli/verbs/verbs.hpp"
#include "ranktune/base/error.hpp"
#include "report/explain/endings.hpp"
#include "report/export/safetensors.hpp"
#include "report/export/take_checkpoint.hpp"
#include "report/screens/text.hpp"
#include "report/view/load.hpp"
#include "storage/checkpoints/checkpoint_store.hpp"

namespace ranktune::cli {
namespace {

/// The best checkpoint, then the others from the newest on.
std::vector<study::CheckpointRef> candidates(const tuner::Trial& trial, const study::Objective& objective) {
    std::vector<study::CheckpointRef> found{*tuner::best_checkpoint(trial, objective)};
    for (auto other = trial.checkpoints.rbegin(); other != trial.checkpoints.rend(); ++other)
        if (other->path != found.front().path) found.push_back(*other);
    return found;
}

} // namespace

int extract_checkpoint(const CheckpointArguments& arguments) {
    std::optional<OutputFile> output; // refuse a bad path before reading anything
    if (!arguments.output.empty()) output.emplace(arguments.output);
    auto& files = storage::posix_file_system();
    storage::CheckpointStore store(files, arguments.directory);
    std::optional<report::LoadedStudy> study; // as of the last read: the study may be running
    base::TrialId id{};
    bool first = true;
    const auto list = [&] {
        const MissingRecords missing(arguments.directory);
        study.emplace(report::load_study(files, arguments.directory));
        if (std::exchange(first, false)) missing.tell(study->journal);
        const auto& state = study->tuner->state();
        if (!state.simulation.empty())
            throw base::UsageError("'" + arguments.directory + "' holds a simulated study, which has no weights");
        id = report::trial_named(state, arguments.trial, arguments.directory);
        const auto& trial = state.trial(id);
        if (trial.checkpoints.empty() && state.best == id)
            throw base::UsageError(fmt::format(
                "trial #{}, the best one, has no checkpoint{}: see [checkpoint] of the study file, and the warnings of "
                "`ranktune status {}`",
                id.value(), study::is_final(trial.phase) ? "; none was kept" : " yet", arguments.directory));
        const bool best_has = state.best && !state.trial(*state.best).checkpoints.empty();
        if (trial.checkpoints.empty())
            throw base::UsageError(fmt::format(
                "trial #{} has no checkpoint{}; `ranktune {} {}` {}", id.value(),
                study::is_final(trial.phase) ? ": only the best trial keeps one" : " yet", best_has ? "best" : "status",
                arguments.directory, best_has ? "names one that has" : "tells what there is"));
        auto wanted = candidates(trial, study->tuner->spec().objective);
        if (study->tuner->spec().trainable.program)
            throw base::UsageError(fmt::format("trial #{} was trained by a program, whose own files are in {}/{}",
                                               id.value(), arguments.directory, wanted.front().path));
        return wanted;
    };
    const auto [checkpoint, contents] = report::take_checkpoint(
        list, [&](const auto& one) { return store.load(one).whole(); },
        [](const std::string& sentence) { std::cerr << report::escaped(sentence) << "\n"; });
    const auto& name = study->tuner->spec().name;
    if (!output) output.emplace(fmt::format("{}-{}-{}.safetensors", name, id.value(), checkpoint.iteration));
    const std::map<std::string, std::string> metadata{{"format", "pt"},
                                                      {"study", name},
                                                      {"trial", std::to_string(id.value())},
                                                      {"iteration", std::to_string(checkpoint.iteration)}};
    write_whole(*output, [&, &contents = contents](std::ostream& out) {
        report::write_safetensors(contents, arguments.all, metadata, out);
    });
    // Keep the pipe for the weights.
    (output->through ? std::cerr : std::cout)
        << fmt::format("trial #{} at iteration {}: {}\n", id.value(), checkpoint.iteration,
                       report::escaped(arguments.output.empty() ? output->path : arguments.output))
        << report::best_aside(study->tuner->state().trial(id), checkpoint, study->tuner->spec().objective);
    return 0;
}

} // namespace ranktune::cli
