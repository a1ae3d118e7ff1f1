// SPDX-License-Identifier: Apache-2.0
#include "cli/checks/remarks.hpp"

#include <fmt/format.h>

#include "cli/verbs/verbs.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/study/parse.hpp"
#include "tuner/rules/limits.hpp"

namespace ranktune::cli {
namespace {

/// Why a finished study ignores a change, and what would make the change count.
std::string why_not(const tuner::Tuner& tuner) {
    const auto& state = tuner.state();
    const auto& spec = tuner.spec();
    if (state.outcome == study::StudyOutcome::usage)
        return "every trial would end as the first ones did; mend the study file, and begin again with --fresh";
    if (state.outcome == study::StudyOutcome::no_success && state.in(study::TrialPhase::failed) > 0)
        return "no trial of it has succeeded; it goes on with --restart-errored or --resume-errored";
    if (state.end_reason == study::Reason::study_time && spec.time_budget)
        return fmt::format(
            "study.time_budget ({}) is used up; the study goes on with a longer one, as in "
            "study.time_budget={}",
            study::duration_text(*spec.time_budget), study::duration_text(2 * *spec.time_budget));
    if (tuner::is_limit(state.end_reason))
        return state.end_message + "; the study goes on with another limit in [stop.study]";
    return fmt::format("the study is finished and has nothing more to do; it has with study.num_trials above {}{}",
                       spec.num_trials,
                       state.in(study::TrialPhase::failed) > 0 ? ", --resume-errored or --restart-errored" : "");
}

} // namespace

std::vector<std::string> without_effect(const RunArguments& arguments, const studydir::OpenedStudy& opened) {
    std::vector<std::string> remarks;
    if ((arguments.resume_errored || arguments.restart_errored) && opened.reopened.empty())
        remarks.push_back(fmt::format("{} has no effect: {}",
                                      arguments.resume_errored ? "--resume-errored" : "--restart-errored",
                                      opened.is_new ? "the study is new, and no trial has failed yet"
                                      : opened.tuner->spec().after_trial.command.empty()
                                          ? "no trial of this study has failed"
                                          : "no trial of this study has failed, and no [after_trial] "
                                            "whose checkpoint is there"));
    if (!opened.finished) return remarks;
    std::vector<std::string> changes;
    for (const auto& change : opened.changes) {
        // Digests of input files change nothing: the next start records them.
        if (change.key.starts_with("inputs.")) continue;
        const auto value = [](const std::string& text) { return text.empty() ? std::string("default") : text; };
        changes.push_back(fmt::format("{} {} -> {}", change.key, value(change.before), value(change.after)));
    }
    if (!changes.empty())
        remarks.push_back(fmt::format("not taken over: {}, because {}", base::join(changes), why_not(*opened.tuner)));
    return remarks;
}

} // namespace ranktune::cli
