// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/live.hpp"

#include <algorithm>
#include <chrono>
#include <ostream>

#include "process/environment.hpp"
#include "report/explain/endings.hpp"
#include "report/view/wall_time.hpp"

namespace ranktune::cli {
namespace {

// Lines for a log: the first one soon, for studies that end within a minute; then one each time the elapsed time has
// doubled, and at least one a minute.
constexpr double shortest_pause_s = 3.0;
constexpr double longest_pause_s = 60.0;

} // namespace

report::Live live_figures(const tuner::Tuner& tuner, const head::HeadFigures& figures, std::uint64_t total) {
    report::Live live;
    live.elapsed_s = figures.elapsed_s;
    const double all = figures.training_s + figures.starting_s + figures.idle_s;
    if (all > 0.0) {
        live.busy_share = figures.training_s / all;
        live.starting_share = figures.starting_s / all;
        live.idle_share = figures.idle_s / all;
        live.data_share = figures.data_s / all;
    }
    live.checkpoints_missed = figures.checkpoints_missed;
    live.checkpoint_error = figures.checkpoint_error;
    live.fallbacks = figures.fallbacks;
    live.copies = {figures.copies.nodes, figures.copies.bytes, figures.copies.copied, figures.copies.read};
    const auto& state = tuner.state();
    const std::uint64_t expected = std::max(total, report::expected_iterations(tuner));
    live.total = expected;
    const std::uint64_t done = state.iterations - std::min(state.iterations, figures.iterations_before);
    if (done > 0 && expected > state.iterations && figures.elapsed_s > 1.0) {
        live.left_s = figures.elapsed_s * static_cast<double>(expected - state.iterations) / static_cast<double>(done);
    }
    if (tuner.spec().time_budget) {
        const double budget = base::to_seconds(*tuner.spec().time_budget) - base::to_seconds(state.now);
        live.deadline = "time budget ends in " + report::short_duration(std::max(0.0, budget));
    } else if (state.pace.deadline()) {
        live.deadline = "job ends in " +
                        report::short_duration(std::max(0.0, base::to_seconds(*state.pace.deadline() - state.now)));
    } else if (!process::slurm_job().empty()) {
        live.deadline = "no deadline";
    }
    return live;
}

LiveView::LiveView(std::ostream& out, const Terminal& terminal, Progress progress)
    : out_(out), terminal_(terminal), progress_(progress) {
    if (progress_ == Progress::automatic) progress_ = terminal_.interactive ? Progress::table : Progress::lines;
}

report::Live LiveView::live(const tuner::Tuner& tuner, const head::HeadFigures& figures) {
    report::Live live = live_figures(tuner, figures, total_.update(tuner));
    live.directory = directory_;
    live.stopping = report::stopping_text(tuner, report::seconds_now());
    return live;
}

void LiveView::on_tick(const tuner::Tuner& tuner, const head::HeadFigures& figures) {
    if (progress_ == Progress::none || tuner.state().ended) return;
    show_deadline(tuner.state());
    if (progress_ == Progress::lines) return show_line(tuner, figures);
    measure_again(terminal_);
    if (terminal_.narrow) {
        finish(); // lines of a table would be wrapped
        return show_line(tuner, figures);
    }
    const report::Live now = live(tuner, figures);
    // Head lines, titles and the hint take nine lines; a table taller than the terminal could not be drawn over.
    const std::size_t width = terminal_.style.width;
    const std::size_t other_lines = 9 + report::stopping_lines(now, width).size() +
                                    report::checkpoint_lines(now, width).size() + (now.copies.nodes > 0 ? 1 : 0);
    const std::size_t trials = terminal_.rows > other_lines + 1 ? terminal_.rows - other_lines : 1;
    picture_.draw(out_, terminal_, report::live_table(tuner, now, terminal_.style, std::min<std::size_t>(trials, 20)));
}

void LiveView::finish() { picture_.erase(out_, terminal_); }

void LiveView::show_line(const tuner::Tuner& tuner, const head::HeadFigures& figures) {
    if (figures.elapsed_s < next_line_s_) return;
    next_line_s_ = figures.elapsed_s + std::clamp(figures.elapsed_s, shortest_pause_s, longest_pause_s);
    if (figures.elapsed_s >= next_table_s_) {
        next_table_s_ = figures.elapsed_s + 600.0;
        out_ << report::live_table(tuner, live(tuner, figures), terminal_.style);
    } else if (figures.copies.copied < figures.copies.bytes) {
        out_ << report::paragraph("data " + report::copies_text(live(tuner, figures)), terminal_.style);
    } else {
        std::string line = report::status_line(tuner, live(tuner, figures), terminal_.style);
        line.pop_back();
        // A terminal would break the line within words; in a log it stays one line.
        out_ << (terminal_.interactive ? report::paragraph(line, terminal_.style) : line + "\n");
    }
    out_.flush();
}

void LiveView::show_deadline(const tuner::State& state) {
    if (deadline_shown_ || !state.pace.deadline()) return;
    deadline_shown_ = true;
    finish();
    const auto wall = std::chrono::system_clock::now().time_since_epoch();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(wall).count();
    out_ << report::deadline_line(state, seconds, terminal_.style) << std::flush;
}

} // namespace ranktune::cli
