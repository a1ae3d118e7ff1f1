// SPDX-License-Identifier: Apache-2.0
#pragma once
// The screens: start, live table, end. Text from values; who prints them, and where, is the cli's business.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/text.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::report {

/// What the start screen tells, besides the study.
struct StartInfo {
    std::string version; ///< "ranktune 0.1.0"; empty: no line of versions
    std::string mpi;     ///< "Open MPI 4.1.4"
    std::string hdf5;    ///< "HDF5 1.10.8"
    std::string cuda = "cuda: not compiled";
    std::string launch_line;   ///< the mpirun line, when ranktune started it itself; empty otherwise
    std::uint32_t workers = 0; ///< 0: not known (dry run)
    std::string hosts;         ///< "lab3" or "4 nodes"
    std::string directory;     ///< as the user would type it
    bool is_new = true;
};
/// The first line of both, where the run is told what it is made of.
[[nodiscard]] std::string versions_text(const StartInfo& info, const Style& style);
[[nodiscard]] std::string start_screen(const study::StudySpec& spec, const StartInfo& info, const Style& style);

/// What the screen of a resumed study tells instead of the plan.
struct ResumeInfo {
    std::uint32_t start = 0;       ///< number of the start that begins
    std::string ended;             ///< how the one before ended
    std::uint64_t records = 0;     ///< of the journal
    std::uint64_t cut_bytes = 0;   ///< at its end, of what cannot be used
    std::uint64_t cut_records = 0; ///< that were written whole once; 0: what was cut is an unfinished one
    double commit_interval_s = 0.0;
    std::uint32_t workers_before = 0;
    struct Running {
        study::TrialId trial;
        study::Iteration from = 0;
        study::Iteration lost = 0;
    };
    std::vector<Running> running; ///< when the start before ended
    struct Change {
        std::string key;
        std::string before;
        std::string after;
    };
    std::vector<Change> changes;
    std::uint64_t reopened = 0; ///< failed trials that get another chance
};
/// `tuner` holds the study as it was found.
[[nodiscard]] std::string resume_screen(const tuner::Tuner& tuner, const StartInfo& info, const ResumeInfo& found,
                                        const Style& style);

/// When the study ends for its job's sake, and until when new trials begin, for the screen that a study starts with.
/// Empty: no deadline is known. `wall`: seconds since 1970 at `state.now`.
[[nodiscard]] std::string deadline_line(const tuner::State& state, std::int64_t wall, const Style& style);

/// Figures of the running head that are not part of the state.
struct Live {
    double elapsed_s = 0.0;
    std::optional<double> busy_share; ///< of the workers, 0 to 1
    std::optional<double> left_s;     ///< estimate
    std::string deadline = {};        ///< when the study ends for its job's or its budget's sake; empty: nobody asks
    double starting_share = 0.0;
    double idle_share = 0.0;
    double training_s = 0.0;              ///< rank-seconds in user code
    std::string directory;                ///< of the study, as the user would type it; empty: its name
    std::uint64_t checkpoints_missed = 0; ///< could not be written, by trials that trained on
    std::string checkpoint_error;         ///< of the last of them
    std::uint64_t fallbacks = 0;          ///< to an earlier checkpoint, because the newest was damaged
    std::string stopping = {};            ///< stopping_text
    std::uint64_t total = 0;              ///< SteadyTotal; 0: no earlier look
    bool interrupted = false;             ///< nobody runs the study: trials that seem to hold ranks were cut off
};
/// What went wrong with checkpoints, in sentences; none: nothing.
[[nodiscard]] std::vector<std::string> checkpoint_warnings(const Live& live);
/// The same for the live table, a line of at most `width` columns each.
[[nodiscard]] std::vector<std::string> checkpoint_lines(const Live& live, std::size_t width);
/// Live::stopping for the live table, whole; none: it is not stopping.
[[nodiscard]] std::vector<std::string> stopping_lines(const Live& live, std::size_t width);
/// Iterations that the study will have trained in the end: the plan, or more once that much is certain. The plan of an
/// asynchronous scheduler is an estimate; the end of a study is exact.
[[nodiscard]] std::uint64_t expected_iterations(const tuner::Tuner& tuner);
/// The expected iterations as a view shows them that is drawn again and again: a trial that fails leaves its rest
/// undone, and a study that is stopping makes no new trials, but a total that goes back only confuses.
class SteadyTotal {
  public:
    std::uint64_t update(const tuner::Tuner& tuner) { return most_ = std::max(most_, expected_iterations(tuner)); }

  private:
    std::uint64_t most_ = 0;
};
/// One sentence about a deterministic study that had to take something else into account; empty: none.
[[nodiscard]] std::string deterministic_text(const tuner::State& state);
/// At most style.width columns and `max_rows` trials: running ones first, then by metric.
[[nodiscard]] std::string live_table(const tuner::Tuner& tuner, const Live& live, const Style& style,
                                     std::size_t max_rows = 20);
/// The same as one line, for logs.
[[nodiscard]] std::string status_line(const tuner::Tuner& tuner, const Live& live, const Style& style);

/// Files of the study, for the last lines of the end screen.
struct FilesInfo {
    std::uint64_t files = 0;
    std::uint64_t bytes = 0;
    std::string directory;
    std::string command; ///< as the user typed it, to be repeated: "ranktune run digits.toml -o out"
    std::optional<study::StudyOutcome> code = {}; ///< of this run, where it is not the study's own
    std::string next_job = {};                    ///< goes on with the study by itself: "1201"; empty: none does
};
[[nodiscard]] std::string end_screen(const tuner::Tuner& tuner, const Live& live, const FilesInfo& files,
                                     const Style& style);
/// For a study that ends at once, in the middle of its trials; `why` in words.
[[nodiscard]] std::string cut_short_screen(const tuner::Tuner& tuner, const Live& live, const FilesInfo& files,
                                           const std::string& why, const Style& style);
/// Why a study ended and what to type, in one sentence, and below it what failed trials said and where more of that is:
/// for an end without a screen.
[[nodiscard]] std::string end_sentence(const tuner::Tuner& tuner, const FilesInfo& files);
/// For a study that has nothing more to do: how it ended, and how to get more out of it. Of `files` the directory and
/// the command count.
[[nodiscard]] std::string finished_screen(const tuner::Tuner& tuner, const FilesInfo& files, const Style& style);

/// The best trial: metric, configuration, checkpoint, and what to type next.
[[nodiscard]] std::string best_screen(const tuner::Tuner& tuner, const std::string& directory, const Style& style,
                                      bool weights_missing = false);
/// Trials in the order of the live table.
[[nodiscard]] std::vector<study::TrialId> by_rank(const tuner::Tuner& tuner);

} // namespace ranktune::report
