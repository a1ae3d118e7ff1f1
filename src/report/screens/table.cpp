// SPDX-License-Identifier: Apache-2.0
// The live table: what stands above its rows.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "ranktune/study/objective.hpp"
#include "report/explain/endings.hpp"
#include "report/explain/origin_text.hpp"
#include "report/explain/plan.hpp"
#include "report/screens/front.hpp"
#include "report/screens/screens.hpp"
#include "report/screens/simulated.hpp"
#include "report/screens/trial_table.hpp"
#include "report/view/history.hpp"
#include "report/view/side_tasks.hpp"
#include "study/printed_values.hpp"

#include <fmt/format.h>

namespace ranktune::report {
namespace {

using study::TrialPhase;
using tuner::Trial;

std::string bar(double share, std::size_t width) {
    const auto filled = static_cast<std::size_t>(std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(width)));
    return "[" + std::string(filled, '#') + std::string(width - filled, '-') + "]";
}

std::uint64_t over(const tuner::State& state) {
    return state.in(TrialPhase::finished) + state.in(TrialPhase::stopped) + state.in(TrialPhase::failed);
}

struct Part {
    std::string text;
    unsigned worth = 0; ///< larger: left out earlier; 0: never left out
};
/// Joins the parts in order, leaving out those with the largest `worth` until the line fits.
std::string line_of(std::vector<Part> parts, std::string_view between, std::size_t width) {
    while (true) {
        std::string line;
        for (const auto& part : parts) line += (line.empty() ? "" : std::string(between)) + part.text;
        const auto least = std::max_element(parts.begin(), parts.end(),
                                            [](const Part& a, const Part& b) { return a.worth < b.worth; });
        if (display_width(line) <= width || least == parts.end() || least->worth == 0) return fit(line, width);
        parts.erase(least);
    }
}

/// Requires live.busy_share.
std::string workers_text(const Live& live) {
    std::string text = fmt::format("workers {:.0f} % busy", 100.0 * *live.busy_share);
    if (live.data_share > 0.0) text += fmt::format(" (data wait {:.0f} %)", 100.0 * live.data_share);
    return text;
}

std::string title_line(const tuner::Tuner& tuner, const Live& live, const Style& style) {
    std::vector<Part> parts{{tuner.spec().name, 0}, {short_duration(live.elapsed_s), 1}};
    if (live.left_s) parts.push_back({fmt::format("about {} left", short_duration(*live.left_s)), 3});
    if (live.busy_share) parts.push_back({workers_text(live), 4});
    if (!live.deadline.empty()) parts.push_back({live.deadline, 2});
    return line_of(std::move(parts), style.dot(), style.width);
}

/// Whether the number of iterations is known, failures aside: no rung and no rule ends a trial early.
bool is_exact(const tuner::Tuner& tuner) {
    const auto& state = tuner.state();
    if (state.ended && state.outcome != study::StudyOutcome::resumable) return true;
    return plan(tuner.spec()).scheduler.certainty == study::SchedulerPlan::Certainty::exact;
}

/// Bar, iterations and trials, as far as they fit.
std::string progress_line(const tuner::Tuner& tuner, const Live& live, const Style& style) {
    const auto& state = tuner.state();
    const bool tasks = study::compares_nothing(tuner.spec()); // of which one that failed is done, too
    const std::uint64_t expected = tasks ? tuner.spec().num_trials : std::max(live.total, expected_iterations(tuner));
    const std::uint64_t made = tasks ? over(state) : state.iterations;
    const double share = expected == 0 ? 0.0 : static_cast<double>(made) / static_cast<double>(expected);
    const std::string done = grouped(made);
    const std::string all = counted(expected, tasks ? "task" : "iteration");
    const std::string iterations = fmt::format("{}/{}", done, all);
    const std::string words = tasks || is_exact(tuner) ? iterations : fmt::format("{} of about {}", done, all);
    const std::string trials =
        fmt::format("{}{}/{} started", style.dot(), state.trials.size(), counted(tuner.spec().num_trials, "trial"));
    constexpr std::size_t shortest_bar = 10;
    constexpr std::size_t longest_bar = 30;
    for (const std::string& text : {words + trials, words, iterations}) {
        const std::size_t others = display_width(text) + 4; // the brackets, and two columns between
        if (others + shortest_bar > style.width) continue;
        return bar(share, std::min(longest_bar, style.width - others)) + "  " + text;
    }
    return fit(iterations, style.width);
}

/// Trials by state, and the best trial, which is left out last.
std::string counts_line(const tuner::Tuner& tuner, const Live& live, const Style& style) {
    const tuner::State& state = tuner.state();
    const bool interrupted = live.interrupted;
    const std::uint64_t running = state.in(TrialPhase::running);
    std::vector<Part> parts{{fmt::format("{} {}", interrupted && running > 0 ? "interrupted" : "running", running), 1}};
    const std::pair<TrialPhase, unsigned> others[] = {{TrialPhase::waiting, 6},
                                                      {TrialPhase::paused, 5},
                                                      {TrialPhase::finished, 3},
                                                      {TrialPhase::stopped, 4},
                                                      {TrialPhase::failed, 2}};
    for (const auto& [phase, worth] : others) {
        if (state.in(phase) > 0) parts.push_back({fmt::format("{} {}", study::name(phase), state.in(phase)), worth});
    }
    if (study::compares_nothing(tuner.spec())) {
        if (const std::string pace = pace_text(over(state), live.elapsed_s); !pace.empty()) parts.push_back({pace, 2});
        return line_of(std::move(parts), style.dot(), style.width);
    }
    if (!state.best && state.nearest)
        parts.push_back({fmt::format("best none, near: #{}", state.nearest->trial.value()), 1});
    if (!state.best) return line_of(std::move(parts), style.dot(), style.width);
    if (const std::string front = front_size_text(state); !front.empty()) parts.push_back({"front " + front, 1});
    if (!state.front.trials().empty()) return line_of(std::move(parts), style.dot(), style.width);
    const Trial& best = state.trial(*state.best);
    constexpr std::size_t gap = 6;
    const std::string text = fmt::format("best {}  #{}", text_of_best(tuner), state.best->value());
    std::string whole = text + fmt::format(" at it {}", best.best_iteration);
    // While it trains, the checkpoint may be on its way.
    const std::string weights = best.attempt.live ? std::string() : other_weights(best, tuner.spec().objective);
    if (!weights.empty() && state.simulation.empty()) whole += "; " + weights;
    const std::size_t width = display_width(whole);
    if (width > style.width) return fit(text, style.width);
    if (width + gap + display_width(parts.front().text) > style.width) return whole;
    return line_of(std::move(parts), style.dot(), style.width - gap - width) + std::string(gap, ' ') + whole;
}

} // namespace

std::vector<std::string> stopping_lines(const Live& live, std::size_t width) {
    return live.stopping.empty() ? std::vector<std::string>{} : wrap(live.stopping, width);
}

std::vector<std::string> checkpoint_lines(const Live& live, std::size_t width) {
    std::vector<std::string> lines;
    if (live.checkpoints_missed > 0)
        lines.push_back(fit_ends(fmt::format("{} not written: {}", counted(live.checkpoints_missed, "checkpoint"),
                                             first_line(live.checkpoint_error)),
                                 width));
    if (live.fallbacks > 0)
        lines.push_back(fit(fmt::format("{} damaged and given up", counted(live.fallbacks, "checkpoint")), width));
    return lines;
}

std::string answers_text(const Live& live, const Style& style) {
    std::string text;
    for (const std::string& answer : live.answers) text += prose(text.empty() ? "requests" : "", answer, style);
    return encoded(std::move(text), style);
}

std::string live_head(const tuner::Tuner& tuner, const Live& live, const Style& style) {
    std::string text = title_line(tuner, live, style) + "\n" + progress_line(tuner, live, style) + "\n" +
                       counts_line(tuner, live, style) + "\n";
    if (const std::string mark = simulated_text(tuner.state()); !mark.empty()) text += fit(mark, style.width) + "\n";
    for (const std::string& line : stopping_lines(live, style.width)) text += line + "\n";
    if (const std::string tasks = side_tasks_text(tuner.state(), live.elapsed_s); !tasks.empty())
        text += fit("beside " + tasks, style.width) + "\n";
    if (const std::string failed = failed_side_tasks_text(tuner.state()); !failed.empty())
        text += paint(fit("failed " + failed, style.width), Tone::bad, style) + "\n";
    if (live.copies.nodes > 0) text += fit("data " + copies_text(live), style.width) + "\n";
    for (const std::string& line : checkpoint_lines(live, style.width)) text += paint(line, Tone::bad, style) + "\n";
    if (const std::string lost = lost_ranks_text(tuner.state()); !lost.empty())
        text += paint(fit("lost: " + lost, style.width), Tone::bad, style) + "\n";
    if (const std::string places = out_of_service_text(tuner.state()); !places.empty())
        text += paint(fit("out of service: " + places, style.width), Tone::bad, style) + "\n";
    if (const auto& tickets = tuner.state().tickets; tickets.failures() > 0) {
        const std::string failure = failure_text(tickets.failures(), printable(first_line(tickets.why())));
        for (const std::string& line : wrap("searcher " + failure, style.width))
            text += paint(line, Tone::bad, style) + "\n";
    }
    if (const std::string mark = deterministic_text(tuner.state()); !mark.empty())
        text += fit(mark, style.width) + "\n";
    const auto rungs = tuner.scheduler().rungs();
    if (!rungs.empty()) {
        std::string line = "rungs ";
        for (const auto& rung : rungs) {
            const bool top = &rung == &rungs.back();
            line += top ? fmt::format(" {}: {}", rung.iteration, rung.entries)
                        : fmt::format(" {}: {} -> {}  ", rung.iteration, rung.entries, rung.promoted);
        }
        text += fit(line, style.width) + "\n";
    }
    return text;
}

std::uint64_t expected_iterations(const tuner::Tuner& tuner) {
    const auto& state = tuner.state();
    const bool stopped = state.ended && !tuner::is_over(state); // the next run continues it
    if (state.ended && !stopped) return state.iterations;
    const study::SchedulerPlan expected = rehearsed_plan(tuner.spec()).scheduler;
    const std::uint64_t uncreated =
        tuner.spec().num_trials - std::min<std::uint64_t>(tuner.spec().num_trials, state.trials.size());
    std::uint64_t certain = state.iterations;
    if (!state.draining || stopped) certain += uncreated * expected.rungs.front().iteration;
    for (const auto& trial : state.trials) {
        const bool goes_on = trial.phase == TrialPhase::waiting || trial.phase == TrialPhase::running;
        if (goes_on && trial.target > trial.attempt.iteration) certain += trial.target - trial.attempt.iteration;
    }
    return std::max(expected.iterations, certain);
}

namespace {

/// The trials of each configuration beside one another.
std::vector<study::TrialId> by_mean(const tuner::Tuner& tuner) {
    std::vector<study::TrialId> ids;
    for (const tuner::Repetitions& each : configurations_by_mean(tuner))
        for (std::uint32_t i = 0; i < each.created; ++i) ids.emplace_back(each.first.value() + i);
    return ids;
}

} // namespace

std::vector<study::TrialId> by_result(const tuner::Tuner& tuner) {
    const auto& state = tuner.state();
    std::vector<study::TrialId> ids;
    for (std::uint32_t i = 0; i < state.trials.size(); ++i) ids.emplace_back(i);
    if (tuner.spec().searcher.repeats > 1) return by_mean(tuner);
    const auto mode = tuner.spec().objective.mode;
    const bool several = tuner.spec().objective.several();
    const auto ranks =
        several ? tuner::pareto_ranks(state.trials, tuner.spec().objective) : std::vector<std::int64_t>();
    const auto front = [&](study::TrialId id) { return static_cast<std::uint64_t>(several ? ranks[id.value()] : 0); };
    std::sort(ids.begin(), ids.end(), [&](study::TrialId a, study::TrialId b) {
        const Trial& left = state.trial(a);
        const Trial& right = state.trial(b);
        if (front(a) != front(b)) return front(a) < front(b); // without a result: the largest number
        return study::better({study::score(left.best, mode), a}, {study::score(right.best, mode), b});
    });
    return ids;
}

std::vector<study::TrialId> best_trials(const tuner::Tuner& tuner, std::size_t count) {
    if (study::compares_nothing(tuner.spec()))
        throw base::UsageError("no trial of this study is the best, they only have to succeed: give numbers of trials");
    std::vector<study::TrialId> ids = by_result(tuner);
    std::erase_if(ids, [&](study::TrialId id) {
        const Trial& trial = tuner.state().trial(id);
        return !trial.reported || !std::isfinite(trial.best);
    });
    if (count == 0 || ids.size() < count)
        throw base::UsageError(fmt::format("best {}: {} of the study have a result", count, ids.size()));
    ids.resize(count);
    return ids;
}

std::vector<study::TrialId> by_rank(const tuner::Tuner& tuner) {
    std::vector<study::TrialId> ids = by_result(tuner);
    if (tuner.spec().searcher.repeats == 1)
        std::ranges::stable_partition(ids, [&](study::TrialId id) { return tuner.state().trial(id).attempt.live; });
    return ids;
}

std::string live_table(const tuner::Tuner& tuner, const Live& live, const Style& style, std::size_t max_rows) {
    TableRequest request;
    request.max_rows = max_rows;
    const std::string& directory = live.directory.empty() ? tuner.spec().name : live.directory;
    return live_head(tuner, live, style) + TrialTable(tuner, request, live.interrupted, style).text({}, directory);
}

std::string status_line(const tuner::Tuner& tuner, const Live& live, const Style& style) {
    const auto& state = tuner.state();
    std::string text = fmt::format("{}{}{}{}{}{}{}/{}", tuner.spec().name, style.dot(), short_duration(live.elapsed_s),
                                   style.dot(), counted(state.iterations, "iteration"), style.dot(),
                                   state.trials.size(), counted(tuner.spec().num_trials, "trial"));
    text += fmt::format("{}running {}", style.dot(), state.in(TrialPhase::running));
    if (!study::compares_nothing(tuner.spec()))
        text += fmt::format("{}failed {}", style.dot(), state.in(TrialPhase::failed));
    if (const std::string front = front_size_text(state); !front.empty())
        text += std::string(style.dot()) + "front " + front;
    else if (study::compares_nothing(tuner.spec()))
        text += std::string(style.dot()) + tasks_text(state, live.elapsed_s);
    else if (state.best)
        text += fmt::format("{}best {} #{}", style.dot(), text_of_best(tuner), state.best->value());
    if (const std::string tasks = side_tasks_text(state, live.elapsed_s); !tasks.empty())
        text += std::string(style.dot()) + tasks;
    if (live.busy_share) text += std::string(style.dot()) + workers_text(live);
    for (const std::string& line : checkpoint_lines(live, SIZE_MAX)) text += std::string(style.dot()) + line;
    return encoded(text + "\n", style);
}

} // namespace ranktune::report
