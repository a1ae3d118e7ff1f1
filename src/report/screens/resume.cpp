// SPDX-License-Identifier: Apache-2.0
// The screens of an existing study: resumed, or finished.

#include <algorithm>
#include <chrono>
#include <ctime>
#include <iterator>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "ranktune/base/text.hpp"
#include "report/explain/endings.hpp"
#include "report/explain/next_steps.hpp"
#include "report/screens/screens.hpp"

namespace ranktune::report {
namespace {

using study::TrialPhase;

constexpr std::size_t longest_cause = 160; // two lines of a terminal

std::string journal_text(const storage::JournalSummary& journal, base::Duration commit_interval) {
    std::string text = counted(journal.records, "record");
    if (journal.cut_records > 0)
        text += fmt::format(
            "; the last {} {} lost (at most {} of work and one disk synchronisation): the power failed, "
            "or the file was changed",
            counted(journal.cut_records, "record"), journal.cut_records == 1 ? "is" : "are",
            short_duration(base::to_seconds(commit_interval)));
    else if (journal.cut_bytes > 0)
        text +=
            fmt::format("; {} of an unfinished one cut, nothing acknowledged lost", counted(journal.cut_bytes, "byte"));
    return text;
}

std::string running_text(const studydir::OpenedStudy& found) {
    constexpr std::size_t shown = 4;
    std::vector<std::string> trials;
    for (const auto& trial : found.interrupted) {
        trials.push_back(
            fmt::format("#{} {}{}", trial.trial.value(), trials.empty() ? "goes on from it " : "from ", trial.from));
        if (trial.lost > 0) trials.back() += fmt::format(" ({} lost)", trial.lost);
    }
    return fmt::format("{} {} running: {}", trials.size(), trials.size() == 1 ? "was" : "were",
                       base::join_some(trials, shown));
}

std::string trials_text(const tuner::State& state, const studydir::OpenedStudy& found) {
    std::string text;
    for (const TrialPhase phase :
         {TrialPhase::finished, TrialPhase::stopped, TrialPhase::paused, TrialPhase::waiting, TrialPhase::failed}) {
        if (state.in(phase) == 0) continue;
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", state.in(phase), study::name(phase));
    }
    if (text.empty()) text = found.interrupted.empty() ? "none yet" : "";
    if (!found.interrupted.empty()) text += (text.empty() ? "" : "; ") + running_text(found);
    std::ptrdiff_t failed = 0, lost = 0, tasks = 0;
    for (const study::TrialId id : found.reopened)
        ++(study::side_task_of(id) ? tasks : state.trial(id).phase == TrialPhase::finished ? lost : failed);
    for (const auto& [count, what] :
         {std::pair(failed, "failed one"), {lost, "lost one"}, {tasks, "failed [after_trial]"}})
        if (count > 0) text += fmt::format("; {} {}{} tried again", count, what, count == 1 ? " is" : "s are");
    return text;
}

std::string ranks_of_start(const study::StudySpec& spec, const StartInfo& info, const studydir::OpenedStudy& found) {
    if (found.workers_before == info.workers || found.workers_before == 0)
        return fmt::format("{} = head + {} on {}", info.workers + 1, counted(info.workers, "worker"), info.hosts);
    std::string text = fmt::format("{} -> {}", found.workers_before + 1, info.workers + 1);
    if (spec.resources.ranks_parameter.empty())
        text += fmt::format(" ({} -> {})", counted(spec.trials_at_once(found.workers_before), "group"),
                            spec.trials_at_once(info.workers));
    return text + " on " + info.hosts;
}

} // namespace

std::string resume_screen(const studydir::OpenedStudy& found, const std::string& ended, const StartInfo& info,
                          const Style& style) {
    const tuner::Tuner& tuner = *found.tuner;
    std::string text = versions_text(info, style);
    if (!info.launch_line.empty()) text += labelled("here", info.launch_line);
    text += paragraph(fmt::format("resuming {}: start {}; {}", tuner.spec().name, found.incarnation.value(),
                                  fit_ends(base::gist(ended), longest_cause)),
                      style);
    text += prose("journal", journal_text(found.journal, tuner.spec().output.commit_interval), style);
    text += prose("trials", trials_text(tuner.state(), found), style);
    bool first = true;
    for (const auto& change : found.changes) {
        const auto value = [](const std::string& v) { return v.empty() ? std::string("default") : v; };
        text += prose(first ? "changed" : "",
                      fmt::format("{} {} -> {} (taken over)", change.key, value(change.before), value(change.after)),
                      style);
        first = false;
    }
    text += prose("ranks", ranks_of_start(tuner.spec(), info, found), style);
    text += prose("study", unbroken(info.directory), style);
    text += prose("deaths", info.deaths, style);
    return encoded(std::move(text), style);
}

std::string deadline_line(const tuner::State& state, std::int64_t wall, const Style& style) {
    const auto& deadline = state.pace.deadline();
    if (!deadline) return {};
    const auto clock = [&](base::StudyTime at) {
        const auto away = std::chrono::duration_cast<std::chrono::seconds>(at - state.now).count();
        return fmt::gmtime(static_cast<std::time_t>(wall + away));
    };
    std::string text = fmt::format("{:%Y-%m-%dT%H:%M}Z", clock(*deadline));
    if (const auto last = tuner::last_start(state))
        text += *last > state.now ? fmt::format(", last new trial about {:%H:%M}Z", clock(*last))
                                  : std::string(", no time for a new trial");
    return prose("deadline", text, style);
}

std::string finished_screen(const tuner::Tuner& tuner, const FilesInfo& files, const Style& style) {
    const auto& state = tuner.state();
    const auto& spec = tuner.spec();
    std::string text = paragraph(fmt::format("{} is finished ({}, exit {}): nothing was started", spec.name,
                                             trials_made(tuner), static_cast<int>(state.outcome)),
                                 style);
    std::string reason = why_text(tuner);
    if (const std::uint64_t never = trials_never_made(tuner); never > 0)
        reason +=
            fmt::format("{}the other {} {} never made", reason.empty() ? "" : "; ", never, never == 1 ? "was" : "were");
    text += prose("why", reason, style);
    text += best_text(tuner, style) + lost_weights_text(tuner, style);
    text += steps_text(steps_of_finished(tuner, files), style);
    return encoded(std::move(text), style);
}

} // namespace ranktune::report
