// SPDX-License-Identifier: Apache-2.0
// status: what a study did so far; with --watch, what it does.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/checks/missing_records.hpp"
#include "cli/queued_jobs.hpp"
#include "cli/study_summary.hpp"
#include "cli/terminal/picture.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/verbs/view_verbs.hpp"
#include "ranktune/base/error.hpp"
#include "report/explain/endings.hpp"
#include "report/explain/next_steps.hpp"
#include "report/screens/screens.hpp"
#include "report/screens/text.hpp"
#include "report/screens/trial_table.hpp"
#include "report/view/followed_study.hpp"
#include "studydir/lone_reports.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::cli {
namespace {

constexpr std::size_t usual_rows = 20;
constexpr auto watch_pause = std::chrono::seconds(1);

report::TableRequest request_of(const StatusArguments& arguments) {
    report::TableRequest request;
    request.columns = arguments.columns;
    request.sort = arguments.sort;
    request.filter = arguments.filter;
    request.max_rows = arguments.all ? SIZE_MAX : usual_rows;
    request.more_columns = true;
    return request;
}

/// The head of the screen and its table.
std::string screen_of(report::FollowedStudy& study, const report::TableRequest& request, const report::Live& live,
                      const report::Style& style) {
    const studydir::Notes notes = studydir::Notes::read(storage::posix_file_system(), {live.directory});
    report::TableRequest with_notes = request;
    with_notes.notes = &notes;
    const report::TrialTable table(study.tuner(), with_notes, live.interrupted, style);
    const report::LastMetrics none;
    return report::live_head(study.tuner(), live, style) +
           table.text(table.needs_metrics() ? study.metrics() : none, live.directory) +
           report::answers_text(live, style);
}

/// Nobody runs it, and it is not over.
bool is_stopped(const tuner::State& state, const report::Live& live) {
    return state.ended ? !tuner::is_over(state) : live.interrupted;
}
/// Whether a job may be about to go on with the study.
bool may_be_queued(const tuner::State& state, const report::Live& live) {
    return is_stopped(state, live) || (state.ended && submitted_since(live.directory));
}

/// What stands below the table, once.
std::string remarks_of(const report::FollowedStudy& study, const report::Live& live, const report::Style& style) {
    const auto& state = study.tuner().state();
    std::string text;
    text += report::prose("why", state.ended ? report::why_text(study.tuner()) : "", style);
    text += report::lost_weights_text(study.tuner(), style) + report::failures_text(state, live.directory, style) +
            report::lone_reports_text(studydir::lone_reports(live.directory), style) +
            report::ended_early_text(study.tuner(), style) + report::undone_for_room_text(study.tuner(), style);
    const bool stopped = is_stopped(state, live);
    if (may_be_queued(state, live) && state.simulation.empty()) {
        const std::string queued = queued_for_study(storage::posix_file_system(), live.directory).text;
        if (!queued.empty())
            text += report::paragraph((stopped ? "stopped; " : "finished; ") + report::printable(queued), style);
        else if (stopped)
            text += report::paragraph("stopped, goes on with: " + report::unbroken(report::going_on(live.directory)),
                                      style);
    }
    if (study.journal().cut_bytes > 0)
        text += report::prose(
            "journal",
            fmt::format("{}; {} of an unfinished one at the end", report::counted(study.journal().records, "record"),
                        report::counted(study.journal().cut_bytes, "byte")),
            style);
    return text;
}

/// Whether there is a study to look at. Where there is none yet, says so, and that a job of it is queued; with `wait`,
/// waits until that job has begun it. Throws as report::require_study when no job is to begin it.
bool has_begun(storage::FileSystem& files, const std::string& directory, bool wait) {
    QueueWatch queue(files, directory);
    std::string said;
    while (!storage::has_journal(files, directory)) {
        const std::string text = queue.text();
        if (text.empty() && files.exists(studydir::StudyDirectory{directory}.job_script()))
            throw base::UsageError(
                "'" + directory +
                "' was submitted, but no job of it has started, and none is in Slurm's queue; again: " +
                report::command_text({"submit", directory}));
        if (text.empty()) report::require_study(files, directory);
        if (text != said) std::cout << "no trial yet: " << report::escaped(text) << std::endl;
        said = text;
        if (!wait || !std::cout) return false;
        std::this_thread::sleep_for(watch_pause);
    }
    return true;
}

/// Follows the study until it has ended, or nobody runs it and no job of it is queued. A terminal is redrawn; elsewhere
/// a line says what is new.
void watch_study(report::FollowedStudy& study, report::TableRequest request, const std::string& directory) {
    Terminal terminal = detect_terminal();
    Picture picture;
    QueueWatch queue(storage::posix_file_system(), directory);
    std::string said;
    bool changed = true;
    while (true) {
        const report::Live live = live_of(study.tuner(), directory);
        const auto& state = study.tuner().state();
        const std::string waits = may_be_queued(state, live) ? queue.text() : std::string();
        const bool over = (state.ended || live.interrupted) && waits.empty();
        measure_again(terminal);
        if (terminal.interactive && !terminal.narrow && !over) {
            // A picture that is taller than the terminal could not be drawn over. Head, titles and hints take 12 lines.
            const std::string answers = report::answers_text(live, terminal.style);
            const auto others = 12 + static_cast<std::size_t>(std::ranges::count(answers, '\n'));
            request.max_rows = terminal.rows > others + 1 ? terminal.rows - others : 1;
            picture.draw(std::cout, terminal,
                         screen_of(study, request, live, terminal.style) +
                             (waits.empty() ? "" : report::paragraph(report::printable(waits), terminal.style)));
        } else if (!over && !waits.empty()) {
            if (waits != said) std::cout << report::escaped(waits) << std::endl;
        } else if (!over && changed) {
            std::cout << report::status_line(study.tuner(), live, terminal.style) << std::flush;
        }
        said = waits;
        if (over || !std::cout) break;
        std::this_thread::sleep_for(watch_pause);
        try {
            changed = study.refresh();
        } catch (const base::IoError&) { // a network file system that does not answer now
            changed = false;
        }
    }
    picture.erase(std::cout, terminal);
}

} // namespace

int status(const StatusArguments& arguments) {
    const std::string& directory = arguments.directory;
    if (arguments.format == Format::json) {
        if (arguments.all)
            throw base::UsageError("--all is for text; as JSON, `ranktune export " + directory +
                                   " --format json` has every trial");
        if (arguments.watch || !arguments.columns.empty() || !arguments.sort.empty() || !arguments.filter.empty())
            throw base::UsageError("--watch, --columns, --sort and --filter are for text; as JSON, `ranktune export " +
                                   directory + " --format json` has every trial");
        print(summary(load_state(directory), directory));
        return 0;
    }
    if (!has_begun(storage::posix_file_system(), directory, arguments.watch)) return 0;
    const MissingRecords missing(directory);
    report::FollowedStudy study(storage::posix_file_system(), directory);
    missing.tell(study.journal());
    const report::TableRequest request = request_of(arguments);
    if (arguments.watch) watch_study(study, request, directory);
    const report::Live live = live_of(study.tuner(), directory);
    const report::Style style = detect_terminal().style;
    std::cout << screen_of(study, request, live, style) << remarks_of(study, live, style);
    return 0;
}

} // namespace ranktune::cli
