// SPDX-License-Identifier: Apache-2.0
#pragma once
// The screens: start, live table, end. Pure functions from values to text; the cli prints them.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/screens/text.hpp"
#include "studydir/open_study.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::report {

/// Facts for the start screen, besides the study.
struct StartInfo {
    std::string version; ///< "ranktune 0.1.0"; empty: no line of versions
    std::string mpi;     ///< "Open MPI 4.1.4"
    std::string hdf5;    ///< "HDF5 1.10.8"
    std::string cuda = "cuda: not compiled";
    std::string launch_line;   ///< the mpirun line, when ranktune started it itself; empty otherwise
    std::uint32_t workers = 0; ///< 0: not known (dry run)
    std::string hosts;         ///< "lab3" or "4 nodes"
    std::string deaths;        ///< what the death of a worker will cost, in words; empty: not known
    std::string directory;     ///< as the user would type it
};
/// The line with the versions on the start and resume screens.
[[nodiscard]] std::string versions_text(const StartInfo& info, const Style& style);
[[nodiscard]] std::string start_screen(const study::StudySpec& spec, const StartInfo& info, const Style& style);

/// `ended`: how the previous start ended.
[[nodiscard]] std::string resume_screen(const studydir::OpenedStudy& found, const std::string& ended,
                                        const StartInfo& info, const Style& style);

/// When the job's deadline ends the study, and until when new trials begin. Empty: no deadline is known. `wall`:
/// seconds since 1970 at `state.now`.
[[nodiscard]] std::string deadline_line(const tuner::State& state, std::int64_t wall, const Style& style);

/// Copies of [data], in bytes of all.
struct Copies {
    std::uint32_t nodes = 0;
    std::uint64_t bytes = 0;
    std::uint64_t copied = 0;
    std::uint64_t read = 0; ///< from the originals
};

/// Figures of the running head that are not part of the state.
struct Live {
    double elapsed_s = 0.0;
    std::optional<double> busy_share; ///< of the workers, 0 to 1
    std::optional<double> left_s;     ///< estimate
    std::string deadline = {};        ///< words on the job's end, the time budget, or who runs it; empty: none
    double starting_share = 0.0;
    double idle_share = 0.0;
    double data_share = 0.0;              ///< of the workers, within busy_share: training waited for data
    std::string directory;                ///< of the study, as the user would type it; empty: its name
    std::uint64_t checkpoints_missed = 0; ///< that could not be written
    std::string checkpoint_error;         ///< of the last one that could not be written
    std::uint64_t fallbacks = 0;          ///< to an earlier checkpoint, because the newest was damaged
    std::string stopping = {};            ///< stopping_text
    std::uint64_t total = 0;              ///< SteadyTotal; 0: not tracked
    bool interrupted = false;             ///< nobody runs the study: trials that hold ranks were interrupted
    Copies copies = {};
    std::vector<std::string> answers = {}; ///< to the newest requests of users in this start, in words, oldest first
};
/// Live::answers, wrapped; empty: none.
[[nodiscard]] std::string answers_text(const Live& live, const Style& style);
/// "12 GB of 120 GB copied to 3 nodes, 2.1 GB/s, 52s left; 4.0 GB read from the original"; empty: nothing is copied.
[[nodiscard]] std::string copies_text(const Live& live);
/// Problems with checkpoints, in sentences; empty: none.
[[nodiscard]] std::vector<std::string> checkpoint_warnings(const Live& live);
/// The same for the live table, a line of at most `width` columns each.
[[nodiscard]] std::vector<std::string> checkpoint_lines(const Live& live, std::size_t width);
/// Live::stopping for the live table, wrapped; empty: the study is not stopping.
[[nodiscard]] std::vector<std::string> stopping_lines(const Live& live, std::size_t width);
/// Iterations that the study will have trained in the end: those of the plan, or more once more are certain. The plan
/// of an asynchronous scheduler is an estimate. For a study that has ended, the exact number.
[[nodiscard]] std::uint64_t expected_iterations(const tuner::Tuner& tuner);
/// The maximum of all expected totals so far, for a view that is redrawn: failed trials and a stopping study lower the
/// expectation, but a falling total confuses.
class SteadyTotal {
  public:
    std::uint64_t update(const tuner::Tuner& tuner) { return most_ = std::max(most_, expected_iterations(tuner)); }

  private:
    std::uint64_t most_ = 0;
};
/// For a deterministic study that is not deterministic from some record on: a sentence; else empty.
[[nodiscard]] std::string deterministic_text(const tuner::State& state);
/// What stands above the trials: how far the study is, the best value, rungs.
[[nodiscard]] std::string live_head(const tuner::Tuner& tuner, const Live& live, const Style& style);
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
    std::string command;                          ///< as the user typed it: "ranktune run digits.toml -o out"
    std::optional<study::StudyOutcome> code = {}; ///< of this run, when it differs from the study's
    std::string next_job = {};                    ///< job that continues the study by itself: "1201"; empty: none
    std::string log = {};                         ///< of the head, in this start: "digits/logs/start-1.log"
    bool verbose = false;                         ///< with figures on training, search, workers and files
};
[[nodiscard]] std::string end_screen(const tuner::Tuner& tuner, const Live& live, const FilesInfo& files,
                                     const Style& style);
/// For an immediate end that interrupts trials; `why` in words.
[[nodiscard]] std::string cut_short_screen(const tuner::Tuner& tuner, const Live& live, const FilesInfo& files,
                                           const std::string& why, const Style& style);
/// For an end without a screen: one sentence on why the study ended and what to type; below it the messages of failed
/// trials, and where the logs are.
[[nodiscard]] std::string end_sentence(const tuner::Tuner& tuner, const FilesInfo& files);
/// For a study that has nothing more to do: how it ended, and how to extend it. Uses only `directory` and `command` of
/// `files`.
[[nodiscard]] std::string finished_screen(const tuner::Tuner& tuner, const FilesInfo& files, const Style& style);

/// The best trial: metric, configuration, checkpoint, and what to type next. Of several objectives, the front.
[[nodiscard]] std::string best_screen(const tuner::Tuner& tuner, const std::string& directory, const Style& style,
                                      bool weights_missing = false);
/// Trials in the order of the live table.
[[nodiscard]] std::vector<study::TrialId> by_rank(const tuner::Tuner& tuner);
/// All trials by their results alone: the best first, those without one last.
[[nodiscard]] std::vector<study::TrialId> by_result(const tuner::Tuner& tuner);
/// The first so many of them. Throws base::UsageError when fewer have a finite result, or `count` is 0.
[[nodiscard]] std::vector<study::TrialId> best_trials(const tuner::Tuner& tuner, std::size_t count);

} // namespace ranktune::report
