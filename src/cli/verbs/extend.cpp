// SPDX-License-Identifier: Apache-2.0
// extend: longer training for some trials, as a study of their own.

#include <algorithm>
#include <iostream>

#include <fmt/format.h>

#include "base/number_in.hpp"
#include "cli/checks/missing_records.hpp"
#include "cli/study_input.hpp"
#include "cli/verbs/verbs.hpp"
#include "cli/version.hpp"
#include "ranktune/base/error.hpp"
#include "report/explain/next_steps.hpp"
#include "report/replay/replay.hpp"
#include "report/screens/screens.hpp"
#include "report/view/load.hpp"
#include "studydir/extension/extension.hpp"

namespace ranktune::cli {
namespace {

std::size_t how_many(const std::string& word) {
    const auto count = base::number_in<std::size_t>(word);
    if (!count || *count == 0)
        throw base::UsageError("best " + word + ": give how many of the best trials, as in: best 3");
    return *count;
}

/// `best`, `best 3`, or numbers.
std::vector<base::TrialId> wanted_trials(const tuner::Tuner& tuner, const ExtendArguments& arguments) {
    const auto& words = arguments.trials;
    if (words[0] == "best" && words.size() <= 2)
        return report::best_trials(tuner, words.size() == 2 ? how_many(words[1]) : 1);
    std::vector<base::TrialId> ids;
    for (const std::string& word : words) {
        if (word == "best") throw base::UsageError("give numbers of trials, or best, or best and how many of the best");
        const base::TrialId id = report::trial_named(tuner.state(), word, arguments.directory);
        if (std::ranges::find(ids, id) != ids.end())
            throw base::UsageError("trial #" + std::to_string(id.value()) + " is given twice");
        ids.push_back(id);
    }
    return ids;
}

} // namespace

int extend(const ExtendArguments& arguments) {
    auto& files = storage::posix_file_system();
    const MissingRecords missing(arguments.directory);
    const report::LoadedStudy study = report::load_state(files, arguments.directory);
    missing.tell(study.journal);
    studydir::ExtensionRequest request;
    request.from = absolute_directory(arguments.directory);
    request.to = absolute_directory(arguments.output.empty() ? request.from + "-extended" : arguments.output);
    request.trials = wanted_trials(*study.tuner, arguments);
    request.spec = report::extended(*study.tuner, request.trials, arguments.max_iterations);
    request.version = version();
    const auto trials = studydir::extend_study(files, *study.tuner, request);
    for (std::uint32_t i = 0; i < trials.size(); ++i) {
        const auto& each = trials[i];
        if (each.iteration > 0)
            std::cout << fmt::format("trial #{} goes on as #{} from iteration {} to {}\n", each.was.value(), i,
                                     each.iteration, arguments.max_iterations);
        else
            std::cout << fmt::format(
                "trial #{} begins again as #{}, for no checkpoint of it was kept ([checkpoint] of "
                "the study file says which are)\n",
                each.was.value(), i);
    }
    const std::string to = arguments.output.empty() ? arguments.directory + "-extended" : arguments.output;
    std::cout << fmt::format("made {}. To train: {}\n", to, report::going_on(to));
    return 0;
}

} // namespace ranktune::cli
