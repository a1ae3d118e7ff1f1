// SPDX-License-Identifier: Apache-2.0
// Start, end and best screens.

#include "report/screens.hpp"

#include <algorithm>
#include <map>

#include "report/plan.hpp"

#include <fmt/format.h>

namespace ranktune::report {
namespace {

using study::TrialPhase;
using tuner::TrialState;

std::string rungs_text(const Plan& expected) {
    std::string levels;
    std::string counts;
    for (const auto& rung : expected.rungs) {
        levels += (levels.empty() ? "" : "/") + std::to_string(rung.iteration);
        counts += (counts.empty() ? "" : "/") + std::to_string(rung.trials);
    }
    return fmt::format("rungs {}: about {} trials", levels, counts);
}

std::string configuration_text(const space::Configuration& configuration) {
    std::string text;
    for (const auto& entry : configuration.entries()) {
        text += (text.empty() ? "" : " ") + entry.name + "=";
        text += entry.value.is_list() ? "[" + value_text(entry.value) + "]" : value_text(entry.value);
    }
    return text.empty() ? "(no hyper-parameters)" : text;
}

/// Failed trials, grouped by message (in one line, to be searched for): `#21 #44: loss is NaN at iteration 2 (2
/// attempts each)`.
std::string failures(const tuner::State& state, const Style& style) {
    std::map<std::string, std::vector<std::uint32_t>> by_message;
    for (std::uint32_t i = 0; i < state.trials.size(); ++i) {
        if (state.trials[i].phase == TrialPhase::failed) by_message[state.trials[i].message].push_back(i);
    }
    std::string text;
    constexpr std::size_t shown = 5;
    std::size_t groups = 0;
    for (const auto& [message, trials] : by_message) {
        if (++groups > shown) {
            text += labelled(
                "", fmt::format("and {} other messages: ranktune export --format json", by_message.size() - shown));
            break;
        }
        std::string ids;
        for (std::size_t i = 0; i < std::min<std::size_t>(trials.size(), 6); ++i) ids += fmt::format("#{} ", trials[i]);
        if (trials.size() > 6) ids += fmt::format("and {} more", trials.size() - 6);
        if (ids.back() == ' ') ids.pop_back();
        const std::string first_line = message.substr(0, message.find('\n'));
        text += labelled(groups == 1 ? "failed" : "", ids + ": " + (first_line.empty() ? "no message" : first_line));
    }
    return paint(text, text.empty() ? Tone::plain : Tone::bad, style);
}

/// Why the study ended, when that is more than "everything is done"; what failed trials said is told once, with them.
std::string why(const tuner::State& state) {
    if (state.end_reason == study::Reason::study_complete) return {};
    const bool told = std::any_of(state.trials.begin(), state.trials.end(), [&](const TrialState& trial) {
        return trial.phase == TrialPhase::failed && trial.message == state.end_message;
    });
    if (!told) return state.end_message;
    return study::describe(state.end_reason, static_cast<double>(state.early_failures), 0.0);
}

std::string training_text(const tuner::Tuner& tuner) {
    const auto& state = tuner.state();
    const std::uint64_t full = static_cast<std::uint64_t>(tuner.spec().num_trials) * tuner.spec().max_iterations;
    const double share = full == 0 ? 0.0 : static_cast<double>(state.iterations) / static_cast<double>(full);
    double training = 0.0;
    for (const auto& trial : state.trials) training += trial.seconds;
    std::string text =
        fmt::format("{} of {} iterations ({:.0f} %)", grouped(state.iterations), grouped(full), 100.0 * share);
    if (state.iterations > 0) {
        const double all = training / static_cast<double>(state.iterations) * static_cast<double>(full);
        text += fmt::format(", {} of an estimated {} of training time", short_duration(training), short_duration(all));
    }
    return text;
}

std::string next_steps(const tuner::Tuner& tuner, const FilesInfo& files) {
    const auto& state = tuner.state();
    if (state.outcome == study::StudyOutcome::resumable) {
        return labelled("next", fmt::format("ranktune run {}      # goes on; what is there: ranktune status {}",
                                            files.study_file, files.directory));
    }
    if (state.outcome == study::StudyOutcome::no_success || state.outcome == study::StudyOutcome::usage) {
        const bool errored = state.outcome == study::StudyOutcome::no_success;
        return labelled("next", fmt::format("mend it, then: ranktune run {} {}      logs: {}/logs/", files.study_file,
                                            errored ? "--restart-errored" : "--fresh", files.directory));
    }
    return labelled("next", fmt::format("ranktune best {}", files.directory)) +
           labelled("", fmt::format("ranktune export {} --format csv", files.directory));
}

} // namespace

std::string start_screen(const study::StudySpec& spec, const StartInfo& info, const Style& style) {
    const auto dot = std::string(style.dot());
    std::string text = info.version + dot + info.mpi + dot + info.hdf5 + dot + info.cuda + "\n";
    if (!info.launch_line.empty()) text += labelled("here", info.launch_line);
    const std::uint32_t most = spec.max_ranks_per_trial();
    if (info.workers > 0) {
        std::string groups =
            spec.resources.ranks_parameter.empty()
                ? fmt::format("{} group{} of {}", info.workers / most, info.workers / most == 1 ? "" : "s", most)
                : fmt::format("groups of up to {}", most);
        std::string ranks = fmt::format("{} = head + {} worker{} on {}{}{}", info.workers + 1, info.workers,
                                        info.workers == 1 ? "" : "s", info.hosts, dot, groups);
        const std::string where = fmt::format("{} ({})", info.directory, info.is_new ? "new" : "resumed");
        const std::string both = ranks + "    study  " + where;
        text += label_width + display_width(both) <= style.width ? labelled("ranks", both)
                                                                 : labelled("ranks", ranks) + labelled("study", where);
    }
    const Plan expected = plan(spec);
    std::string words = fmt::format("{} trials{}{}", spec.num_trials, dot, scheduler_words(spec));
    if (expected.rungs.size() > 1) words += dot + rungs_text(expected);
    text += prose("plan", words, style);
    const char* about = expected.estimate ? "at most" : "about";
    text += labelled(
        "", fmt::format("{} {} of {} iterations", about, grouped(expected.iterations), grouped(expected.full)));
    if (!expected.warning.empty()) text += paint(prose("warning", expected.warning, style), Tone::bad, style);
    return encoded(std::move(text), style);
}

std::string end_screen(const tuner::Tuner& tuner, const Live& live, const FilesInfo& files, const Style& style) {
    const auto& state = tuner.state();
    const std::uint64_t failed = state.in(TrialPhase::failed);
    const std::uint64_t ok = state.in(TrialPhase::finished) + state.in(TrialPhase::stopped);
    const char* verb = state.outcome == study::StudyOutcome::resumable ? "stopped early, resumable,"
                       : state.outcome == study::StudyOutcome::no_success || state.outcome == study::StudyOutcome::usage
                           ? "stopped"
                           : "finished";
    const std::string first = fmt::format("{} {} in {}: {} trials, {} ok, {} failed", tuner.spec().name, verb,
                                          short_duration(live.elapsed_s), state.trials.size(), ok, failed);
    std::string text = first;
    const std::string exit = fmt::format("exit {}", static_cast<int>(state.outcome));
    if (display_width(first) + exit.size() + 2 < style.width)
        text += std::string(style.width - display_width(first) - exit.size(), ' ');
    else
        text += "  ";
    text += exit + "\n";
    if (const std::string reason = why(state); !reason.empty()) text += prose("why", reason, style);
    if (state.best) {
        const TrialState& best = state.trial(*state.best);
        text += paint(labelled("best", fmt::format("#{}  {} {} at iteration {} of {}", state.best->value(),
                                                   tuner.spec().objective.metric, metric_text(best.best),
                                                   best.best_iteration, tuner.spec().max_iterations)),
                      Tone::good, style);
        text += prose("", configuration_text(best.configuration), style);
    }
    text += prose("training", training_text(tuner), style);
    if (live.busy_share) {
        text += labelled("workers",
                         fmt::format("{:.1f} % training{}{:.1f} % starting{}{:.1f} % idle", 100.0 * *live.busy_share,
                                     style.dot(), 100.0 * live.starting_share, style.dot(), 100.0 * live.idle_share));
    }
    text += failures(state, style);
    std::string line = fmt::format("{}/  {} files, {}", files.directory, files.files, bytes_text(files.bytes));
    if (state.best) {
        const auto* checkpoint = tuner::best_checkpoint(state.trial(*state.best), tuner.spec().objective.mode);
        if (checkpoint != nullptr) line += "    best: " + checkpoint->path;
    }
    text += labelled("files", line);
    return encoded(text + next_steps(tuner, files), style);
}

std::string best_screen(const tuner::Tuner& tuner, const std::string& directory, const Style& style) {
    const auto& state = tuner.state();
    if (!state.best)
        return encoded("no trial has reported a finite " + printable(tuner.spec().objective.metric) +
                           "; what there is: ranktune status " + directory + "\n",
                       style);
    const TrialState& best = state.trial(*state.best);
    std::string text =
        labelled("best", fmt::format("#{}  {} {} at iteration {} of {}{}{}", state.best->value(),
                                     tuner.spec().objective.metric, metric_text(best.best), best.best_iteration,
                                     tuner.spec().max_iterations, style.dot(), study::name(best.phase)));
    for (const auto& entry : best.configuration.entries())
        text += labelled("", entry.name + " = " + entry.value.text());
    const auto* checkpoint = tuner::best_checkpoint(best, tuner.spec().objective.mode);
    text += labelled("weights", checkpoint == nullptr ? "no checkpoint was kept"
                                                      : fmt::format("{}/{} (iteration {})", directory, checkpoint->path,
                                                                    checkpoint->iteration));
    return encoded(std::move(text), style);
}

} // namespace ranktune::report
