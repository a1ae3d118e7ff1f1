// SPDX-License-Identifier: Apache-2.0
// The live table.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "ranktune/study/objective.hpp"
#include "report/next_steps.hpp"
#include "report/plan.hpp"
#include "report/screens.hpp"
#include "report/simulated.hpp"

#include <fmt/format.h>

namespace ranktune::report {
namespace {

using study::TrialPhase;
using tuner::TrialState;

std::string state_text(const TrialState& t, bool interrupted) {
    if (interrupted && holds_ranks(t)) return "interrupted";
    switch (t.phase) {
        case TrialPhase::waiting:
        case TrialPhase::running:
        case TrialPhase::ending: {
            const char* word = t.phase == TrialPhase::waiting ? "wait" : t.phase == TrialPhase::running ? "run" : "end";
            return fmt::format("{} -> {}", word, t.target);
        }
        case TrialPhase::paused:
            return fmt::format("paused {}", t.iteration);
        case TrialPhase::failed:
            return t.attempt.value() > 1 ? fmt::format("failed {}x", t.attempt.value()) : "failed";
        default:
            return std::string(study::name(t.phase));
    }
}

struct Column {
    std::string title;
    bool left = false;
    std::vector<std::string> cells = {};
    std::size_t limit = 16;
    [[nodiscard]] std::size_t width() const {
        std::size_t width = display_width(title);
        for (const auto& cell : cells) width = std::max(width, display_width(cell));
        return std::min(width, limit);
    }
};

/// "#5@20 (3)": what the trial took over last, and how often it did.
std::string takeover_text(const TrialState& trial) {
    if (trial.takeovers.empty()) return "-";
    const tuner::Donor& donor = trial.takeovers.back().donor;
    return fmt::format("#{}@{} ({})", donor.trial.value(), donor.checkpoint.iteration, trial.takeovers.size());
}

std::vector<Column> columns_for(const tuner::Tuner& tuner, const std::vector<study::TrialId>& shown, bool interrupted) {
    const auto& state = tuner.state();
    std::vector<Column> columns;
    Column trial{"trial"};
    Column phase{"state", true};
    Column group{"group", true};
    Column iteration{"it"};
    Column metric{tuner.spec().objective.metric};
    Column time{"time"};
    for (const auto id : shown) {
        const TrialState& t = state.trial(id);
        trial.cells.push_back((state.best == id ? "*  #" : "#") + std::to_string(id.value()));
        phase.cells.push_back(state_text(t, interrupted));
        group.cells.push_back(holds_ranks(t) ? ranks_text(t.ranks) : "-");
        iteration.cells.push_back(t.reported ? std::to_string(t.iteration) : "-");
        metric.cells.push_back(metric_text(t.best));
        time.cells.push_back(t.reported ? short_duration(t.seconds) : "-");
    }
    columns = {std::move(trial), std::move(phase), std::move(group), std::move(iteration), std::move(metric)};
    for (const auto& parameter : tuner.spec().space.parameters()) {
        if (std::holds_alternative<space::Constant>(parameter.domain)) continue;
        Column column{parameter.name};
        for (const auto id : shown) {
            const auto* value = state.trial(id).configuration.find(parameter.name);
            column.cells.push_back(value == nullptr ? "-" : value_text(*value));
        }
        columns.push_back(std::move(column));
    }
    // A trial on a schedule of its own takes over nobody else's state.
    const bool any = std::ranges::any_of(shown, [&](study::TrialId id) {
        const auto& takeovers = state.trial(id).takeovers;
        return !takeovers.empty() && takeovers.back().donor.trial != id;
    });
    if (any) {
        Column took{"took over", true};
        for (const auto id : shown) took.cells.push_back(takeover_text(state.trial(id)));
        columns.push_back(std::move(took));
    }
    columns.push_back(std::move(time));
    return columns;
}

/// Drops hyper-parameters, from the last one on, until a row fits; on very narrow terminals also time, iteration and
/// group.
void drop_to_fit(std::vector<Column>& columns, std::size_t width) {
    constexpr std::size_t fixed = 5; // trial, state, group, iteration, metric; then hyper-parameters; time
    const auto total = [&] {
        std::size_t sum = 1;
        for (const auto& column : columns) sum += column.width() + 2;
        return sum - 2;
    };
    while (total() > width && columns.size() > fixed + 1) columns.erase(columns.end() - 2);
    for (const std::ptrdiff_t dispensable : {5, 3, 2}) {
        if (total() > width) columns.erase(columns.begin() + dispensable);
    }
}

std::string row(const std::vector<Column>& columns, std::size_t index, bool title) {
    std::string text = " ";
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const std::string& cell = title ? columns[i].title : columns[i].cells[index];
        if (i > 0) text += "  ";
        text += columns[i].left ? pad_right(cell, columns[i].width()) : pad_left(cell, columns[i].width());
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
}

std::string bar(double share, std::size_t width) {
    const auto filled = static_cast<std::size_t>(std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(width)));
    return "[" + std::string(filled, '#') + std::string(width - filled, '-') + "]";
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

std::string title_line(const tuner::Tuner& tuner, const Live& live, const Style& style) {
    std::vector<Part> parts{{tuner.spec().name, 0}, {short_duration(live.elapsed_s), 1}};
    if (live.left_s) parts.push_back({fmt::format("about {} left", short_duration(*live.left_s)), 3});
    if (live.busy_share) parts.push_back({fmt::format("workers {:.0f} % busy", 100.0 * *live.busy_share), 4});
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
    const std::uint64_t expected = std::max(live.total, expected_iterations(tuner));
    const double share = expected == 0 ? 0.0 : static_cast<double>(state.iterations) / static_cast<double>(expected);
    const std::string done = grouped(state.iterations);
    const std::string all = counted(expected, "iteration");
    const std::string iterations = fmt::format("{}/{}", done, all);
    const std::string words = is_exact(tuner) ? iterations : fmt::format("{} of about {}", done, all);
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
std::string counts_line(const tuner::State& state, bool interrupted, const Style& style) {
    const std::uint64_t running = state.in(TrialPhase::running) + state.in(TrialPhase::ending);
    std::vector<Part> parts{{fmt::format("{} {}", interrupted && running > 0 ? "interrupted" : "running", running), 1}};
    const std::pair<TrialPhase, unsigned> others[] = {{TrialPhase::waiting, 6},
                                                      {TrialPhase::paused, 5},
                                                      {TrialPhase::finished, 3},
                                                      {TrialPhase::stopped, 4},
                                                      {TrialPhase::failed, 2}};
    for (const auto& [phase, worth] : others) {
        if (state.in(phase) > 0) parts.push_back({fmt::format("{} {}", study::name(phase), state.in(phase)), worth});
    }
    if (!state.best) return line_of(std::move(parts), style.dot(), style.width);
    const TrialState& best = state.trial(*state.best);
    constexpr std::size_t gap = 6;
    const std::string text = fmt::format("best {}  #{}", metric_text(best.best), state.best->value());
    std::string whole = text + fmt::format(" at it {}", best.best_iteration);
    const std::size_t width = display_width(whole);
    if (width > style.width) return fit(text, style.width);
    if (width + gap + display_width(parts.front().text) > style.width) return whole;
    return line_of(std::move(parts), style.dot(), style.width - gap - width) + std::string(gap, ' ') + whole;
}

std::string head_lines(const tuner::Tuner& tuner, const Live& live, const Style& style) {
    std::string text = title_line(tuner, live, style) + "\n" + progress_line(tuner, live, style) + "\n" +
                       counts_line(tuner.state(), live.interrupted, style) + "\n";
    if (const std::string mark = simulated_text(tuner.state()); !mark.empty()) text += fit(mark, style.width) + "\n";
    for (const std::string& line : stopping_lines(live, style.width)) text += line + "\n";
    for (const std::string& line : checkpoint_lines(live, style.width)) text += paint(line, Tone::bad, style) + "\n";
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

std::uint64_t expected_iterations(const tuner::Tuner& tuner) {
    const auto& state = tuner.state();
    const bool stopped = state.ended && !tuner::is_over(state); // the next run continues it
    if (state.ended && !stopped) return state.iterations;
    const study::SchedulerPlan expected = plan(tuner.spec()).scheduler;
    const std::uint64_t uncreated =
        tuner.spec().num_trials - std::min<std::uint64_t>(tuner.spec().num_trials, state.trials.size());
    std::uint64_t certain = state.iterations;
    if (!state.draining || stopped) certain += uncreated * expected.rungs.front().iteration;
    for (const auto& trial : state.trials) {
        const bool goes_on = trial.phase == TrialPhase::waiting || trial.phase == TrialPhase::running ||
                             (trial.phase == TrialPhase::paused && trial.verdict.reason == study::Reason::draining);
        if (goes_on && trial.target > trial.attempt_iteration) certain += trial.target - trial.attempt_iteration;
    }
    return std::max(expected.iterations, certain);
}

std::vector<study::TrialId> by_rank(const tuner::Tuner& tuner) {
    const auto& state = tuner.state();
    std::vector<study::TrialId> ids;
    for (std::uint32_t i = 0; i < state.trials.size(); ++i) ids.emplace_back(i);
    const auto mode = tuner.spec().objective.mode;
    std::sort(ids.begin(), ids.end(), [&](study::TrialId a, study::TrialId b) {
        const TrialState& left = state.trial(a);
        const TrialState& right = state.trial(b);
        if (holds_ranks(left) != holds_ranks(right)) return holds_ranks(left);
        return study::better({study::score(left.best, mode), a}, {study::score(right.best, mode), b});
    });
    return ids;
}

std::string live_table(const tuner::Tuner& tuner, const Live& live, const Style& style, std::size_t max_rows) {
    std::string text = head_lines(tuner, live, style);
    auto ids = by_rank(tuner);
    const std::size_t hidden = ids.size() > max_rows ? ids.size() - max_rows : 0;
    ids.resize(ids.size() - hidden);
    if (ids.empty()) return encoded(std::move(text), style);
    auto columns = columns_for(tuner, ids, live.interrupted);
    drop_to_fit(columns, style.width);
    const auto line = [&](std::size_t index, bool title, Tone tone) {
        return paint(encoded(fit(row(columns, index, title), style.width), style), tone, style) + "\n";
    };
    text = encoded(std::move(text), style) + "\n" + line(0, true, Tone::plain);
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const bool failed = tuner.state().trial(ids[i]).phase == TrialPhase::failed;
        text += line(i, false, tuner.state().best == ids[i] ? Tone::good : failed ? Tone::bad : Tone::plain);
    }
    if (hidden > 0) {
        const std::string& directory = live.directory.empty() ? tuner.spec().name : live.directory;
        std::string more = fmt::format(" {} more", hidden);
        const std::string all = ": " + command_text({"status", "--all", directory});
        if (display_width(more + all) <= style.width) more += all; // never a truncated command
        text += encoded(fit(more, style.width), style) + "\n";
    }
    return text;
}

std::string status_line(const tuner::Tuner& tuner, const Live& live, const Style& style) {
    const auto& state = tuner.state();
    std::string text = fmt::format("{}{}{}{}{}{}{}/{}", tuner.spec().name, style.dot(), short_duration(live.elapsed_s),
                                   style.dot(), counted(state.iterations, "iteration"), style.dot(),
                                   state.trials.size(), counted(tuner.spec().num_trials, "trial"));
    text += fmt::format("{}running {}{}failed {}", style.dot(),
                        state.in(TrialPhase::running) + state.in(TrialPhase::ending), style.dot(),
                        state.in(TrialPhase::failed));
    if (state.best)
        text +=
            fmt::format("{}best {} #{}", style.dot(), metric_text(state.trial(*state.best).best), state.best->value());
    if (live.busy_share) text += fmt::format("{}workers {:.0f} % busy", style.dot(), 100.0 * *live.busy_share);
    for (const std::string& line : checkpoint_lines(live, SIZE_MAX)) text += std::string(style.dot()) + line;
    return encoded(text + "\n", style);
}

} // namespace ranktune::report
