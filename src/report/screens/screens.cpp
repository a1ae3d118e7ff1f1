// SPDX-License-Identifier: Apache-2.0
// Start, end and best screens.

#include "report/screens/screens.hpp"

#include <algorithm>
#include <utility>

#include "base/joined.hpp"
#include "ranktune/base/text.hpp"
#include "report/explain/endings.hpp"
#include "report/explain/next_steps.hpp"
#include "report/explain/plan.hpp"
#include "report/screens/front.hpp"
#include "report/screens/simulated.hpp"
#include "report/view/best_by_model.hpp"
#include "report/view/history.hpp"
#include "report/view/rank_time.hpp"
#include "report/view/side_tasks.hpp"
#include "study/constraint.hpp"
#include "study/printed_values.hpp"
#include "tuner/lineage.hpp"

#include <fmt/format.h>

namespace ranktune::report {
namespace {

using study::TrialPhase;
using tuner::Trial;

std::string rungs_text(const study::SchedulerPlan& expected) {
    const auto levels = base::joined(
        expected.rungs, [](const auto& rung) { return std::to_string(rung.iteration); }, "/");
    const auto counts = base::joined(
        expected.rungs, [](const auto& rung) { return std::to_string(rung.trials); }, "/");
    return fmt::format("rungs {}: about {} {}", levels, counts, plural(expected.rungs.front().trials, "trial"));
}

/// " (276 to 338, by the order of results)"; empty where that is known beforehand.
std::string range_text(const study::SchedulerPlan& expected) {
    if (expected.most <= expected.fewest) return {};
    return fmt::format(" ({} to {}, by the order of results)", grouped(expected.fewest), grouped(expected.most));
}

const space::Configuration& nearest_configuration(const tuner::Tuner& tuner) {
    const tuner::Nearest& nearest = *tuner.state().nearest;
    return tuner::configuration_at(tuner.state().trial(nearest.trial), nearest.iteration);
}

/// How the study ended, and its exit code at the right edge.
std::string headline(const tuner::Tuner& tuner, const char* verb, study::StudyOutcome outcome, double elapsed_s,
                     const Style& style) {
    const auto& state = tuner.state();
    const std::uint64_t ok = state.in(TrialPhase::finished) + state.in(TrialPhase::stopped);
    std::string text =
        paragraph(fmt::format("{} {} in {}: {}, {} ok, {} failed", tuner.spec().name, verb, short_duration(elapsed_s),
                              trials_made(tuner), ok, state.in(TrialPhase::failed)),
                  style);
    text.pop_back();
    const std::string exit = fmt::format("exit {}", static_cast<int>(outcome));
    const std::size_t used = display_width(text.substr(text.rfind('\n') + 1)); // of its last line; npos + 1 is 0
    if (used + 2 + exit.size() > style.width) return text + "\n" + pad_left(exit, style.width) + "\n";
    return text + std::string(style.width - used - exit.size(), ' ') + exit + "\n";
}

std::string end_headline(const tuner::Tuner& tuner, std::optional<study::StudyOutcome> code, double elapsed_s,
                         const Style& style) {
    const auto outcome = tuner.state().outcome;
    const char* verb = outcome == study::StudyOutcome::resumable ? "stopped early, resumable," : "finished";
    return headline(tuner, verb, code.value_or(outcome), elapsed_s, style);
}

/// Trials that an immediate stop interrupts; empty: none.
std::string interrupted_text(const tuner::State& state) {
    constexpr std::size_t shown = 8;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < state.trials.size(); ++i)
        if (state.trials[i].attempt.live) names.push_back(fmt::format("#{}", i));
    if (names.empty()) return {};
    return base::join_some(names, shown) +
           (names.size() == 1 ? ": goes on from its last checkpoint, or begins again without one"
                              : ": they go on from their last checkpoints, or begin again without one");
}

std::string files_text(const tuner::Tuner& tuner, const FilesInfo& files) {
    const auto& state = tuner.state();
    std::string text = fmt::format("{}  {}, {}", unbroken(files.directory + "/"), counted(files.files, "file"),
                                   bytes_text(files.bytes));
    if (state.best && !tuner.spec().objective.several()) {
        const auto* checkpoint = tuner::best_checkpoint(state.trial(*state.best), tuner.spec().objective);
        if (checkpoint != nullptr) text += "    best: " + unbroken(checkpoint->path);
    }
    return text;
}

std::string training_text(const tuner::Tuner& tuner) {
    const Training training = training_of(tuner);
    std::string text = fmt::format("{} of {} ({:.0f} %)", grouped(training.iterations),
                                   counted(training.full, "iteration"), 100.0 * training.share());
    if (training.again > 0) text += fmt::format(", {} more trained again", grouped(training.again));
    if (training.iterations > 0)
        text += fmt::format(", {} of an estimated {} of training time", short_duration(training.seconds),
                            short_duration(training.full_seconds));
    return text;
}

/// Explains why the kept weights are not those of the best iteration.
std::string other_weights_text(const study::StudySpec& spec, const Trial& best, const std::string& directory,
                               const Style& style) {
    using Interval = study::CheckpointSpec::Interval;
    std::string why = unsaved_cause(best);
    if (!why.empty())
        why = ": " + unbroken(why);
    else if (best.dies_saving)
        why = ": an attempt died of saving on the way, and later ones did not try that";
    else if (spec.checkpoint.interval == Interval::none)
        why = ": with checkpoint.interval = \"none\" a trial saves only where it pauses or ends";
    else
        why = fmt::format(
            ": a trial that leads{} saves while checkpoints take less than a tenth of its time, and a "
            "program only if it can go on after it has saved",
            spec.searcher.repeats > 1 ? ", or may come to by its mean," : "");
    std::string text = prose(
        "",
        fmt::format("The state of iteration {}, where the value was best, was not saved{}", best.best_iteration, why),
        style);
    // For a program, the path of its files has been shown above.
    if (!spec.trainable.program) text += labelled("", command_text({"checkpoint", directory, "best"}));
    return text;
}

} // namespace

std::string versions_text(const StartInfo& info, const Style& style) {
    const auto dot = std::string(style.dot());
    if (info.version.empty()) return {};
    return paragraph(info.version + dot + info.mpi + dot + info.hdf5 + dot + info.cuda, style);
}

std::string deterministic_text(const tuner::State& state) {
    if (!state.deterministic_until) return {};
    return fmt::format(
        "deterministic up to record {}: from there on a change of the study, or a trial given up for a "
        "cause outside of it, had its say",
        grouped(*state.deterministic_until));
}

namespace {

/// The commands beside the trials.
std::string side_plan_text(const study::StudySpec& spec, const Style& style) {
    std::string text;
    for (const auto kind :
         {study::SideTask::Kind::before, study::SideTask::Kind::after_trial, study::SideTask::Kind::after})
        if (const std::string& command = spec.side(kind).command; !command.empty())
            text += prose("", std::string(study::name(kind)) + ": " + unbroken(command), style);
    if (spec.resources.helpers > 0)
        text += prose("", counted(spec.resources.helpers, "worker") + " for them alone (resources.helpers)", style);
    return text;
}

} // namespace

std::string start_screen(const study::StudySpec& spec, const StartInfo& info, const Style& style) {
    const auto dot = std::string(style.dot());
    std::string text = versions_text(info, style);
    if (!info.launch_line.empty()) text += labelled("here", info.launch_line);
    const std::uint32_t most = spec.max_ranks_per_trial();
    const std::uint32_t groups_here = spec.trials_at_once(info.workers);
    if (info.workers > 0) {
        std::string groups = spec.resources.ranks_parameter.empty()
                                 ? fmt::format("{} of {}", counted(groups_here, "group"), most)
                                 : fmt::format("groups of up to {}", most);
        if (spec.output.spares > 0) groups += dot + counted(spec.output.spares, "spare");
        std::string ranks = fmt::format("{} = head + {} on {}{}{}", info.workers + 1, counted(info.workers, "worker"),
                                        info.hosts, dot, groups);
        const std::string where = unbroken(info.directory) + " (new)";
        const std::string both = ranks + "    study  " + where;
        text += label_width + display_width(both) <= style.width
                    ? prose("ranks", both, style)
                    : prose("ranks", ranks, style) + prose("study", where, style);
    }
    text += prose("deaths", info.deaths, style);
    const Plan expected = rehearsed_plan(spec, groups_here);
    const bool whole = spec.num_trials == grid_size(spec);
    std::string words = fmt::format("{}{}{}{}", counted(spec.num_trials, "trial"), whole ? " (the whole grid)" : "",
                                    dot, expected.scheduler.words);
    if (expected.scheduler.rungs.size() > 1) words += dot + rungs_text(expected.scheduler);
    text += prose("plan", words, style);
    const bool at_most = expected.scheduler.certainty == study::SchedulerPlan::Certainty::at_most;
    const char* about = at_most ? "at most" : "about";
    text += prose("",
                  fmt::format("{} {} of {}{}", about, grouped(expected.scheduler.iterations),
                              counted(expected.full, "iteration"), range_text(expected.scheduler)),
                  style);
    const std::string& warning = expected.scheduler.warning;
    text += prose("warning", warning, style, Tone::bad);
    text += side_plan_text(spec, style);
    return encoded(std::move(text), style);
}

std::string copies_text(const Live& live) {
    const Copies& data = live.copies;
    if (data.nodes == 0) return {};
    const std::string nodes = fmt::format("copied to {}", counted(data.nodes, "node"));
    const std::string read = fmt::format("; {} read from the original", bytes_text(data.read));
    if (data.copied == data.bytes) return fmt::format("{} {}{}", bytes_text(data.bytes), nodes, read);
    std::string text = fmt::format("{} of {} {}", bytes_text(data.copied), bytes_text(data.bytes), nodes);
    if (live.elapsed_s > 0.0 && data.copied > 0) {
        const double rate = static_cast<double>(data.copied) / live.elapsed_s;
        text += fmt::format(", {}/s, {} left", bytes_text(static_cast<std::uint64_t>(rate)),
                            short_duration(static_cast<double>(data.bytes - data.copied) / rate));
    }
    return text + read;
}

std::vector<std::string> checkpoint_warnings(const Live& live) {
    std::vector<std::string> warnings;
    if (live.checkpoints_missed > 0)
        warnings.push_back(
            fmt::format("{} could not be written: {}; training goes on, and what fails now costs more of it",
                        counted(live.checkpoints_missed, "checkpoint"), first_line(live.checkpoint_error)));
    if (live.fallbacks > 0)
        warnings.push_back(
            fmt::format("{} damaged and given up: the trial went on from the one before, or from the "
                        "beginning (`unreadable` in the log of the head)",
                        live.fallbacks == 1 ? "1 checkpoint was" : fmt::format("{} checkpoints were", live.fallbacks)));
    return warnings;
}

namespace {

/// Training, search and workers in figures.
std::string figures_text(const tuner::Tuner& tuner, const Live& live, const Style& style) {
    std::string text = prose("training", training_text(tuner), style);
    text += prose("search", suggestions_text(tuner), style);
    text += prose("data", copies_text(live), style);
    if (!live.busy_share) return text;
    const std::string data =
        live.data_share == 0.0 ? "" : fmt::format(" ({:.1f} % waiting for data)", 100.0 * live.data_share);
    return text +
           prose("workers",
                 fmt::format("{:.1f} % training{}{}{:.1f} % starting{}{:.1f} % idle", 100.0 * *live.busy_share, data,
                             style.dot(), 100.0 * live.starting_share, style.dot(), 100.0 * live.idle_share),
                 style);
}

/// "by mean  #7  accuracy 0.9120 +- 0.0041, ...", and the configuration if it is another one; or empty.
std::string by_mean_text(const tuner::Tuner& tuner, const Style& style) {
    const auto best = best_by_model(tuner);
    if (!best) return {};
    std::string text = prose("by mean", text_of(best, tuner), style);
    if (best->trial != tuner.state().best)
        text += prose("", configuration_text(tuner::best_configuration(tuner.state().trial(best->trial))), style);
    return text;
}

} // namespace

std::string end_screen(const tuner::Tuner& tuner, const Live& live, const FilesInfo& files, const Style& style) {
    const auto& state = tuner.state();
    std::string text = end_headline(tuner, files.code, live.elapsed_s, style);
    text += prose("why", why_text(tuner), style);
    const bool compares = !study::compares_nothing(tuner.spec());
    if (!compares) text += prose("tasks", tasks_text(state, live.elapsed_s), style);
    text += prose("beside", side_tasks_text(state), style);
    text += prose("", failed_side_tasks_text(state), style, Tone::bad);
    text += best_text(tuner, style);
    if (compares && state.best && !tuner.spec().objective.several())
        text += prose("", configuration_text(tuner::best_configuration(state.trial(*state.best))), style);
    if (compares) text += by_mean_text(tuner, style);
    if (!nearest_text(tuner).empty()) text += prose("", configuration_text(nearest_configuration(tuner)), style);
    text += lost_weights_text(tuner, style);
    if (files.verbose) text += figures_text(tuner, live, style);
    text += prose("searcher", searcher_failure_text(tuner, files.log), style, Tone::bad);
    text += ended_early_text(tuner, style) + undone_for_room_text(tuner, style);
    text += failures_text(state, files.directory, style);
    text += prose("lost", lost_ranks_text(state), style, Tone::bad);
    if (const std::string places = out_of_service_text(state); !places.empty())
        text += prose("left out", places + ": trials failed there one after the other", style, Tone::bad);
    for (const std::string& warning : checkpoint_warnings(live)) text += prose("warning", warning, style, Tone::bad);
    if (state.outcome == study::StudyOutcome::no_success && state.end_reason != study::Reason::never_finite)
        text += first_failure_text(tuner, style);
    text += prose("order", deterministic_text(state), style, Tone::bad);
    if (files.verbose) text += prose("files", files_text(tuner, files), style);
    return encoded(text + steps_text(steps_after(tuner, files), style), style);
}

std::string cut_short_screen(const tuner::Tuner& tuner, const Live& live, const FilesInfo& files,
                             const std::string& why, const Style& style) {
    const auto outcome = study::StudyOutcome::resumable;
    std::string text = headline(tuner, "stopped at once, resumable,", outcome, live.elapsed_s, style);
    text += prose("why", why, style);
    text += prose("cut off", interrupted_text(tuner.state()), style);
    text += best_text(tuner, style);
    if (files.verbose)
        text += prose("training", training_text(tuner), style) + prose("files", files_text(tuner, files), style);
    return encoded(text + steps_text(steps_to_go_on(files.directory), style), style);
}

std::string end_sentence(const tuner::Tuner& tuner, const FilesInfo& files) {
    const auto& state = tuner.state();
    std::string text = why_text(tuner);
    if (text.empty()) text = first_line(state.end_message);
    text = printable(text);
    for (const auto& step : steps_after(tuner, files)) {
        if (!step.runs) continue; // only the first that runs the study
        text += "; " + step.command + "  # " + step.remark;
        break;
    }
    return text + errors_text(tuner, files.directory);
}

/// With population-based training the result is no point but a schedule. (So is that of the scheduler `schedule`, where
/// a trial takes over only states of its own.)
std::string schedule_text(const tuner::State& state, study::TrialId trial, const std::string& directory,
                          const Style& style) {
    constexpr std::size_t most = 8;
    const auto stretches = lineage_of_best(state, trial);
    if (stretches.size() < 2) return "";
    const bool alone = std::ranges::all_of(stretches, [&](const tuner::Stretch& each) { return each.trial == trial; });
    std::string text;
    study::Iteration trained = 0;
    for (std::size_t i = 0; i < stretches.size(); ++i) {
        const tuner::Stretch& stretch = stretches[i];
        const study::Iteration begin = std::exchange(trained, trained + stretch.length());
        if (i + most < stretches.size()) continue;
        if (i > 0 && i + most == stretches.size())
            text += prose("schedule", fmt::format("0-{} in {} earlier stretches; all:", begin, i), style) +
                    labelled("", command_text({"export", directory, "--format", "json"}));
        const std::string where =
            fmt::format("{}-{}", begin, trained) + (alone ? "" : fmt::format(" as #{}", stretch.trial.value()));
        text += prose(text.empty() ? "schedule" : "", where + "  " + configuration_text(*stretch.configuration), style);
    }
    if (alone) return text;
    return text + prose("",
                        "The value is the best of many that were chosen by it: judge the weights on data that it has "
                        "not seen.",
                        style);
}

namespace {

/// Of tasks that nobody compares: what became of them.
std::string tasks_screen(const tuner::Tuner& tuner, const std::string& directory, const Style& style) {
    const tuner::State& state = tuner.state();
    std::string text = prose("tasks", tasks_text(state, 0.0) + "; nothing is compared, so none is the best", style);
    if (tuner.spec().trainable.program)
        text += prose("results", unbroken(directory + "/results.csv") + ", written at the end of each start", style);
    else if (const space::Value* output = tuner.spec().trainable.options.find("output"))
        text += prose("output", unbroken(output->as_string()), style);
    if (state.in(TrialPhase::failed) > 0)
        text += labelled("failed", command_text({"status", directory, "--filter", "state == failed"}));
    return text;
}

/// Where no trial is the best one.
std::string no_best_screen(const tuner::Tuner& tuner, const std::string& directory, const Style& style) {
    const study::Objective& objective = tuner.spec().objective;
    std::string text =
        paragraph("no trial has reported a finite " + study::metrics_text(objective) + limits_text(objective) +
                      "; what there is: " + unbroken(command_text({"status", directory})),
                  style);
    if (const std::string nearest = nearest_text(tuner); !nearest.empty())
        text += prose("nearest", nearest, style) + prose("", configuration_text(nearest_configuration(tuner)), style);
    return text;
}

} // namespace

std::string best_screen(const tuner::Tuner& tuner, const std::string& directory, const Style& style,
                        bool weights_missing) {
    const auto& state = tuner.state();
    const std::string mark = simulated_text(state);
    const std::string simulated = mark.empty() ? "" : paragraph(mark, style);
    if (study::compares_nothing(tuner.spec())) return encoded(tasks_screen(tuner, directory, style), style);
    if (!state.best) return encoded(simulated + no_best_screen(tuner, directory, style), style);
    if (tuner.spec().objective.several()) return encoded(simulated + front_screen(tuner, directory, style), style);
    const Trial& best = state.trial(*state.best);
    const std::string others = simulated.empty() ? other_weights(best, tuner.spec().objective) : std::string();
    std::string text = simulated + prose("best",
                                         fmt::format("#{}  {} {}{} at iteration {} of {}{}{}{}", state.best->value(),
                                                     tuner.spec().objective.metric, text_of_best(tuner),
                                                     limits_text(tuner.spec().objective), best.best_iteration,
                                                     tuner.spec().max_iterations, others.empty() ? "" : "; " + others,
                                                     style.dot(), study::name(best.phase)),
                                         style);
    for (const auto& entry : tuner::best_configuration(best).entries())
        text += prose("", entry.name + " = " + unbroken(entry.value.text()), style);
    text += prose("after", after_trial_text(state, *state.best), style);
    text += by_mean_text(tuner, style);
    text += schedule_text(state, *state.best, directory, style);
    if (!simulated.empty()) return encoded(std::move(text), style); // there are no weights
    const auto* checkpoint = tuner::best_checkpoint(best, tuner.spec().objective);
    const std::string cause = unsaved_cause(best);
    text += prose("weights",
                  checkpoint == nullptr ? "no checkpoint was kept" + (cause.empty() ? "" : ": " + unbroken(cause))
                                        : fmt::format("{} (iteration {})", unbroken(directory + "/" + checkpoint->path),
                                                      checkpoint->iteration),
                  style);
    if (checkpoint != nullptr && !others.empty()) text += other_weights_text(tuner.spec(), best, directory, style);
    if (weights_missing)
        text += prose("", "That file is missing: restore it, or see whether an earlier one is left with", style) +
                labelled("", command_text({"checkpoint", directory, "best"}));
    if (best.phase == TrialPhase::failed) text += prose("failed", unbroken(failure_message(best)), style, Tone::bad);
    return encoded(std::move(text), style);
}

} // namespace ranktune::report
